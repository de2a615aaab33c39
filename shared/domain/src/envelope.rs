//! Reading the few fields that a delivery is trusted for, out of a verified body.
//!
//! One parser serves every stage, so two stages cannot disagree about a body. It keeps nothing
//! but what the pointers name: a body of 32 MiB costs one pass and no copy.

pub mod pointer;
mod scan;

use std::collections::BTreeMap;

use serde::Deserialize;

use self::pointer::PointerList;
use self::scan::Found;
use crate::job::{JobId, JobIdError, Kind};

/// Deepest nesting of objects and arrays in a body, ignored fields included.
pub const JSON_DEPTH_MAX: usize = 64;

/// Longest unknown event type kept for logs, in characters.
const UNKNOWN_EVENT_CHARS_MAX: usize = 64;

/// Longest delivery or webhook id kept, in bytes.
const EVIDENCE_BYTES_MAX: usize = 128;

/// Where the fields of an envelope are, and what its event types mean.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnvelopeFormat {
    /// Where the job id may be. The first pointer that leads anywhere counts.
    pub job_id: PointerList,
    /// Where the event type may be.
    pub event: PointerList,
    /// Where the delivery id may be.
    pub delivery_id: PointerList,
    /// Where the webhook id may be.
    pub webhook_id: PointerList,
    /// The sender's event types and the kind of job that each one completes. Exact, case included.
    pub events: BTreeMap<String, Kind>,
}

impl Default for EnvelopeFormat {
    fn default() -> Self {
        Self {
            job_id: PointerList::of(&["/data/job_id", "/job_id", "/data/id"]),
            event: PointerList::of(&["/event", "/event_type"]),
            delivery_id: PointerList::of(&["/delivery_id", "/id"]),
            webhook_id: PointerList::of(&["/webhook_id"]),
            events: Kind::ALL
                .into_iter()
                .map(|kind| (EventType::completed(kind).as_str().to_owned(), kind))
                .collect(),
        }
    }
}

/// What a verified delivery says. Hints only: the job's state at the API is the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The job, in canonical spelling.
    pub job_id: JobId,
    /// What happened.
    pub event: EventType,
    /// The sender's id of the delivery. Evidence for logs, never a key.
    pub delivery_id: Option<String>,
    /// The subscription that it claims to come from.
    pub webhook_id: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// An extract job settled.
    ExtractCompleted,
    /// A batch settled.
    BatchCompleted,
    /// A crawl settled.
    CrawlCompleted,
    /// Any other type; at most 64 characters, control characters replaced. Empty if the body has
    /// none, or none that is a string of reasonable length.
    Unknown(String),
}

impl EventType {
    /// The event type that reports a job of `kind`.
    pub fn completed(kind: Kind) -> Self {
        match kind {
            Kind::Extract => Self::ExtractCompleted,
            Kind::Batch => Self::BatchCompleted,
            Kind::Crawl => Self::CrawlCompleted,
        }
    }

    /// The kind of job, which decides where to fetch it; `None` for unknown types.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::ExtractCompleted => Some(Kind::Extract),
            Self::BatchCompleted => Some(Kind::Batch),
            Self::CrawlCompleted => Some(Kind::Crawl),
            Self::Unknown(_) => None,
        }
    }

    /// The platform's word, or the bounded text of an unknown type.
    pub fn as_str(&self) -> &str {
        match self {
            Self::ExtractCompleted => "extract_completed",
            Self::BatchCompleted => "batch_completed",
            Self::CrawlCompleted => "crawl_completed",
            Self::Unknown(text) => text,
        }
    }

    fn unknown(text: &str) -> Self {
        let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        Self::Unknown(text.chars().take(UNKNOWN_EVENT_CHARS_MAX).map(shown).collect())
    }
}

/// Why a verified body is unusable: final, the same bytes never get better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Nothing, or white space only.
    #[error("the body is empty")]
    Empty,
    /// Not UTF-8, which JSON must be.
    #[error("the body is not UTF-8")]
    NotUtf8,
    /// Not one JSON value from the first byte to the last.
    #[error("the body is not JSON")]
    NotJson,
    /// JSON, but no object.
    #[error("the body is not a JSON object")]
    NotObject,
    /// Nested deeper than [`JSON_DEPTH_MAX`].
    #[error("the body is nested deeper than 64 levels")]
    TooDeep,
    /// A key on the way to a field occurs twice in one object.
    #[error("a key on the way to a field occurs twice")]
    DuplicateKey,
    /// No pointer leads to a job id.
    #[error("the body has no job id")]
    JobIdMissing,
    /// The job id is a number, null, an object or anything else but text.
    #[error("the job id is not a string")]
    JobIdNotString,
    /// The job id is text that no job can have.
    #[error("the job id is not valid")]
    JobIdInvalid(#[source] JobIdError),
}

impl EnvelopeError {
    /// The stable code for logs and metrics.
    pub fn code(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::NotUtf8 => "not_utf8",
            Self::NotJson => "not_json",
            Self::NotObject => "not_object",
            Self::TooDeep => "too_deep",
            Self::DuplicateKey => "duplicate_key",
            Self::JobIdMissing => "job_id_missing",
            Self::JobIdNotString => "job_id_not_string",
            Self::JobIdInvalid(error) => error.code(),
        }
    }
}

impl Envelope {
    /// Reads a verified body.
    ///
    /// Only the job id can make a body unusable. A missing event type is an unknown one; delivery
    /// and webhook ids that are no short plain strings are dropped.
    ///
    /// # Errors
    ///
    /// [`EnvelopeError`], the same for the same bytes wherever it is called.
    pub fn parse(format: &EnvelopeFormat, body: &[u8]) -> Result<Self, EnvelopeError> {
        let fields = [&format.job_id, &format.event, &format.delivery_id, &format.webhook_id];
        let [job_id, event, delivery_id, webhook_id] = scan::scan(fields, body)?;
        let job_id = match job_id {
            Some(Found::Text(text)) => JobId::parse(&text).map_err(EnvelopeError::JobIdInvalid)?,
            Some(Found::LongText { bytes }) => {
                return Err(EnvelopeError::JobIdInvalid(JobIdError::TooLong { bytes }));
            }
            Some(Found::Other) => return Err(EnvelopeError::JobIdNotString),
            None => return Err(EnvelopeError::JobIdMissing),
        };
        let event = match event {
            Some(Found::Text(text)) => format
                .events
                .get(&text)
                .map_or_else(|| EventType::unknown(&text), |kind| EventType::completed(*kind)),
            _ => EventType::unknown(""),
        };
        Ok(Self {
            job_id,
            event,
            delivery_id: delivery_id.and_then(evidence),
            webhook_id: webhook_id.and_then(evidence),
        })
    }
}

fn evidence(found: Found) -> Option<String> {
    let Found::Text(text) = found else { return None };
    let is_plain = text.len() <= EVIDENCE_BYTES_MAX && text.bytes().all(|b| b.is_ascii_graphic());
    (is_plain && !text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests;
