-- The user's own id of a job, for look-ups; a row without one costs nothing here.
ALTER TABLE entries ADD COLUMN ref TEXT;
UPDATE entries SET ref = json_extract(json, '$.link.ref')
    WHERE CASE WHEN json_valid(json) THEN json_type(json, '$.link.ref') = 'text' ELSE FALSE END;
CREATE INDEX entries_by_ref ON entries (ref) WHERE ref IS NOT NULL;

-- How many rows there are: entries by state, dead ones under dead:<reason> as well, and intents by
-- state. Written in the commit that changes the rows, so that no count needs to read them.
CREATE TABLE counts (
    rows_of TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    number  INTEGER NOT NULL,
    PRIMARY KEY (rows_of, name)
) STRICT, WITHOUT ROWID;
INSERT INTO counts SELECT 'entries', state, count(*) FROM entries GROUP BY state;
INSERT INTO counts SELECT 'entries', 'dead:' || dead_reason, count(*) FROM entries
    WHERE dead_reason IS NOT NULL GROUP BY dead_reason;
INSERT INTO counts SELECT 'intents', state, count(*) FROM intents GROUP BY state;
-- It served to count.
DROP INDEX entries_by_reason;

-- Of intents by state, only the open ones are ever looked for.
DROP INDEX intents_by_state;
CREATE INDEX intents_open ON intents (kind) WHERE state = 'open';

-- Rows are listed by arrival, which is how they lie: an index that ends with the row's number grows
-- at its end, where one that ends with the id is written all over.
DROP INDEX entries_by_state;
CREATE INDEX entries_by_state ON entries (state, kind);
DROP INDEX entries_by_due;
CREATE INDEX entries_by_due ON entries (due_at) WHERE due_at IS NOT NULL;
