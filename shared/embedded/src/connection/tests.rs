use domain::ports::Clock;
use domain::ports::{Entries, Expected, Inspection, Intents, TaskSource};
use std::sync::Arc;

use super::*;
use crate::testing::{TestStore, start, test_store};
use crate::{Settings, SqliteStore};

const BUSY: Duration = Duration::from_millis(1_234);

fn pragma(connection: &Connection, name: &str) -> String {
    let value = connection.pragma_query_value(None, name, |row| {
        let value: rusqlite::types::Value = row.get(0)?;
        Ok(value)
    });
    match value.unwrap() {
        rusqlite::types::Value::Integer(number) => number.to_string(),
        rusqlite::types::Value::Text(text) => text,
        other => panic!("{name} is {other:?}"),
    }
}

fn durability(connection: &Connection) -> [String; 4] {
    ["journal_mode", "synchronous", "busy_timeout", "foreign_keys"]
        .map(|name| pragma(connection, name))
}

/// SQ-04: every sort of connection has the settings on which a 2xx rests: the one that creates
/// the file, the one that finds it, the one opened after a failure, and readers.
#[test]
fn every_connection_is_durable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gleaner.db");
    let wanted = ["wal", "2", "1234", "0"].map(str::to_owned);
    assert_eq!(durability(&prepare(&path, BUSY).unwrap()), wanted);
    assert_eq!(durability(&prepare(&path, BUSY).unwrap()), wanted);
    assert_eq!(durability(&open(&path, BUSY, Purpose::Write).unwrap()), wanted);
    let reader = open(&path, BUSY, Purpose::Read).unwrap();
    assert_eq!(durability(&reader), wanted);
    reader.execute("DELETE FROM control", []).unwrap_err();
}

/// SQ-04: the connections inside an open store, asked many times at once.
#[tokio::test]
async fn a_stores_connections_are_durable() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let wanted = ["wal", "2", "2000", "0"].map(str::to_owned);
    let written = store.write("ledger", "test", |connection| Ok(durability(connection))).await;
    assert_eq!(written.unwrap(), wanted);
    let reads: Vec<_> = (0..64)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                store.read("ledger", "test", |connection| Ok(durability(connection))).await
            })
        })
        .collect();
    for read in reads {
        assert_eq!(read.await.unwrap().unwrap(), wanted);
    }
}

/// SQ-04: a file system on which `SQLite` cannot keep a WAL is refused, not used without one.
#[test]
fn a_setting_that_does_not_hold_is_refused() {
    let error = prepare(Path::new(":memory:"), BUSY).unwrap_err();
    assert!(matches!(error, OpenError::Pragma { pragma: "journal_mode", .. }), "{error:?}");
    assert!(error.to_string().contains("use a local disk"), "{error}");
}

fn refuse(content: &[u8]) -> OpenError {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.db");
    std::fs::write(&path, content).unwrap();
    let clock = crate::testing::clock();
    let error = SqliteStore::open(&path, clock, Settings::default()).unwrap_err();
    assert_eq!(std::fs::read(&path).unwrap(), content, "the file was changed");
    assert!(error.to_string().contains("other.db"), "{error}");
    error
}

fn database(sql: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("made.db");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    std::fs::read(&path).unwrap()
}

#[test]
fn files_of_others_are_refused_and_left_alone() {
    let text = b"a text of somebody else, longer than the header of a database ".repeat(4);
    for content in [
        text,
        database("CREATE TABLE t (a)"),
        database("PRAGMA application_id = 7; CREATE TABLE t (a)"),
        database("PRAGMA user_version = 1; CREATE TABLE t (a)"),
        database("PRAGMA application_id = 1198288498; CREATE TABLE t (a)"),
    ] {
        let error = refuse(&content);
        assert!(matches!(error, OpenError::NotOurs { .. }), "{error:?}");
    }
}

#[test]
fn a_newer_file_is_refused_and_left_alone() {
    let (mark, newer) = (schema::APPLICATION_ID, SCHEMA_VERSION + 1);
    let sql = format!("PRAGMA application_id = {mark}; PRAGMA user_version = {newer}");
    let error = refuse(&database(&sql));
    assert!(matches!(error, OpenError::Newer { version, .. } if version == newer), "{error:?}");
    assert!(error.to_string().contains("use a newer gleaner"), "{error}");
}

#[test]
fn a_missing_directory_is_named() {
    let path = Path::new("/nonexistent/gleaner.db");
    let error = prepare(path, BUSY).unwrap_err();
    assert!(error.to_string().contains("check that its directory exists"), "{error}");
}

#[test]
fn an_empty_file_becomes_a_ledger() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gleaner.db");
    std::fs::write(&path, b"").unwrap();
    let connection = prepare(&path, BUSY).unwrap();
    assert_eq!(schema::inspect(&connection).unwrap(), Found::Version(SCHEMA_VERSION));
}

/// Verbs that only read work while somebody else writes.
#[test]
fn a_file_in_use_is_opened_without_its_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gleaner.db");
    let busy = prepare(&path, BUSY).unwrap();
    busy.execute_batch("BEGIN IMMEDIATE").unwrap();
    prepare(&path, Duration::ZERO).unwrap();
}

/// Two processes that start on a new file at once find one ledger.
#[test]
fn many_may_create_the_file_at_once() {
    for _ in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gleaner.db");
        let openers: Vec<_> = (0..4)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || prepare(&path, Duration::from_secs(30)).map(|_| ()))
            })
            .collect();
        for opener in openers {
            opener.join().unwrap().unwrap();
        }
    }
}

/// A file of schema version 1 is opened, brought up to date and read whole.
#[tokio::test]
async fn the_fixture_of_version_1_is_read() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1.db");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gleaner.db");
    std::fs::copy(fixture, &path).unwrap();
    let clock = crate::testing::clock();
    let now = clock.now();
    let clock: Arc<dyn Clock> = clock;
    let store = SqliteStore::open(&path, clock, Settings::default()).unwrap();
    let counts = store.count_entries().await.unwrap();
    let counts: Vec<_> = counts.iter().map(|(name, rows)| (name.as_str(), *rows)).collect();
    let wanted = [("dead", 1), ("dead:gone", 1), ("expected", 1), ("received", 1), ("stored", 1)];
    assert_eq!(counts, wanted);
    let page = store.list_entries(&domain::ports::EntryFilter::default(), None, 10).await.unwrap();
    assert_eq!(page.items.len(), 4);
    let row = &page.items[0];
    let next = row.swept(now, &domain::limits::Limits::default());
    let written = Entries::write(&store, &next, Expected::As(row.seen())).await.unwrap();
    assert_eq!(written, domain::ports::Written::Done);
    assert!(store.has_unresolved_post(domain::job::Kind::Batch, now).await.unwrap());
    assert_eq!(store.list_intents(Some("run"), None, 10).await.unwrap().items.len(), 1);
    let held = store.receive(10, Duration::from_secs(1)).await.unwrap();
    assert_eq!(held.len(), 1);
    assert_eq!(start(), now);
}
