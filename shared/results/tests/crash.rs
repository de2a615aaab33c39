//! A process that is killed while it puts objects.

#![expect(clippy::unwrap_used, reason = "what prepares a test fails by panicking, too")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use domain::ports::{PutOutcome, Results};
use results::ObjectResults;

/// What the child says of an object that it was told is stored.
const STORED: &str = "stored:";
/// Objects after which the child is killed, wherever it is by then.
const KILLED_AFTER: [usize; 5] = [1, 2, 3, 5, 8];
/// Most objects that a child puts, should nobody kill it.
const PUTS_MAX: u32 = 10_000;

fn store(root: &Path) -> ObjectResults {
    ObjectResults::on_disk(root, "2026-11-30T12:00:00Z".parse().unwrap()).unwrap()
}

/// Large enough that most of the time goes into writing it.
fn content(number: u32) -> Vec<u8> {
    (0..200_000_u32)
        .flat_map(|at| at.wrapping_mul(number | 1).wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect()
}

fn key(round: usize, number: u32) -> String {
    format!("kind=batch/dt=2026-11-30/round-{round}-{number}/r-part-00001.ndjson.gz")
}

/// Puts objects until it is killed, and says so after each.
async fn put_until_killed(root: &Path, round: usize) {
    let results = store(root);
    // Past the capture of the test harness, to the parent.
    let mut parent = std::io::stdout();
    for number in 0..PUTS_MAX {
        let put = results.put_new(&key(round, number), &content(number)).await.unwrap();
        assert!(matches!(put, PutOutcome::Now(_)));
        writeln!(parent, "\n{STORED}{number}").unwrap();
    }
}

/// Starts this very test as a child that puts objects, and kills it. Gives what it was told is
/// stored.
fn kill_a_child(root: &Path, round: usize, after: usize) -> Vec<u32> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_process_leaves_whole_objects_only"])
        .arg(format!("child:{round}:{}", root.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stored = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        if let Some(number) = line.strip_prefix(STORED) {
            stored.push(number.parse().unwrap());
        }
        if stored.len() == after {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    stored
}

/// A crash leaves objects whole or not at all, everything that was reported as stored is there,
/// and the next process goes on where the first one stopped.
#[test]
fn a_killed_process_leaves_whole_objects_only() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // A test binary takes any argument as one more filter.
    let child = std::env::args().find_map(|argument| {
        let (round, root) = argument.strip_prefix("child:")?.split_once(':')?;
        Some((round.parse().ok()?, PathBuf::from(root)))
    });
    if let Some((round, root)) = child {
        return runtime.block_on(put_until_killed(&root, round));
    }
    let home = tempfile::tempdir().unwrap();
    for (round, after) in KILLED_AFTER.into_iter().enumerate() {
        let stored = kill_a_child(home.path(), round, after);
        assert_eq!(stored.len(), after);
        runtime.block_on(async {
            let results = store(home.path());
            let prefix = format!("kind=batch/dt=2026-11-30/round-{round}-");
            let keys = results.list(&prefix, None, PUTS_MAX).await.unwrap();
            for number in stored {
                assert!(keys.contains(&key(round, number)), "{number} was lost");
            }
            for number in 0..u32::try_from(keys.len()).unwrap() {
                let (_, found) = results.read(&key(round, number)).await.unwrap().unwrap();
                assert!(found == content(number), "object {number} is not whole");
            }
            let next = u32::try_from(keys.len()).unwrap();
            let put = results.put_new(&key(round, next), &content(next)).await.unwrap();
            assert!(matches!(put, PutOutcome::Now(_)), "what is half done hinders nobody");
        });
    }
}
