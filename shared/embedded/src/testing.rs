//! What the tests of this crate share.

use std::sync::Arc;

use domain::entry::{Cause, Entry};
use domain::intent::{Intent, Submission};
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::request::{FetchOptions, JobRequest};
use domain::testing::ManualClock;
use domain::time::Timestamp;
use tempfile::TempDir;

use crate::{Settings, SqliteStore};

/// A clock at [`start`].
pub(crate) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(start()))
}

pub(crate) fn start() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

/// A store in a directory of its own.
pub(crate) struct TestStore {
    pub(crate) store: SqliteStore,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) directory: TempDir,
}

pub(crate) fn test_store() -> TestStore {
    let directory = tempfile::tempdir().unwrap();
    let clock = clock();
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
