-- Rows of jobs. Every column but json repeats what json says, for conditions and indexes.
-- Instants are microseconds of the epoch; expires_at is seconds, as in json.
-- kind: 0 extract, 1 batch, 2 crawl.
CREATE TABLE entries (
    kind        INTEGER NOT NULL,
    job_id      TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    generation  INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    due_at      INTEGER,
    expires_at  INTEGER,
    dead_reason TEXT,
    json        TEXT    NOT NULL,
    UNIQUE (kind, job_id)
) STRICT;
CREATE INDEX entries_by_state ON entries (state, kind, job_id);
CREATE INDEX entries_by_due ON entries (due_at, kind, job_id) WHERE due_at IS NOT NULL;
CREATE INDEX entries_by_reason ON entries (dead_reason) WHERE dead_reason IS NOT NULL;
CREATE INDEX entries_by_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL;

-- Submissions; columns as above.
CREATE TABLE intents (
    id         TEXT    NOT NULL UNIQUE,
    run        TEXT    NOT NULL,
    position   INTEGER NOT NULL,
    kind       INTEGER NOT NULL,
    state      TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    due_at     INTEGER,
    expires_at INTEGER,
    json       TEXT    NOT NULL
) STRICT;
CREATE INDEX intents_by_run ON intents (run, position, id);
CREATE INDEX intents_by_state ON intents (state, kind);
CREATE INDEX intents_by_due ON intents (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX intents_by_expiry ON intents (expires_at) WHERE expires_at IS NOT NULL;

-- Small rows that steer all parts.
CREATE TABLE control (
    name    TEXT    NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    value   TEXT    NOT NULL
) STRICT;

-- Tasks. An id is never used twice, so that an old receipt never fits a new task.
CREATE TABLE tasks (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    visible_at INTEGER NOT NULL,
    takes      INTEGER NOT NULL,
    body       TEXT    NOT NULL
) STRICT;
CREATE INDEX tasks_by_visibility ON tasks (visible_at);
