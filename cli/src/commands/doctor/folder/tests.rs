use super::super::finding::Outcome;
use super::*;

#[test]
fn little_room_is_told_before_there_is_none() {
    for (free, outcome) in [
        (0, Outcome::Failed),
        (FREE_BYTES_MIN - 1, Outcome::Failed),
        (FREE_BYTES_MIN, Outcome::Warning),
        (FREE_BYTES_LOW, Outcome::Ok),
        (u64::MAX, Outcome::Ok),
    ] {
        assert_eq!(judge_room(free).outcome, outcome, "{free}");
    }
    let here = tempfile::tempdir().unwrap();
    assert!(free_bytes(here.path()).unwrap() > 0);
}

#[test]
fn a_probe_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(writable(dir.path()).outcome, Outcome::Ok);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(writable(&dir.path().join("none")).outcome, Outcome::Failed);
}

#[test]
fn the_version_of_a_ledger_is_read_without_opening_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ledger.db");
    let write = |version: i32, mark: i32| {
        let mut header = [0; 200];
        header[VERSION_AT..VERSION_AT + 4].copy_from_slice(&version.to_be_bytes());
        header[MARK_AT..MARK_AT + 4].copy_from_slice(&mark.to_be_bytes());
        std::fs::write(&file, header).unwrap();
    };
    assert_eq!(older_version(&file), None, "there is none");
    for (version, mark, older) in [
        (1, embedded::APPLICATION_ID, Some(1)),
        (embedded::SCHEMA_VERSION, embedded::APPLICATION_ID, None),
        (99, embedded::APPLICATION_ID, None),
        // Somebody else's file, and one whose header is not there yet.
        (1, 7, None),
        (0, 0, None),
    ] {
        write(version, mark);
        assert_eq!(older_version(&file), older, "{version}");
    }
    std::fs::write(&file, "short").unwrap();
    assert_eq!(older_version(&file), None);
}
