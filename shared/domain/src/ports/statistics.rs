use std::time::Duration;

use async_trait::async_trait;

use super::ApiError;
use crate::time::Timestamp;

/// The platform's own count of what the account did.
#[async_trait]
pub trait Statistics: Send + Sync {
    /// Counts the requests from an instant up to now. Free of charge, and changes nothing.
    ///
    /// The platform says neither whether whole days are counted, nor by which of a job's dates, nor
    /// how far the count lags behind, nor whether the pages of batches and crawls, synchronous
    /// requests, maps and searches are in it.
    ///
    /// # Errors
    /// See [`ApiError`].
    async fn counted_since(&self, from: Timestamp, within: Duration) -> Result<Counted, ApiError>;
}

/// What the platform counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests that succeeded, by the sum of its days.
    pub succeeded: u64,
    /// Requests that failed, by the sum of its days.
    pub failed: u64,
    /// Its count of extractions, if it gave one.
    pub extractions: Option<u64>,
    /// Days that could not be read and are not in the sums.
    pub unreadable: u32,
}

impl Counted {
    /// As many as the platform counts in any way.
    pub fn most(&self) -> u64 {
        self.succeeded.saturating_add(self.failed).max(self.extractions.unwrap_or(0))
    }
}
