-- Results of Gleaner as tables of DuckDB.
--
--   SET VARIABLE results_root = '/path/to/results';
--   .read docs/results.sql
--   SELECT job_id, url, length(html) FROM extracts;
--
-- Every query reads the files anew. DuckDB makes a view only if there are files for it: with
-- extract jobs alone, the statements after the first one fail with "No files found".

-- One row per stored extract job.
CREATE OR REPLACE VIEW extracts AS
SELECT
    job_id,
    dt,
    ref,
    lineage,
    stored_at,
    job ->> '$.status' AS status,
    job ->> '$.metadata.url' AS url,
    job ->> '$.data.html' AS html,
    job ->> '$.data.markdown' AS markdown,
    job
FROM read_json(
    getvariable('results_root') || '/kind=extract/dt=*/*.json.gz',
    format = 'unstructured',
    records = true,
    maximum_object_size = 67108864, -- bytes
    hive_partitioning = true,
    hive_types = {'dt': DATE, 'kind': VARCHAR},
    columns = {
        job_id: 'VARCHAR',
        ref: 'VARCHAR',
        lineage: 'STRUCT(root VARCHAR, attempt UINTEGER)',
        stored_at: 'TIMESTAMPTZ',
        job: 'JSON'
    }
);

-- One row per stored batch or crawl.
CREATE OR REPLACE VIEW manifests AS
SELECT
    kind,
    job_id,
    dt,
    ref,
    lineage,
    stored_at,
    status,
    unsettled,
    run,
    items,
    parts,
    failed,
    job
FROM read_json(
    getvariable('results_root') || '/kind=*/dt=*/*/_manifest.json',
    format = 'unstructured',
    records = true,
    maximum_object_size = 67108864, -- bytes
    hive_partitioning = true,
    hive_types = {'dt': DATE, 'kind': VARCHAR},
    columns = {
        job_id: 'VARCHAR',
        ref: 'VARCHAR',
        lineage: 'STRUCT(root VARCHAR, attempt UINTEGER)',
        stored_at: 'TIMESTAMPTZ',
        status: 'VARCHAR',
        unsettled: 'BOOLEAN',
        run: 'VARCHAR',
        items: 'UBIGINT',
        parts: 'STRUCT("key" VARCHAR, items UBIGINT, bytes UBIGINT, sha256 VARCHAR)[]',
        failed: 'STRUCT("key" VARCHAR, url VARCHAR, code VARCHAR, message VARCHAR)[]',
        job: 'JSON'
    }
);

-- One row per item of a stored batch or crawl. Parts that no manifest names do not count; one that
-- a manifest names and that is missing or changed is an error.
CREATE OR REPLACE VIEW items AS
WITH named AS (
    SELECT kind, job_id, dt, ref, stored_at, unnest(parts) AS named_part
    FROM manifests
),
files AS (
    SELECT
        regexp_extract(
            replace(filename, '\', '/'),
            'kind=[^/]+/dt=[^/]+/[^/]+/[^/]+$'
        ) AS part,
        sha256(content) AS sha256
    FROM read_blob(getvariable('results_root') || '/kind=*/dt=*/*/*.ndjson.gz')
),
counted AS (
    SELECT kind, job_id, dt, ref, stored_at, named_part."key" AS part
    FROM named
    LEFT JOIN files ON files.part = named_part."key"
    WHERE CASE
        WHEN files.sha256 IS NOT DISTINCT FROM named_part.sha256 THEN true
        ELSE error('missing or damaged: ' || named_part."key")
    END
),
lines AS (
    SELECT
        regexp_extract(
            replace(filename, '\', '/'),
            'kind=[^/]+/dt=[^/]+/[^/]+/[^/]+$'
        ) AS part,
        item_key,
        item
    FROM read_json(
        getvariable('results_root') || '/kind=*/dt=*/*/*.ndjson.gz',
        format = 'newline_delimited',
        maximum_object_size = 67108864, -- bytes
        filename = true,
        hive_partitioning = false,
        columns = {item_key: 'VARCHAR', item: 'JSON'}
    )
)
SELECT
    counted.kind,
    counted.job_id,
    counted.dt,
    counted.ref,
    counted.stored_at,
    lines.item_key,
    lines.item ->> '$.url' AS url,
    lines.item ->> '$.status' AS status,
    lines.item ->> '$.data.html' AS html,
    lines.item ->> '$.data.markdown' AS markdown,
    lines.item
FROM counted
JOIN lines USING (part);
