//! What the tests of this crate share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::entry::{Cause, Entry};
use domain::intent::{Intent, Submission};
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::ports::Clock;
use domain::request::{FetchOptions, JobRequest};
use domain::time::{Timestamp, after};
use tempfile::TempDir;

use crate::{Settings, SqliteStore};

/// A clock that stands still until it is moved; sleeping moves it.
pub(crate) struct TestClock(Mutex<Timestamp>);

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(start())))
    }

    pub(crate) fn advance(&self, duration: Duration) {
        let mut now = self.0.lock().unwrap();
        *now = after(*now, duration);
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }

    async fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

pub(crate) fn start() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

/// A store in a directory of its own.
pub(crate) struct TestStore {
    pub(crate) store: SqliteStore,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) directory: TempDir,
}

pub(crate) fn test_store() -> TestStore {
    let directory = tempfile::tempdir().unwrap();
    let clock = TestClock::new();
    let path = directory.path().join("gleaner.db");
    let store = SqliteStore::open(&path, clock.clone(), Settings::default()).unwrap();
    TestStore { store, clock, directory }
}

/// A connection that knows nothing of this crate.
pub(crate) fn stranger(store: &SqliteStore) -> rusqlite::Connection {
    rusqlite::Connection::open(store.path()).unwrap()
}

pub(crate) fn key(id: &str) -> JobKey {
    JobKey::new(Kind::Extract, JobId::parse(id).unwrap())
}

pub(crate) fn entry(id: &str) -> Entry {
    entry_of(key(id))
}

pub(crate) fn entry_of(key: JobKey) -> Entry {
    Entry::expected(key, None, Cause::Submit, start(), &Limits::default())
}

/// The file that a test's parent process named, if this process is its child: a test binary takes
/// any argument as one more filter.
pub(crate) fn child_argument() -> Option<std::path::PathBuf> {
    std::env::args().find_map(|argument| argument.strip_prefix("child:").map(Into::into))
}

/// The intent of one submission, open.
pub(crate) fn intent(run: &str, position: u64, request: JobRequest) -> Intent {
    let submission = Submission { run: run.to_owned(), position, request, reference: None };
    Intent::open(&submission, "token".to_owned(), start(), &Limits::default())
}

pub(crate) fn extract(url: &str) -> JobRequest {
    JobRequest::extract(url, FetchOptions::default()).unwrap()
}

pub(crate) fn crawl(url: &str) -> JobRequest {
    JobRequest::crawl(url, FetchOptions::default(), 1, 10).unwrap()
}
