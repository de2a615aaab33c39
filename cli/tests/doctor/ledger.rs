//! The ledger in trouble: files that are none, rows that are overdue, paused, dead or damaged.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::entry::{Cause, DeadReason, Entry, State};
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::pause::{Pauses, Scope};
use domain::ports::{Clock as _, Entries as _, Expected};
use domain::time::{Timestamp, after, before};
use embedded::SqliteStore;
use rusqlite::Connection;
use system::SystemClock;

use crate::bench::Folder;
use crate::doctor;

const CHECKS: [&str; 6] = ["queue", "results", "due", "upkeep", "pauses", "jobs"];

fn folder() -> (Folder, PathBuf) {
    let folder = Folder::new("http://127.0.0.1:9");
    let dir = folder.path().join("gleaner-data");
    std::fs::create_dir(&dir).unwrap();
    let file = dir.join("ledger.db");
    (folder, file)
}

fn store(file: &std::path::Path) -> SqliteStore {
    SqliteStore::open(file, Arc::new(SystemClock), embedded::Settings::default()).unwrap()
}

fn now() -> Timestamp {
    SystemClock.now()
}

/// A row that somebody should have looked at a while ago.
fn due(id: &str, ago: Duration) -> Entry {
    let key = JobKey::new(Kind::Extract, JobId::parse(id).unwrap());
    let mut entry = Entry::expected(key, None, Cause::Submit, now(), &Limits::default());
    entry.due_at = Some(before(now(), ago));
    entry
}

/// A file that is no ledger, or a later program's, fails and is left as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_ledger_fails() {
    let (folder, file) = folder();
    std::fs::write(&file, "something else altogether, and long enough to be read as a file")
        .unwrap();
    let diagnosis = doctor(&folder, &[]).await;
    diagnosis.expect("ledger", "failed", "is not a ledger of gleaner");
    for check in CHECKS {
        diagnosis.expect(check, "skipped", "the ledger is not open");
    }
    std::fs::remove_file(&file).unwrap();
    drop(store(&file));
    Connection::open(&file).unwrap().pragma_update(None, "user_version", 99).unwrap();
    doctor(&folder, &[]).await.expect("ledger", "failed", "has schema version 99");
}

/// An older ledger is told and not upgraded: an older server may be running on it.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_ledger_is_left_as_it_is() {
    let (folder, file) = folder();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/embedded/tests/fixtures/v1.db");
    std::fs::copy(fixture, &file).unwrap();
    let diagnosis = doctor(&folder, &[]).await;
    diagnosis.expect("ledger", "warning", "has schema version 1");
    assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(fixture).unwrap());
}

/// What nobody looked at for a day fails; what waits for an hour is told.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_overdue_is_told() {
    let (folder, file) = folder();
    let ledger = store(&file);
    let write = async |id, ago| {
        let outcome = ledger.write(&due(id, ago), Expected::Absent(now())).await.unwrap();
        assert_eq!(outcome, domain::ports::Written::Done);
    };
    write("soon", Duration::from_secs(30)).await;
    doctor(&folder, &[]).await.expect("due", "ok", "jobs are due: 1, the oldest since 3");
    write("late", Duration::from_hours(1)).await;
    doctor(&folder, &[]).await.expect("due", "warning", "jobs are due: 2, the oldest since 1 hour");
    write("forgotten", Duration::from_hours(50)).await;
    let diagnosis = doctor(&folder, &[]).await;
    diagnosis.expect("due", "failed", "jobs are due: 3, the oldest since 2 days");
    diagnosis.expect("due", "ok", "submissions are due: none");
}

/// A row that does not decode fails, and the others are still counted.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_do_not_decode_fail() {
    let (folder, file) = folder();
    let ledger = store(&file);
    for id in ["whole", "broken"] {
        let entry = due(id, Duration::from_mins(1));
        ledger.write(&entry, Expected::Absent(now())).await.unwrap();
    }
    let connection = Connection::open(&file).unwrap();
    let changed =
        connection.execute("UPDATE entries SET json = '{' WHERE job_id = 'broken'", []).unwrap();
    assert_eq!(changed, 1);
    let diagnosis = doctor(&folder, &[]).await;
    let found = "rows of the ledger that do not decode: 1, the first: entry extract broken ";
    diagnosis.expect("due", "failed", found).expect("due", "ok", "jobs are due: 1");
}

/// Pauses in force and dead jobs are told, each with what helps.
#[tokio::test(flavor = "multi_thread")]
async fn pauses_and_dead_jobs_are_told() {
    let (folder, file) = folder();
    let ledger = store(&file);
    let entry = due("dead", Duration::ZERO);
    let state = State::Dead { reason: DeadReason::Gone, error: None, result: None };
    let dead = entry.settled(state, Cause::Work, now(), &Limits::default());
    ledger.write(&dead, Expected::Absent(now())).await.unwrap();
    let until = after(now(), Duration::from_mins(5));
    let pauses = Pauses::default();
    pauses.extend(&ledger, Scope::Paying, until, "payment_required").await.unwrap();
    let diagnosis = doctor(&folder, &[]).await;
    diagnosis
        .expect("pauses", "warning", "submissions are paused until")
        .expect("pauses", "warning", "payment_required")
        .expect("jobs", "warning", "1 dead (1 gone)");
    pauses.extend(&ledger, Scope::All, until, "denied").await.unwrap();
    doctor(&folder, &[]).await.expect("pauses", "warning", "all calls are paused until");
}
