//! Writes a small ledger in the present schema version, to be kept as a fixture of it.
//!
//! `cargo run -p embedded --example fixture shared/embedded/tests/fixtures/v1.db`; a fixture of a
//! released version is never written again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::entry::{Announced, Announcement, Cause, DeadReason, Entry, State, StoredObject};
use domain::intent::{Intent, Submission};
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::ports::{
    Clock, Control, ControlRow, Entries, Expected, IntentExpected, Intents, Queue,
};
use domain::request::{FetchOptions, JobRequest};
use domain::task::Task;
use domain::time::Timestamp;
use embedded::{Settings, SqliteStore};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// 2026-03-01T12:00:00Z, in seconds of the epoch.
const NOW_S: i64 = 1_772_366_400;

struct FixedClock(Timestamp);

#[async_trait]
impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }

    async fn sleep(&self, _duration: Duration) {}
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let path = std::env::args_os().nth(1).ok_or("name the file to write")?;
    let now = Timestamp::from_second(NOW_S)?;
    let store =
        SqliteStore::open(Path::new(&path), Arc::new(FixedClock(now)), Settings::default())?;
    for entry in entries(now)? {
        store.write(&entry, Expected::Absent(now)).await?;
    }
    let request = JobRequest::batch(
        ["https://example.com/a", "https://example.com/b"],
        FetchOptions::default(),
    )?;
    let submission = Submission {
        run: "run".to_owned(),
        position: 0,
        request,
        reference: Some("ours".to_owned()),
    };
    let intent = Intent::open(&submission, "token".to_owned(), now, &Limits::default());
    store.write_intent(&intent, IntentExpected::Absent(now)).await?;
    let control = ControlRow { name: "pause/all".to_owned(), version: 1, value: "{}".to_owned() };
    store.write_control(&control).await?;
    store.send(&Task { key: key(Kind::Extract, "received")? }, Duration::ZERO).await?;
    Ok(())
}

fn entries(now: Timestamp) -> Result<Vec<Entry>, Failure> {
    let limits = Limits::default();
    let announcement = Announcement {
        cause: Cause::Delivery,
        delivery_id: Some("delivery".to_owned()),
        token: "token".to_owned(),
    };
    let announced =
        Entry::announce(None, &key(Kind::Extract, "received")?, &announcement, now, &limits);
    let Announced::Write(received) = announced else {
        return Err("a new row is always written".into());
    };
    let fresh = |id, kind| {
        Ok::<_, Failure>(Entry::expected(key(kind, id)?, None, Cause::Submit, now, &limits))
    };
    let result = StoredObject {
        key: "kind=batch/dt=2026-03-01/stored/_manifest.json".to_owned(),
        bytes: 100,
        sha256: "0".repeat(64),
        empty: false,
        unsettled: false,
    };
    let gone = State::Dead { reason: DeadReason::Gone, error: None, result: None };
    Ok(vec![
        fresh("expected", Kind::Extract)?,
        *received,
        fresh("stored", Kind::Batch)?.settled(State::Stored { result }, Cause::Work, now, &limits),
        fresh("gone", Kind::Crawl)?.settled(gone, Cause::Work, now, &limits),
    ])
}

fn key(kind: Kind, id: &str) -> Result<JobKey, Failure> {
    Ok(JobKey::new(kind, JobId::parse(id)?))
}
