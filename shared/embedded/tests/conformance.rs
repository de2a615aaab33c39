//! The ports' conformance suites, run on a file in a directory of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

use std::path::PathBuf;
use std::sync::Arc;

use domain::testing::ManualClock;
use embedded::{Settings, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;
use testkit::conformance::{LedgerCaps, LedgerSubject, QueueSubject};

fn open() -> (SqliteStore, Arc<ManualClock>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::default());
    let path = directory.path().join("gleaner.db");
    let store = SqliteStore::open(&path, clock.clone(), Settings::default()).unwrap();
    (store, clock, directory)
}

/// Does something to the file past the port.
fn run(path: &PathBuf, sql: &str, value: &str) {
    let changed = Connection::open(path).unwrap().execute(sql, [value]).unwrap();
    assert_eq!(changed, 1);
}

fn ledger() -> LedgerSubject {
    let (store, _clock, directory) = open();
    let (entries, intents) = (store.path().to_owned(), store.path().to_owned());
    let caps = LedgerCaps { lists_in_key_order: false, ..LedgerCaps::default() };
    LedgerSubject::new(Arc::new(store))
        .with_caps(caps)
        .spoiling(
            move |key| {
                let sql = "UPDATE entries SET json = 'spoilt' WHERE job_id = ?1";
                run(&entries, sql, key.job_id.as_str());
            },
            move |id| run(&intents, "UPDATE intents SET json = 'spoilt' WHERE id = ?1", id),
        )
        .keeping(directory)
}

fn queue() -> QueueSubject<SqliteStore> {
    let (store, clock, directory) = open();
    let path = store.path().to_owned();
    QueueSubject::new(Arc::new(store), clock)
        .sending_bodies(move |body| {
            run(&path, "INSERT INTO tasks (visible_at, takes, body) VALUES (0, 0, ?1)", body);
        })
        .keeping(directory)
}

testkit::ledger_conformance! { name: sqlite_ledger, make: ledger() }
testkit::queue_conformance! { name: sqlite_queue, make: queue() }
