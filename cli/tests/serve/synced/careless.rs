//! A receiver as it is often written: the row is committed before the answer, and whether the
//! commit is durable is left to a setting.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;

use super::order::{Lapse, answers, lapses_of_answers};
use super::trace::{Call, parse, traced};
use crate::process::run;

/// `PRAGMA synchronous`, the job that is delivered under it, and what is to be found.
const SETTINGS: [(&str, &str, Option<Lapse>); 3] = [
    ("FULL", "00000000-0000-4000-8000-00000000f011", None),
    ("NORMAL", "00000000-0000-4000-8000-00000000a041", Some(Lapse::RowNotSynced)),
    ("OFF", "00000000-0000-4000-8000-0000000000ff", Some(Lapse::RowNotSynced)),
];

/// Answers one delivery.
fn receive(folder: &Path, setting: &str, listener: &TcpListener) {
    let database = Connection::open(folder.join("ledger.db")).unwrap();
    database.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    database.pragma_update(None, "synchronous", setting).unwrap();
    database.execute_batch("CREATE TABLE entries (job_id TEXT UNIQUE, state TEXT)").unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = vec![0; 1_024];
    let length = stream.read(&mut request).unwrap();
    let text = String::from_utf8_lossy(&request[..length]);
    let job_id = text.split('"').nth(3).unwrap();
    database.execute("INSERT INTO entries VALUES (?1, 'received')", [job_id]).unwrap();
    stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").unwrap();
}

/// From outside, a receiver that syncs is like one that does not.
#[test]
fn no_sender_can_tell_a_careless_receiver() {
    let dir = TempDir::new().unwrap();
    for (setting, job_id, _) in SETTINGS {
        let folder = dir.path().join(setting);
        std::fs::create_dir(&folder).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let receiver = std::thread::spawn(move || receive(&folder, setting, &listener));
        let mut stream = TcpStream::connect(to).unwrap();
        let request = format!("POST /webhook HTTP/1.1\r\n\r\n{{\"job_id\":\"{job_id}\"}}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 202"), "{setting}: {answer}");
        receiver.join().unwrap();
    }
}

/// SQ-04: the check of the server's traces finds a receiver that commits without a sync, and has
/// nothing against the same one with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_careless_receiver_is_caught() {
    let dir = TempDir::new().unwrap();
    let trace = dir.path().join("trace");
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "synced::careless::no_sender_can_tell_a_careless_receiver"]);
    let (code, out, talk) = run(traced(&command, &trace, &[]).await).await;
    assert!(code == 0 && out.contains("1 passed"), "{out}{talk}");
    let calls = parse(&std::fs::read_to_string(trace).unwrap());
    assert_eq!(answers(&calls).len(), SETTINGS.len());
    for (setting, job_id, lapse) in SETTINGS {
        let is_log = |call: &&Call| call.file().ends_with(&format!("{setting}/ledger.db-wal"));
        let wal = calls.iter().find(is_log).unwrap().file();
        let found = lapses_of_answers(&calls, wal);
        let found = found.iter().find(|(job, _)| job == job_id).map(|(_, lapse)| *lapse);
        assert_eq!(found, lapse, "{setting}");
    }
}
