use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use super::*;
use crate::testing::child_argument;

#[test]
fn the_lock_is_given_once_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("gleaner.db");
    let lock = ServerLock::acquire(&ledger).unwrap();
    let error = ServerLock::acquire(&ledger).unwrap_err();
    assert!(matches!(error, LockError::Held { .. }), "{error:?}");
    assert!(error.to_string().contains("gleaner.db"), "{error}");
    ServerLock::acquire(&directory.path().join("other.db")).unwrap();
    drop(lock);
    ServerLock::acquire(&ledger).unwrap();
}

/// A server that is killed with SIGKILL leaves no lock behind.
#[test]
fn the_lock_ends_with_its_process() {
    if let Some(ledger) = child_argument() {
        let _lock = ServerLock::acquire(&ledger).unwrap();
        println!("locked");
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("gleaner.db");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "server_lock::tests::the_lock_ends_with_its_process", "--nocapture"])
        .arg(format!("child:{}", ledger.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with("locked")));
    ServerLock::acquire(&ledger).unwrap_err();
    child.kill().unwrap();
    child.wait().unwrap();
    ServerLock::acquire(&ledger).unwrap();
}

#[test]
fn a_missing_directory_is_named() {
    let error = ServerLock::acquire(Path::new("/nonexistent/gleaner.db")).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/gleaner.db.lock"), "{error}");
}
