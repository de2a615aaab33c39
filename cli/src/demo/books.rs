//! The simulator's books, as the judge reads them.

use std::collections::BTreeMap;

use domain::time::Timestamp;
use serde::Deserialize;

/// Version of the books' format that is read.
pub(super) const VERSION: u32 = 1;

/// One page of the books.
#[derive(Deserialize)]
pub(super) struct Page {
    pub(super) version: u32,
    pub(super) jobs: Vec<Job>,
    pub(super) next: Option<u64>,
}

/// One job that the platform accepted.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Job {
    pub(super) kind: String,
    #[serde(rename = "job_id")]
    pub(super) id: String,
    pub(super) urls: Vec<String>,
    pub(super) finished_at: Option<Timestamp>,
    pub(super) status: String,
    pub(super) retryable: Option<bool>,
    pub(super) charged_tokens: u64,
    pub(super) items: Items,
    #[serde(default)]
    pub(super) parts: Option<Vec<Part>>,
    pub(super) deliveries: Deliveries,
    pub(super) answer_lost: bool,
}

impl Job {
    /// Whether the platform has finished with it.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.status.as_str(), "completed" | "failed" | "cancelled")
    }
}

/// Counts of a batch's or crawl's items.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Items {
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
}

/// One finished part of a job.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Part {
    pub(super) url: String,
    pub(super) status: String,
    pub(super) html: Option<Content>,
    pub(super) markdown: Option<Content>,
}

/// A text that the platform serves.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Content {
    pub(super) sha256: String,
}

/// What became of a job's deliveries.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Deliveries {
    pub(super) accepted: u64,
    /// Whether the first one of which anything became was accepted at once.
    #[serde(default)]
    pub(super) first_accepted: Option<bool>,
}

/// The simulator's counters.
#[derive(Debug, Clone, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the simulator calls it so")]
pub(super) struct Counters {
    pub(super) jobs: u64,
    pub(super) unfinished_jobs: u64,
    pub(super) pending_attempts: u64,
    pub(super) counters: Counted,
}

/// What the simulator counted.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Counted {
    /// Calls by endpoint and status.
    pub(super) calls: BTreeMap<String, BTreeMap<String, u64>>,
    /// Calls for a page of results after the first.
    pub(super) later_result_pages: u64,
    pub(super) webhooks: BTreeMap<String, u64>,
    /// Deliveries signed with their webhook's secret, by the status of the answer.
    pub(super) genuine_answers: BTreeMap<String, u64>,
    /// Deliveries signed with another one.
    pub(super) missigned_answers: BTreeMap<String, u64>,
}
