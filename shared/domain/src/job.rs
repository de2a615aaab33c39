//! Jobs as the platform names them: ids, kinds, statuses and errors.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::JOB_ID_BYTES_MAX;

/// A job id, validated and in canonical spelling.
///
/// One to 128 bytes of visible ASCII without `/`, and neither `.` nor `..`, so that an id can be
/// a queue message, a database key and a path segment. An id that is a UUID (hyphenated, in
/// braces or as a URN, in any case) is kept in lower case with hyphens, so that two spellings are
/// one job; any other id is kept byte for byte.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(Box<str>);

/// Why a text is not a job id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JobIdError {
    /// The text is empty.
    #[error("the job id is empty")]
    Empty,
    /// The text is longer than [`JOB_ID_BYTES_MAX`].
    #[error("the job id has {bytes} bytes, at most {JOB_ID_BYTES_MAX} are allowed")]
    TooLong {
        /// Length of the refused text in bytes.
        bytes: usize,
    },
    /// The text holds a byte other than visible ASCII, or a `/`.
    #[error("the job id may hold visible ASCII characters other than `/` only")]
    Character,
    /// The text is `.` or `..`, which would change a path.
    #[error("the job id may not be `.` or `..`")]
    Dots,
}

impl JobIdError {
    /// A short, stable name for logs and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Empty => "job_id_empty",
            Self::TooLong { .. } => "job_id_too_long",
            Self::Character => "job_id_character",
            Self::Dots => "job_id_dots",
        }
    }
}

impl JobId {
    /// Validates a text and brings it into canonical spelling.
    ///
    /// # Errors
    /// Names the first rule that the text breaks; the text itself is never in the error.
    pub fn parse(text: &str) -> Result<Self, JobIdError> {
        if text.is_empty() {
            return Err(JobIdError::Empty);
        }
        if text.len() > JOB_ID_BYTES_MAX {
            return Err(JobIdError::TooLong { bytes: text.len() });
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/') {
            return Err(JobIdError::Character);
        }
        if text == "." || text == ".." {
            return Err(JobIdError::Dots);
        }
        // 32 hex digits without hyphens may be somebody's own id, so they stay as they are.
        if text.contains('-')
            && let Ok(uuid) = uuid::Uuid::try_parse(text)
        {
            return Ok(Self(uuid.hyphenated().to_string().into_boxed_str()));
        }
        Ok(Self(text.into()))
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "JobId({})", self.0)
    }
}

impl FromStr for JobId {
    type Err = JobIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// What sort of job it is; each has its own endpoints and its own webhook event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One URL.
    Extract,
    /// Up to 1,000 URLs.
    Batch,
    /// A site, followed from a seed.
    Crawl,
}

impl Kind {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Extract, Self::Batch, Self::Crawl];

    /// The kind's name in paths, tables, logs and result folders.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Extract => "extract",
            Self::Batch => "batch",
            Self::Crawl => "crawl",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(UnknownKind)
    }
}

/// A text that names no kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the kind must be `extract`, `batch` or `crawl`")]
pub struct UnknownKind;

/// The key of an entry: kind and job id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobKey {
    /// Which endpoints know the job.
    pub kind: Kind,
    /// The platform's id.
    pub job_id: JobId,
}

impl JobKey {
    /// Joins the two parts.
    pub const fn new(kind: Kind, job_id: JobId) -> Self {
        Self { kind, job_id }
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.job_id)
    }
}

/// A job's status at the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobStatus {
    /// Waiting.
    Queued,
    /// Running.
    Processing,
    /// Finished with a result (for batch and crawl: perhaps a partial one).
    Completed,
    /// Finished without a result.
    Failed,
    /// Ended by its owner.
    Cancelled,
    /// A status that this version does not know; neither terminal nor dropped.
    Unknown(Box<str>),
}

impl JobStatus {
    /// Reads the API's spelling; anything else is [`JobStatus::Unknown`], cut to 64 characters.
    pub fn from_api(text: &str) -> Self {
        match text {
            "queued" => Self::Queued,
            "processing" => Self::Processing,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "cancelled" => Self::Cancelled,
            other => Self::Unknown(other.chars().take(64).collect()),
        }
    }

    /// The API's spelling.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Queued => "queued",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unknown(text) => text,
        }
    }

    /// Whether the platform has finished with the job.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// What the platform says about a job that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobError {
    /// The platform's code, such as `TEMPORARY_BLOCK`; free text, cut to 64 characters.
    pub code: String,
    /// The platform's message, cut to 300 characters.
    pub message: String,
    /// Whether the platform says that another try may succeed.
    pub retryable: bool,
}

impl JobError {
    /// Bounds the two texts, which come from outside.
    pub fn new(code: &str, message: &str, retryable: bool) -> Self {
        Self {
            code: code.chars().take(64).collect(),
            message: message.chars().take(300).collect(),
            retryable,
        }
    }
}

/// Whether an item of a batch or crawl that failed with this code may succeed when tried again.
///
/// Items carry no `retryable` flag; the table follows the names of the 17 published codes
/// (docs/contract.md, "Extraction error codes"). An unknown code is not retryable.
pub fn item_code_is_retryable(code: &str) -> bool {
    matches!(
        code,
        "RATE_LIMITED"
            | "WORK_CONCURRENCY_LIMITED"
            | "WORK_CONCURRENCY_LEASE_EXPIRED"
            | "TEMPORARY_BLOCK"
            | "NETWORK_ERROR"
            | "PROXY_ERROR"
            | "TIMEOUT"
            | "INTERNAL_ERROR"
    )
}

#[cfg(test)]
mod tests;
