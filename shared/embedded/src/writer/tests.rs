use domain::ports::{Entries, ErrorKind, Expected, Written};
use rusqlite::ErrorCode;
use tempfile::TempDir;

use super::*;
use crate::testing::{TestStore, entry, start, stranger, test_store};
use crate::{Settings, SqliteStore};

const BUSY: Duration = Duration::from_millis(20);

type Answer<T> = oneshot::Receiver<Result<T, Failure>>;

fn queued<T, F>(operation: F) -> (Box<dyn Operation>, Answer<T>)
where
    T: Send + 'static,
    F: FnMut(&Group) -> rusqlite::Result<T> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    (Box::new(Queued { operation, outcome: None, reply }), answer)
}

fn insert(connection: &Connection, name: &str) -> rusqlite::Result<usize> {
    connection.execute("INSERT INTO control (name, version, value) VALUES (?1, 1, '1')", [name])
}

fn names(connection: &Connection) -> Vec<String> {
    let mut statement = connection.prepare("SELECT name FROM control ORDER BY name").unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.collect::<rusqlite::Result<_>>().unwrap()
}

fn file() -> (TempDir, PathBuf, Connection) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gleaner.db");
    let connection = connection::prepare(&path, BUSY).unwrap();
    (directory, path, connection)
}

/// SQ-03: an operation that fails half way leaves nothing of itself, its siblings go on, and no
/// lock is left behind.
#[test]
fn a_failed_operation_is_undone_alone() {
    let (_directory, path, connection) = file();
    let (first, mut first_answer) = queued(|connection| insert(connection, "a"));
    let (bad, mut bad_answer) = queued(|connection| {
        insert(connection, "b")?;
        insert(connection, "a")
    });
    let (last, mut last_answer) = queued(|connection| insert(connection, "c"));
    let (_sender, mut receiver) = mpsc::channel(1);
    let mut group = vec![first, bad, last];
    let committed = commit(&connection, &mut group, &mut receiver);
    for operation in group {
        operation.answer(committed.clone());
    }
    assert_eq!(first_answer.try_recv().unwrap().unwrap(), 1);
    assert_eq!(last_answer.try_recv().unwrap().unwrap(), 1);
    let failure = bad_answer.try_recv().unwrap().unwrap_err();
    assert!(matches!(failure, Failure::Operation(_)), "{failure:?}");
    let other = Connection::open(&path).unwrap();
    other.busy_timeout(Duration::ZERO).unwrap();
    insert(&other, "d").unwrap();
    assert_eq!(names(&connection), ["a", "c", "d"]);
}

/// An operation that ends the transaction takes the group with it; nobody is told `Done`.
#[test]
fn a_lost_transaction_fails_the_whole_group() {
    let (_directory, _path, connection) = file();
    let (first, mut first_answer) = queued(|connection| insert(connection, "a"));
    let (bad, mut bad_answer) = queued(|connection| {
        // What SQLite does by itself on a full disk.
        connection.execute_batch("ROLLBACK")?;
        insert(connection, "b")?;
        insert(connection, "b")
    });
    let (last, mut last_answer) = queued(|connection| insert(connection, "c"));
    let (_sender, mut receiver) = mpsc::channel(1);
    let mut group = vec![first, bad, last];
    let committed = commit(&connection, &mut group, &mut receiver);
    for operation in group {
        operation.answer(committed.clone());
    }
    for answer in [&mut first_answer, &mut bad_answer, &mut last_answer] {
        let failure = answer.try_recv().unwrap().unwrap_err();
        assert!(matches!(failure, Failure::Commit(_)), "{failure:?}");
    }
    assert_eq!(names(&connection), ["b"]);
}

