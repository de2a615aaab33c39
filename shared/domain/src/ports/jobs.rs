use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::job::{JobError, JobId, JobKey, JobStatus, Kind};
use crate::request::{Format, JobRequest};
use crate::time::Timestamp;

/// The platform's API, as far as the steps need it.
///
/// Every call ends within `within`, the body included. All but [`Jobs::submit`] are free of
/// charge and may be repeated at will.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Reads an extract job with its result.
    ///
    /// # Errors
    /// See [`ApiError`].
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError>;

    /// Reads a batch or crawl with one page of its results.
    ///
    /// # Errors
    /// See [`ApiError`]; `TooLarge` asks for a smaller page.
    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError>;

    /// Submits a job. **Paid**: a second identical call makes a second job.
    ///
    /// # Errors
    /// [`SubmitError::Unanswered`] when the job may exist all the same.
    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError>;

    /// Reads one page of a kind's job list.
    ///
    /// # Errors
    /// See [`ApiError`]; an answer without the list is `Unreadable`, never an empty list.
    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError>;

    /// Asks an account-level endpoint whether the key is in order.
    ///
    /// # Errors
    /// See [`ApiError`].
    async fn probe(&self, within: Duration) -> Result<(), ApiError>;
}

/// An answer of the API as it came, kept verbatim.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(pub Box<str>);

impl fmt::Debug for RawJson {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RawJson({} bytes)", self.0.len())
    }
}

/// An extract job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractJob {
    /// Its status.
    pub status: JobStatus,
    /// When it was created; `None` if absent or unreadable.
    pub created_at: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<JobError>,
    /// Whether the answer holds any `html` or `markdown`.
    pub has_data: bool,
    /// The whole answer.
    pub raw: RawJson,
}

/// Which page of results to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// The page, counted from 1.
    pub page: u32,
    /// Items per page, 1 to [`crate::limits::RESULT_PAGE_MAX`].
    pub page_size: u32,
}

/// A batch or crawl with one page of its results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentPage {
    /// Its status.
    pub status: JobStatus,
    /// When it was created; `None` if absent or unreadable.
    pub created_at: Option<Timestamp>,
    /// Tokens still reserved for children that are queued, processing or settling.
    pub tokens_reserved: u64,
    /// Items that the job has in all, if the answer says so (batch: accepted URLs; crawl: pages
    /// discovered).
    pub total: Option<u64>,
    /// Items that the counters say ran to their end: completed or failed. They were paid for.
    pub ran: u64,
    /// Items that the counters call cancelled.
    pub cancelled: u64,
    /// Items that are not finished (batch only).
    pub pending: u64,
    /// The page's items; `None` when the answer holds null.
    pub items: Option<Vec<Item>>,
    /// The answer without its `results`.
    pub summary: RawJson,
}

impl ParentPage {
    /// Items that the counters call finished, in whatever way.
    pub const fn finished(&self) -> u64 {
        self.ran.saturating_add(self.cancelled)
    }
}

/// One item of a batch or crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What makes it unique in its job: `input_index` (batch) or `url` (crawl).
    pub key: String,
    /// Its address.
    pub url: String,
    /// Its status, free text.
    pub status: String,
    /// Why it failed.
    pub error: Option<JobError>,
    /// The whole item.
    pub raw: RawJson,
}

/// Which part of a job list to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// The page, counted from 1.
    pub page: u32,
    /// Jobs per page, 1 to [`crate::limits::LIST_PAGE_MAX`].
    pub page_size: u32,
    /// Created at or after this instant.
    pub created_from: Option<Timestamp>,
    /// Created at or before this instant.
    pub created_to: Option<Timestamp>,
}

/// One page of a job list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// The readable jobs.
    pub jobs: Vec<Listed>,
    /// Entries that could not be read and were left out, one by one.
    pub unreadable: u32,
    /// How many pages there are, if the answer says so; not to be trusted.
    pub page_count: Option<u64>,
    /// Whether `page_count` understates.
    pub is_capped: bool,
}

impl ListPage {
    /// Whether the page held nothing, not even something unreadable.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.unreadable == 0
    }
}

/// One job of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub job_id: JobId,
    /// Its status.
    pub status: JobStatus,
    /// When it was created; `None` if absent or unreadable.
    pub created_at: Option<Timestamp>,
    /// The URL (extract) or seed (crawl).
    pub url: Option<String>,
    /// Accepted URLs (batch).
    pub accepted_urls: Option<u64>,
    /// Its formats, if listed.
    pub formats: Option<Vec<Format>>,
    /// Whether scripts are run, if listed.
    pub render_js: Option<bool>,
}

/// Trouble of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// What to do about it.
    pub kind: ApiErrorKind,
    /// HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// The platform's code, cut to 64 characters.
    pub code: Option<String>,
    /// The platform's message, or ours about the connection, cut to 300 characters.
    pub message: String,
    /// The platform's own word whether another try may succeed.
    pub retryable: Option<bool>,
    /// How long to wait, already clamped.
    pub retry_after: Option<Duration>,
    /// The platform's trace id.
    pub correlation_id: Option<String>,
}

/// What a caller should do about an [`ApiError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiErrorKind {
    /// 429: slow down.
    Throttled,
    /// 402: the account is out of tokens.
    PaymentRequired,
    /// 401 or 403: the key is wrong or may not do this.
    Denied,
    /// 404 or 410: the job is not there (any more).
    Missing,
    /// Any other 4xx: this request will never be accepted.
    Refused,
    /// 408, 425, 5xx, a time-out or a broken connection: try again later.
    Unavailable,
    /// A 2xx answer that is not what the contract says.
    Unreadable,
    /// The answer is larger than the caller's cap.
    TooLarge,
}

impl ApiErrorKind {
    /// The kind in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::PaymentRequired => "payment_required",
            Self::Denied => "denied",
            Self::Missing => "missing",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Unreadable => "unreadable",
            Self::TooLarge => "too_large",
        }
    }
}

impl ApiError {
    /// An error without an answer of the platform behind it.
    pub fn new(kind: ApiErrorKind, message: &str) -> Self {
        Self {
            kind,
            status: None,
            code: None,
            message: message.chars().take(300).collect(),
            retryable: None,
            retry_after: None,
            correlation_id: None,
        }
    }

    /// What the platform said, as the ledger keeps it.
    pub fn as_job_error(&self) -> JobError {
        let code = self.code.as_deref().unwrap_or(self.kind.as_str());
        JobError::new(code, &self.message, self.retryable.unwrap_or(false))
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(formatter, "the API answered {status}")?,
            None => formatter.write_str("the API gave no usable answer")?,
        }
        if let Some(code) = &self.code {
            write!(formatter, " {code}")?;
        }
        if !self.message.is_empty() {
            write!(formatter, ": {}", self.message)?;
        }
        if let Some(id) = &self.correlation_id {
            write!(formatter, " (correlation id {id})")?;
        }
        Ok(())
    }
}

impl std::error::Error for ApiError {}

/// Trouble of a paid POST.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The platform did not take the job: nothing was paid.
    #[error(transparent)]
    Refused(ApiError),
    /// No answer, or one that does not say: the job may exist, and may have been paid for.
    #[error(transparent)]
    Unanswered(ApiError),
}
