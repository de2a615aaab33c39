//! What surrounds the ledger: time that stands still, a platform that answers at once, and a
//! result store that keeps nothing. Only the ledger's own cost is left.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::entry::StoredObject;
use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::ports::{
    ApiError, ApiErrorKind, Clock, ExtractJob, Jobs, ListPage, ListQuery, LoadedSecrets,
    PageRequest, ParentPage, PortError, PutOutcome, Random, RawJson, Results, SecretSource,
    SubmitError,
};
use domain::request::JobRequest;
use domain::signature::secret::Secret;
use domain::time::Timestamp;

/// 2100-01-01, in seconds of the epoch: by the clock of a server that opens the file, nothing in
/// it is due or expired.
const START_S: i64 = 4_102_444_800;

/// A clock that is moved by hand. Nothing that is measured sleeps by it.
#[derive(Debug)]
pub(super) struct SetClock(AtomicI64);

impl Default for SetClock {
    fn default() -> Self {
        Self(AtomicI64::new(START_S))
    }
}

impl SetClock {
    pub(super) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::Relaxed)).unwrap_or(Timestamp::MAX)
    }

    /// Never ends: no deadline passes.
    async fn sleep(&self, _duration: Duration) {
        std::future::pending::<()>().await;
    }
}

/// Chance from a seed (`SplitMix64`).
#[derive(Debug)]
pub(super) struct Seeded(AtomicU64);

impl Seeded {
    pub(super) const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A random UUID, as the platform's job ids are.
    pub(super) fn job_id(&self) -> Result<JobId, domain::job::JobIdError> {
        let (high, low) = (self.next_u64(), self.next_u64());
        JobId::parse(&format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            (low >> 48) & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        ))
    }

    /// A number below `bound`.
    pub(super) fn below(&self, bound: u64) -> u64 {
        self.next_u64() % bound.max(1)
    }
}

impl Random for Seeded {
    fn next_u64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A platform whose extract jobs are all completed.
#[derive(Debug)]
pub(super) struct AllCompleted;

fn not_asked() -> ApiError {
    ApiError::new(ApiErrorKind::Refused, "this benchmark asks for extract jobs alone")
}

#[async_trait]
impl Jobs for AllCompleted {
    async fn extract(&self, _job_id: &JobId, _within: Duration) -> Result<ExtractJob, ApiError> {
        Ok(ExtractJob {
            status: JobStatus::Completed,
            created_at: Timestamp::from_second(START_S).ok(),
            error: None,
            has_data: true,
            raw: RawJson(r#"{"status":"completed","data":{"html":"<p>page</p>"}}"#.into()),
        })
    }

    async fn parent(
        &self,
        _key: &JobKey,
        _page: PageRequest,
        _within: Duration,
    ) -> Result<ParentPage, ApiError> {
        Err(not_asked())
    }

    async fn submit(&self, _: &JobRequest, _within: Duration) -> Result<JobId, SubmitError> {
        Err(SubmitError::Refused(not_asked()))
    }

    async fn list(&self, _: Kind, _: &ListQuery, _: Duration) -> Result<ListPage, ApiError> {
        Err(not_asked())
    }

    async fn probe(&self, _within: Duration) -> Result<(), ApiError> {
        Ok(())
    }
}

/// A result store that says that it has stored.
#[derive(Debug)]
pub(super) struct Nowhere;

/// An object as it would lie under a key.
pub(super) fn object(key: &str) -> StoredObject {
    StoredObject {
        key: key.to_owned(),
        bytes: 10_240,
        sha256: "5e".repeat(32),
        empty: false,
        unsettled: false,
    }
}

#[async_trait]
impl Results for Nowhere {
    async fn put_new(&self, key: &str, _content: &[u8]) -> Result<PutOutcome, PortError> {
        Ok(PutOutcome::Now(object(key)))
    }

    async fn read(&self, _key: &str) -> Result<Option<(StoredObject, Vec<u8>)>, PortError> {
        Ok(None)
    }

    async fn list(
        &self,
        _prefix: &str,
        _after: Option<&str>,
        _limit: u32,
    ) -> Result<Vec<String>, PortError> {
        Ok(Vec::new())
    }
}

/// One signing secret.
#[derive(Debug)]
pub(super) struct OneSecret(pub(super) Secret);

#[async_trait]
impl SecretSource for OneSecret {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        Ok(vec![self.0.clone()].into())
    }
}
