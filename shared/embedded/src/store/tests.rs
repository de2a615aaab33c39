use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use domain::ports::{Entries, Expected, Written};

use super::*;
use crate::testing::{child_argument, clock, entry, key, start};

/// Deliveries of each process, as SQ-01 asks for.
const DELIVERIES: usize = 200;

/// Deliveries that both processes make.
const SHARED: usize = 50;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, clock(), Settings::default()).unwrap()
}

fn spawn(test: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .arg(format!("child:{}", path.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The ids that a process reports as written, in lines of `done:<id>`.
fn reported(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines
        .map_while(Result::ok)
        .filter_map(|line| line.split_once("done:").map(|(_, id)| id.to_owned()))
}

/// Delivers ids of its own and shared ones from eight callers; says which it has written.
async fn deliver(store: &SqliteStore, prefix: &str) -> Vec<String> {
    let own = (0..DELIVERIES).map(|number| format!("{prefix}-{number}"));
    let ids: Vec<_> = own.chain((0..SHARED).map(|number| format!("shared-{number}"))).collect();
    let mut callers = Vec::new();
    for some in ids.chunks(ids.len().div_ceil(8)) {
        let (store, some) = (store.clone(), some.to_vec());
        callers.push(tokio::spawn(async move {
            let mut done = Vec::new();
            for id in some {
                let written =
                    Entries::write(&store, &entry(&id), Expected::Absent(start())).await.unwrap();
                if written == Written::Done {
                    done.push(id);
                }
            }
            done
        }));
    }
    let mut done = Vec::new();
    for caller in callers {
        done.append(&mut caller.await.unwrap());
    }
    done
}

async fn assert_each_once(store: &SqliteStore, done: Vec<String>) {
    assert_eq!(done.len(), 2 * DELIVERIES + SHARED);
    let ids: BTreeSet<_> = done.into_iter().collect();
    assert_eq!(ids.len(), 2 * DELIVERIES + SHARED);
    for id in ids {
        assert_eq!(store.load(&key(&id)).await.unwrap(), Some(entry(&id)), "{id}");
    }
}

/// SQ-01: two processes on one file, 200 deliveries each and 50 that both make: none is refused,
/// none is lost, and each is won once.
#[tokio::test]
async fn two_processes_lose_no_delivery() {
    if let Some(path) = child_argument() {
        for id in deliver(&open(&path), "child").await {
            println!("done:{id}");
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gleaner.db");
    let store = open(&path);
    let mut child = spawn("store::tests::two_processes_lose_no_delivery", &path);
    let mut done = deliver(&store, "parent").await;
    done.extend(reported(&mut child));
    assert!(child.wait().unwrap().success());
    assert_each_once(&store, done).await;
}

/// SQ-01: the same with two stores in one process.
#[tokio::test]
async fn two_stores_lose_no_delivery() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gleaner.db");
    let (first, second) = (open(&path), open(&path));
    let (mut done, more) = tokio::join!(deliver(&first, "a"), deliver(&second, "b"));
    done.extend(more);
    assert_each_once(&first, done).await;
}

/// What was reported as written is there after SIGKILL at any instant.
#[tokio::test]
async fn a_killed_process_loses_nothing_it_reported() {
    if let Some(path) = child_argument() {
        let store = open(&path);
        for number in 0..100_000 {
            let row = entry(&number.to_string());
            let written = Entries::write(&store, &row, Expected::Absent(start())).await.unwrap();
            assert_eq!(written, Written::Done);
            println!("done:{number}");
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gleaner.db");
    let mut child = spawn("store::tests::a_killed_process_loses_nothing_it_reported", &path);
    let mut done = Vec::new();
    for id in reported(&mut child) {
        if done.len() == 50 {
            child.kill().unwrap();
        }
        done.push(id);
    }
    assert!(!child.wait().unwrap().success());
    assert!(done.len() > 50);
    let store = open(&path);
    for id in done {
        assert_eq!(store.load(&key(&id)).await.unwrap(), Some(entry(&id)), "{id}");
    }
}

/// A read that begins after a write was reported sees it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_see_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("gleaner.db"));
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..50 {
                    let row = entry(&format!("{caller}-{number}"));
                    Entries::write(&store, &row, Expected::Absent(start())).await.unwrap();
                    assert_eq!(store.load(&row.key).await.unwrap().as_ref(), Some(&row));
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

/// Dropping the last clone closes the file: `SQLite` then removes its companions.
#[tokio::test]
async fn dropping_the_store_closes_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gleaner.db");
    let store = open(&path);
    Entries::write(&store, &entry("a"), Expected::Absent(start())).await.unwrap();
    drop(store);
    let left: BTreeMap<_, _> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|file| file.unwrap())
        .map(|file| (file.file_name(), file.metadata().unwrap().len()))
        .collect();
    assert_eq!(left.keys().collect::<Vec<_>>(), ["gleaner.db"]);
    assert_eq!(open(&path).load(&key("a")).await.unwrap(), Some(entry("a")));
}
