use std::fs::OpenOptions;
use std::time::SystemTime;

use super::*;

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn place(path: &Path, age: Duration) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, b"x").unwrap();
    let seconds = u64::try_from(now().as_second()).unwrap();
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) - age;
    OpenOptions::new().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_folder_is_made_and_left_clean() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("a/b/c");
    let disk = Disk::open(&root, now()).unwrap();
    assert_eq!(disk.root(), root.canonicalize().unwrap());
    assert!(names(&root).is_empty());
    Disk::open(&root, now()).unwrap();
}

#[test]
fn a_file_is_no_folder() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, b"x").unwrap();
    assert!(matches!(Disk::open(&file, now()), Err(OpenError::NotAFolder { .. })));
    let below = Disk::open(&file.join("below"), now());
    assert!(matches!(below, Err(OpenError::Create { .. })));
    assert_eq!(fs::read(&file).unwrap(), b"x");
}

/// `/proc` refuses new files also to root, whom permissions do not stop.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_no_files_is_refused() {
    let opened = Disk::open(Path::new("/proc/self"), now());
    assert!(matches!(opened, Err(OpenError::NotWritable { .. })));
}

/// A crash leaves unfinished files; those of a put that may be running stay.
#[test]
fn old_leftovers_are_removed_and_never_listed() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("kind=extract/dt=2026-11-30");
    let hour = Duration::from_hours(1);
    place(&folder.join("old.json.gz#1"), hour + Duration::from_secs(1));
    place(&folder.join("young.json.gz#12"), hour);
    place(&folder.join("ahead.json.gz#1"), Duration::ZERO);
    place(&folder.join("whole.json.gz"), 9 * hour);
    place(&folder.join("whole#x"), 9 * hour);
    place(&home.path().join(".probe-abc"), 9 * hour);
    let disk = Disk::open(home.path(), now()).unwrap();
    let kept = ["ahead.json.gz#1", "whole#x", "whole.json.gz", "young.json.gz#12"];
    assert_eq!(names(&folder), kept);
    assert_eq!(names(home.path()), ["kind=extract"]);
    let listed = disk.list("", None, 10).unwrap();
    assert_eq!(listed, ["kind=extract/dt=2026-11-30/whole.json.gz"]);
}

/// Byte order of keys is not the order of names in folders: `-` and `.` sort before `/`.
#[test]
fn a_listing_is_in_byte_order_from_any_place() {
    let home = tempfile::tempdir().unwrap();
    let mut keys = ["a-b", "a.b", "a/b", "a/b-c", "a/c/d", "a/c=d", "a0", "b/_m", "b/a", "b/a0/z"];
    for key in keys {
        place(&home.path().join(key), Duration::ZERO);
    }
    keys.sort_unstable();
    let disk = Disk::open(home.path(), now()).unwrap();
    for prefix in ["", "a", "a/", "a/c", "b/a", "b/a0/", "c", "a-"] {
        for after in std::iter::once(None).chain(keys.iter().map(|key| Some(*key))) {
            for limit in [0, 1, 3, 100] {
                let expected: Vec<_> = keys
                    .iter()
                    .filter(|key| key.starts_with(prefix) && after.is_none_or(|a| **key > a))
                    .take(limit)
                    .collect();
                let listed = disk.list(prefix, after, limit).unwrap();
                assert_eq!(listed.iter().collect::<Vec<_>>(), expected, "{prefix} {after:?}");
            }
        }
    }
}

#[test]
fn the_memory_of_durable_folders_is_bounded() {
    let home = tempfile::tempdir().unwrap();
    let disk = Disk::open(home.path(), now()).unwrap();
    for number in 0..=DURABLE_FOLDERS_MAX {
        fs::create_dir_all(home.path().join(format!("d{number}"))).unwrap();
        disk.make_folders_durable(&format!("d{number}/object")).unwrap();
    }
    assert_eq!(disk.durable().len(), 1);
    disk.make_folders_durable("object").unwrap();
    assert!(disk.make_folders_durable("nowhere/below/object").is_err());
}
