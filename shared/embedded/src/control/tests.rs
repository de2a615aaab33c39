use super::*;
use crate::testing::{TestStore, test_store};

fn row(version: u64, value: &str) -> ControlRow {
    ControlRow { name: "pause/all".to_owned(), version, value: value.to_owned() }
}

#[tokio::test]
async fn versions_follow_one_another() {
    let TestStore { store, directory: _directory, .. } = test_store();
    assert_eq!(store.load_control("pause/all").await.unwrap(), None);
    for version in [0, 2, u64::MAX] {
        assert!(!store.write_control(&row(version, "x")).await.unwrap(), "{version}");
    }
    assert!(store.write_control(&row(1, "a")).await.unwrap());
    assert!(!store.write_control(&row(1, "b")).await.unwrap());
    assert!(!store.write_control(&row(3, "b")).await.unwrap());
    assert!(store.write_control(&row(2, "c")).await.unwrap());
    assert!(!store.write_control(&row(2, "d")).await.unwrap());
    assert_eq!(store.load_control("pause/all").await.unwrap(), Some(row(2, "c")));
    assert_eq!(store.load_control("pause/paying").await.unwrap(), None);
}

#[tokio::test]
async fn the_size_limit_is_exact() {
    let TestStore { store, directory: _directory, .. } = test_store();
    assert!(store.write_control(&row(1, &"x".repeat(ROW_BYTES_MAX))).await.unwrap());
    let error = store.write_control(&row(2, &"x".repeat(ROW_BYTES_MAX + 1))).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
}
