use std::fs;

use domain::job::JobId;
use domain::place::extract_key;

use super::*;

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn on_disk() -> (tempfile::TempDir, ObjectResults) {
    let home = tempfile::tempdir().unwrap();
    let results = ObjectResults::on_disk(home.path(), now()).unwrap();
    (home, results)
}

fn key_of(job_id: &str) -> String {
    extract_key(&JobId::parse(job_id).unwrap(), "2026-11-30".parse().unwrap())
}

/// Fifty puts at a time: one wins, the others find its object, whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_puts_wins() {
    let (home, on_disk) = on_disk();
    for results in [on_disk, ObjectResults::in_memory()] {
        let key = key_of("contended");
        let puts = (0..50).map(|number| {
            let (results, key) = (results.clone(), key.clone());
            let content = format!("{{\"writer\":{number}}}").repeat(100).into_bytes();
            tokio::spawn(async move { (results.put_new(&key, &content).await.unwrap(), content) })
        });
        let outcomes = futures_util::future::join_all(puts).await;
        let outcomes: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
        let winners: Vec<_> =
            outcomes.iter().filter(|(put, _)| matches!(put, PutOutcome::Now(_))).collect();
        let [(PutOutcome::Now(won), written)] = winners.as_slice() else {
            panic!("{} puts won", winners.len());
        };
        for (put, _) in &outcomes {
            if let PutOutcome::Already { object, content } = put {
                assert_eq!((object, content), (won, written));
            }
        }
        assert_eq!(results.read(&key).await.unwrap(), Some((won.clone(), written.clone())));
    }
    let folder = home.path().join("kind=extract/dt=2026-11-30");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "no unfinished file is left");
}

/// WK-15: sizes around the ledger's limit and far above it; a second store of the same job finds
/// the first.
#[tokio::test]
async fn results_of_any_size_are_stored_as_they_are() {
    let (_home, results) = on_disk();
    for (name, content) in [
        ("ascii", "x".repeat(399_000)),
        ("limit", "x".repeat(409_600)),
        ("euro", "\u{20ac}".repeat(150_000)),
        ("large", "{\"html\":\"<p>&amp;</p>\"}\n".repeat(220_000)),
        ("empty", String::new()),
    ] {
        let key = key_of(name);
        let PutOutcome::Now(object) = results.put_new(&key, content.as_bytes()).await.unwrap()
        else {
            panic!("{name} was there");
        };
        let found = results.read(&key).await.unwrap().unwrap();
        assert!(found == (object.clone(), content.clone().into_bytes()), "{name}");
        let again = results.put_new(&key, content.as_bytes()).await.unwrap();
        assert!(again == PutOutcome::Already { object, content: content.into_bytes() }, "{name}");
    }
}

/// WK-21: ids that are one on a file system without case, or change a path, stay apart.
#[tokio::test]
async fn ids_stay_apart_in_names() {
    let (home, results) = on_disk();
    let long = "A".repeat(128);
    let ids = ["a_b", "a%2Fb", "A_B", "A_b", "a-b", "a..b", "...", "\\..\\x", "C:", "nul", &long];
    for id in ids {
        let put = results.put_new(&key_of(id), id.as_bytes()).await.unwrap();
        assert!(matches!(put, PutOutcome::Now(_)), "{id}");
    }
    for id in ids {
        assert_eq!(results.read(&key_of(id)).await.unwrap().unwrap().1, id.as_bytes());
    }
    let folder = home.path().join("kind=extract/dt=2026-11-30");
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().to_lowercase())
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), ids.len());
}

/// What lies on the disk is what the description says, and gzip by its name.
#[tokio::test]
async fn the_description_is_that_of_the_file() {
    let (home, results) = on_disk();
    let key = "kind=batch/dt=2026-11-30/a/r-part-00001.ndjson.gz";
    let PutOutcome::Now(object) = results.put_new(key, b"{}\n").await.unwrap() else {
        panic!("it was there");
    };
    let bytes = fs::read(home.path().join(key)).unwrap();
    assert_eq!(object, object::describe(key, &bytes));
    assert_eq!(bytes[..2], [0x1f, 0x8b]);
    let manifest = "kind=batch/dt=2026-11-30/a/_manifest.json";
    results.put_new(manifest, b"{\"a\":1}").await.unwrap();
    assert_eq!(fs::read(home.path().join(manifest)).unwrap(), b"{\"a\":1}");
}

/// A damaged file is reported by its key and never overwritten.
#[tokio::test]
async fn a_damaged_file_is_reported_and_kept() {
    let (home, results) = on_disk();
    let key = key_of("damaged");
    results.put_new(&key, b"a result").await.unwrap();
    let path = home.path().join(&key);
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 5;
    bytes[last] ^= 1;
    for damaged in [bytes.clone(), bytes[..9].to_vec(), Vec::new(), b"{}".to_vec()] {
        fs::write(&path, &damaged).unwrap();
        for error in [
            results.read(&key).await.unwrap_err(),
            results.put_new(&key, b"a result").await.unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::Corrupt);
            assert!(format!("{error:?}").contains(&key), "{error:?}");
        }
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
}

/// A file larger than any result is not read into memory.
#[tokio::test]
async fn a_file_without_bound_is_not_read() {
    let (home, results) = on_disk();
    let key = key_of("sparse");
    results.put_new(&key, b"a result").await.unwrap();
    let file = fs::OpenOptions::new().write(true).open(home.path().join(&key)).unwrap();
    file.set_len(u64::try_from(CONTENT_BYTES_MAX).unwrap() + 1).unwrap();
    assert_eq!(results.read(&key).await.unwrap_err().kind, ErrorKind::Corrupt);
}

/// A crash before the link leaves the unfinished file alone, which hinders nobody.
#[tokio::test]
async fn an_unfinished_file_is_no_object() {
    let (home, results) = on_disk();
    let key = key_of("crashed");
    let staged = home.path().join(format!("{key}#1"));
    fs::create_dir_all(staged.parent().unwrap()).unwrap();
    fs::write(&staged, b"half").unwrap();
    assert_eq!(results.read(&key).await.unwrap(), None);
    assert!(results.list("", None, 10).await.unwrap().is_empty());
    let put = results.put_new(&key, b"whole").await.unwrap();
    assert!(matches!(put, PutOutcome::Now(_)));
    assert_eq!(results.read(&key).await.unwrap().unwrap().1, b"whole");
    assert_eq!(fs::read(&staged).unwrap(), b"half");
}

/// A file where a folder is needed stands for any disk that refuses a write.
#[tokio::test]
async fn a_disk_that_refuses_is_an_error_and_leaves_nothing() {
    let (home, results) = on_disk();
    fs::write(home.path().join("kind=extract"), b"in the way").unwrap();
    let error = results.put_new(&key_of("a"), b"{}").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
}
