"""Results as DuckDB reads them, straight from the folder, through the documented views."""

import gzip
import hashlib
import json
import shutil
import subprocess

import duckdb
import pytest

from conftest import DEMO_JOBS, REPOSITORY

VIEWS = (REPOSITORY / "docs/results.sql").read_text(encoding="utf-8")


def connect(results):
    connection = duckdb.connect()
    connection.execute(f"SET VARIABLE results_root = '{results}'")
    connection.execute(VIEWS)
    return connection


def rows(connection, query):
    """Runs a query and returns its rows as dicts."""
    result = connection.execute(query)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row)) for row in result.fetchall()]


@pytest.fixture(scope="module")
def tables(demo):
    return connect(demo.results)


@pytest.fixture(scope="module")
def files(demo):
    """Everything that is stored, read without DuckDB."""
    extracts, manifests, items = {}, {}, {}
    for path in demo.results.glob("kind=extract/dt=*/*.json.gz"):
        stored = json.loads(gzip.decompress(path.read_bytes()))
        extracts[stored["job_id"]] = stored
    for path in demo.results.glob("kind=*/dt=*/*/_manifest.json"):
        manifest = json.loads(path.read_bytes())
        manifests[manifest["job_id"]] = manifest
        for part in manifest["parts"]:
            packed = (demo.results / part["key"]).read_bytes()
            assert hashlib.sha256(packed).hexdigest() == part["sha256"]
            for line in gzip.decompress(packed).decode().split("\n")[:-1]:
                item = json.loads(line)
                items[item["job_id"], item["item_key"]] = item
    return extracts, manifests, items


