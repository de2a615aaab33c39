use domain::ports::{Entries, Expected};
use rusqlite::Connection;

use super::*;
use crate::Settings;
use crate::testing::{TestStore, clock, entry, key, start, test_store};

/// SQ-05: the `.db` file alone lacks what its WAL holds; a backup is whole, while the store is in
/// use.
#[tokio::test]
async fn a_backup_is_whole_where_a_copied_file_is_not() {
    let TestStore { store, directory, .. } = test_store();
    Entries::write(&store, &entry("a"), Expected::Absent(start())).await.unwrap();
    let copied = directory.path().join("copied.db");
    std::fs::copy(store.path(), &copied).unwrap();
    let rows =
        Connection::open(&copied)
            .unwrap()
            .query_row("SELECT count(*) FROM entries", [], |row| row.get::<_, i64>(0));
    assert!(rows.is_err() || rows == Ok(0));

    let target = directory.path().join("backup.db");
    store.backup(&target).await.unwrap();
    Entries::write(&store, &entry("later"), Expected::Absent(start())).await.unwrap();
    let backup = SqliteStore::open(&target, clock(), Settings::default()).unwrap();
    assert_eq!(backup.load(&key("a")).await.unwrap(), Some(entry("a")));
    assert_eq!(backup.load(&key("later")).await.unwrap(), None);
    let left = std::fs::read_dir(directory.path()).unwrap();
    let partial = left
        .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().ends_with(".partial"));
    assert_eq!(partial.count(), 0);
}

#[tokio::test]
async fn a_backup_overwrites_nothing() {
    let TestStore { store, directory, .. } = test_store();
    let target = directory.path().join("backup.db");
    std::fs::write(&target, "mine").unwrap();
    let error = store.backup(&target).await.unwrap_err();
    assert!(matches!(error, BackupError::Exists { .. }), "{error:?}");
    assert_eq!(std::fs::read(&target).unwrap(), b"mine");
    let error = store.backup(Path::new("/nonexistent/backup.db")).await.unwrap_err();
    assert!(matches!(error, BackupError::Sqlite(_)), "{error:?}");
}

#[tokio::test]
async fn what_a_broken_backup_left_is_replaced() {
    let TestStore { store, directory, .. } = test_store();
    let target = directory.path().join("backup.db");
    std::fs::write(directory.path().join("backup.db.partial"), "half").unwrap();
    store.backup(&target).await.unwrap();
    SqliteStore::open(&target, clock(), Settings::default()).unwrap();
}