/// What arrives while a group runs joins it; nobody who stopped waiting is served.
#[test]
fn late_operations_join_and_unwanted_ones_are_left_out() {
    let (_directory, _path, connection) = file();
    let (sender, mut receiver) = mpsc::channel(2);
    let (late, mut late_answer) = queued(|connection| insert(connection, "late"));
    let (unwanted, answer) = queued(|connection| insert(connection, "unwanted"));
    drop(answer);
    sender.try_send(late).unwrap();
    let mut group = vec![unwanted];
    commit(&connection, &mut group, &mut receiver).unwrap();
    assert_eq!(group.len(), 2);
    for operation in group {
        operation.answer(Ok(()));
    }
    assert_eq!(late_answer.try_recv().unwrap().unwrap(), 1);
    assert_eq!(names(&connection), ["late"]);
}

#[test]
fn a_group_is_bounded() {
    let (_directory, _path, connection) = file();
    let (sender, mut receiver) = mpsc::channel(1);
    let mut answers = Vec::new();
    let mut group = Vec::new();
    for _ in 0..GROUP_OPERATIONS_MAX {
        let (operation, answer) = queued(|_| Ok(()));
        group.push(operation);
        answers.push(answer);
    }
    let (over, _answer) = queued(|_| Ok(()));
    sender.try_send(over).unwrap();
    commit(&connection, &mut group, &mut receiver).unwrap();
    assert_eq!(group.len(), GROUP_OPERATIONS_MAX);
    assert!(receiver.try_recv().is_ok());
}

/// A commit that fails is reported to everybody, and the next write finds a fresh connection.
#[tokio::test]
async fn the_writer_recovers_from_a_failed_commit() {
    let (_directory, path, connection) = file();
    connection.pragma_update(None, "foreign_keys", 1).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE parent (id INTEGER PRIMARY KEY); \
             CREATE TABLE child (parent REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
        )
        .unwrap();
    let writer = Writer::start(connection, &path, BUSY).unwrap();
    let orphan = |connection: &Group| {
        insert(connection, "lost")?;
        connection.execute("INSERT INTO child VALUES (1)", [])
    };
    let failure = writer.write(orphan).await.unwrap_err();
    assert!(matches!(failure, Failure::Commit(_)), "{failure:?}");
    assert_eq!(failure.into_port("ledger", "write").kind, ErrorKind::Unavailable);
    writer.write(|connection| insert(connection, "kept")).await.unwrap();
    let kept = writer.write(|connection| Ok(names(connection))).await.unwrap();
    assert_eq!(kept, ["kept"]);
}

/// SQ-02: while another process holds the write lock, a delivery is `Unavailable` and not
/// written; afterwards it is accepted.
#[tokio::test]
async fn a_foreign_lock_makes_writes_unavailable_for_its_time() {
    let TestStore { clock, directory, .. } = test_store();
    let path = directory.path().join("busy.db");
    let store = SqliteStore::open(&path, clock, Settings { busy_timeout: BUSY }).unwrap();
    let other = stranger(&store);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let row = entry("a");
    let expected = Expected::Absent(start());
    let (first, second) = tokio::join!(
        Entries::write(&store, &row, expected),
        Entries::write(&store, &row, expected)
    );
    assert_eq!(first.unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(second.unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(store.load(&row.key).await.unwrap(), None);
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(Entries::write(&store, &row, expected).await.unwrap(), Written::Done);
}

/// A full file refuses what needs room, tells so, and takes writes again when there is room.
#[tokio::test]
async fn a_full_file_is_unavailable_until_there_is_room() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let resize = async |pages: i64| {
        let set = move |connection: &Group| {
            connection
                .pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, i64>(0))
        };
        store.write("ledger", "test", set).await.unwrap()
    };
    // SQLite keeps the limit at the file's present size.
    resize(1).await;
    let mut row = entry("a");
    row.token = Some("x".repeat(50_000));
    let expected = Expected::Absent(start());
    let error = Entries::write(&store, &row, expected).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    let code = std::error::Error::source(&error)
        .and_then(|failure| failure.source())
        .and_then(|source| source.downcast_ref::<Arc<rusqlite::Error>>())
        .and_then(|error| error.sqlite_error_code());
    assert_eq!(code, Some(ErrorCode::DiskFull));
    assert_eq!(store.load(&row.key).await.unwrap(), None);
    resize(100_000).await;
    assert_eq!(Entries::write(&store, &row, expected).await.unwrap(), Written::Done);
}