@pytest.fixture
def copy(demo, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(demo.results, folder)
    return folder


def test_the_document_shows_the_very_views():
    document = (REPOSITORY / "docs/results.md").read_text(encoding="utf-8")
    assert f"```sql\n{VIEWS}```\n" in document


def test_counts_are_those_of_the_demos_books(demo, tables):
    calls = demo.report["calls"]
    submitted = {kind: calls[f"POST /v1/{kind}"] for kind in ("extract", "batch", "crawl")}
    assert all(submitted.values())
    counted = rows(tables, "SELECT kind, count(*) AS jobs FROM manifests GROUP BY kind")
    counted = {row["kind"]: row["jobs"] for row in counted}
    counted["extract"] = rows(tables, "SELECT count(*) AS jobs FROM extracts")[0]["jobs"]
    assert counted == submitted
    assert sum(counted.values()) == demo.report["ledger"]["stored"] >= DEMO_JOBS


def test_extracts_read_as_they_were_stored(tables, files):
    stored, _, _ = files
    read = {row["job_id"]: row for row in rows(tables, "SELECT * FROM extracts")}
    assert read.keys() == stored.keys()
    for job_id, row in read.items():
        expected = stored[job_id]
        job = expected["job"]
        assert json.loads(row["job"]) == job
        assert (row["status"], row["url"]) == (job["status"], job["metadata"]["url"])
        assert (row["html"], row["markdown"]) == (job["data"]["html"], job["data"]["markdown"])
        assert (row["ref"], row["lineage"]) == (expected["ref"], expected["lineage"])
        assert row["dt"].isoformat() == job["created_at"][:10]
        assert row["stored_at"].timestamp() == pytest.approx(
            seconds(expected["stored_at"]), abs=0.001
        )


def seconds(text):
    query = f"SELECT epoch(TIMESTAMPTZ '{text}')"
    return duckdb.execute(query).fetchone()[0]


def test_manifests_read_as_they_were_stored(tables, files):
    _, stored, _ = files
    read = {row["job_id"]: row for row in rows(tables, "SELECT * FROM manifests")}
    assert read.keys() == stored.keys()
    for job_id, row in read.items():
        expected = stored[job_id]
        for name in (
            "kind",
            "ref",
            "lineage",
            "status",
            "unsettled",
            "run",
            "items",
            "parts",
            "failed",
        ):
            assert row[name] == expected[name], name
        assert row["dt"].isoformat() == expected["dt"]
        assert json.loads(row["job"]) == expected["job"]


def test_items_read_as_they_were_stored(tables, files):
    _, manifests, stored = files
    read = {(row["job_id"], row["item_key"]): row for row in rows(tables, "SELECT * FROM items")}
    assert read.keys() == stored.keys()
    assert len(read) == sum(manifest["items"] for manifest in manifests.values())
    assert any(len(manifest["parts"]) > 1 for manifest in manifests.values())
    for place, row in read.items():
        item = stored[place]["item"]
        assert json.loads(row["item"]) == item
        assert (row["url"], row["status"]) == (item["url"], item["status"])
        assert (row["html"], row["markdown"]) == (item["data"]["html"], item["data"]["markdown"])
        assert row["kind"] == stored[place]["kind"]


def test_the_documents_examples_run(tables):
    document = (REPOSITORY / "docs/results.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in document.split("```sql\n")[1:]]
    examples = [
        query for block in blocks if block != VIEWS for query in block.split(";\n") if query
    ]
    assert len(examples) == 2
    batch = rows(tables, "SELECT job_id FROM manifests WHERE kind = 'batch' LIMIT 1")[0]["job_id"]
    assert rows(tables, examples[0]) == []
    pages = rows(tables, examples[1].replace("'...'", f"'{batch}'"))
    total = rows(tables, f"SELECT items FROM manifests WHERE job_id = '{batch}'")[0]["items"]
    assert len(pages) == total > 0


def test_a_part_that_no_manifest_names_is_not_seen(copy):
    before = rows(connect(copy), "SELECT count(*) AS items FROM items")
    part = min(copy.glob("kind=batch/dt=*/*/*-part-00001.ndjson.gz"))
    stray = part.with_name("000000000000-part-00001.ndjson.gz")
    stray.write_bytes(part.read_bytes())
    unfinished = part.with_name(part.name + "#17")
    unfinished.write_bytes(b"half a file")
    orphan = copy / "kind=crawl" / part.parent.parent.name / "no-manifest" / part.name
    orphan.parent.mkdir()
    orphan.write_bytes(part.read_bytes())
    assert rows(connect(copy), "SELECT count(*) AS items FROM items") == before


def test_an_unfinished_extract_object_is_not_seen(copy):
    before = rows(connect(copy), "SELECT count(*) AS jobs FROM extracts")
    stored = min(copy.glob("kind=extract/dt=*/*.json.gz"))
    stored.with_name(stored.name + "#17").write_bytes(b"half a file")
    assert rows(connect(copy), "SELECT count(*) AS jobs FROM extracts") == before


def flipped(content, share):
    place = int(len(content) * share)
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def repacked(content, share):
    """A valid file with one letter changed: only a sum can tell."""
    plain = gzip.decompress(content)
    place = plain.index(b"the", int(len(plain) * share))
    return gzip.compress(plain[:place] + b"teh" + plain[place + 3 :])


def cut(content, share):
    return content[: int(len(content) * share)]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("damage", [flipped, repacked, cut])
def test_a_damaged_part_is_an_error(copy, damage, share):
    part = max(copy.glob("kind=*/dt=*/*/*.ndjson.gz"), key=lambda path: path.stat().st_size)
    part.write_bytes(damage(part.read_bytes(), share))
    with pytest.raises(duckdb.Error):
        rows(connect(copy), "SELECT * FROM items")
    with pytest.raises(duckdb.Error):
        rows(connect(copy), "SELECT count(*) FROM items")


def test_a_part_that_is_missing_is_an_error(copy):
    part = min(copy.glob("kind=crawl/dt=*/*/*.ndjson.gz"))
    part.unlink()
    with pytest.raises(duckdb.Error, match=f"missing or damaged: kind=crawl/.*{part.name}"):
        rows(connect(copy), "SELECT count(*) FROM items")


@pytest.mark.parametrize("share", [0.2, 0.5, 0.99])
def test_a_cut_extract_object_is_an_error(copy, share):
    stored = min(copy.glob("kind=extract/dt=*/*.json.gz"))
    stored.write_bytes(cut(stored.read_bytes(), share))
    with pytest.raises(duckdb.Error):
        rows(connect(copy), "SELECT * FROM extracts")


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_the_documented_check_finds_what_duckdb_does_not(copy, share):
    document = (REPOSITORY / "docs/results.md").read_text(encoding="utf-8")
    [check] = [block.split("```")[0] for block in document.split("```sh\n")[1:]]

    def checks_out():
        command = ["sh", "-c", check]
        done = subprocess.run(command, cwd=copy.parent, capture_output=True, check=False)
        return done.returncode == 0

    assert checks_out()
    stored = max(copy.glob("kind=extract/dt=*/*.json.gz"), key=lambda path: path.stat().st_size)
    stored.write_bytes(flipped(stored.read_bytes(), share))
    assert not checks_out()
