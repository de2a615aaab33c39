//! The ledger entry: one row per job that we owe somebody.
//!
//! All transitions are pure functions from the row as it was read to the row as it shall be. The
//! ledger writes the outcome only if the row is still as it was read ([`Entry::seen`]), so the
//! loser of a race learns the row as it is and decides anew.

mod follow_up;
mod operator;
mod transition;

use serde::{Deserialize, Serialize};

use crate::job::{JobError, JobId, JobKey};
use crate::post::Post;
use crate::request::JobRequest;
use crate::run::Run;
use crate::time::{Date, Timestamp};

pub use operator::Note;

/// One row of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Kind and job id; the row's key.
    pub key: JobKey,
    /// Where the job stands.
    pub state: State,
    /// Counts how often a terminal entry was opened again; starts at 0.
    pub generation: u32,
    /// Counts the writes of this row; starts at 1.
    pub version: u64,
    /// When this ledger first heard of the job.
    pub first_seen: Timestamp,
    /// `created_at` of the job at the API, once an answer has told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_created_at: Option<Timestamp>,
    /// UTC date in the result's name; fixed before the first store and never computed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dt: Option<Date>,
    /// When a task may work the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// When the sweep must look; present exactly while the row is not terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// When a task was last sent for the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enqueued_at: Option<Timestamp>,
    /// When the row may be forgotten, in epoch seconds; present exactly while it is terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// The submission and lineage that the job belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// Counters of looks, sweeps and reopenings.
    #[serde(default)]
    pub counters: Counters,
    /// Names the announcing call that wrote the row last, so that it knows its own write again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Progress over the result pages of a batch or crawl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// The batch or crawl whose failed items this row asks for once more. Such a row is no job of the
    /// platform's, and its id is one of ours; it is superseded by the batch that it becomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_up: Option<JobKey>,
    /// Why the row was dead before an operator discarded it; present exactly while it is
    /// [`DeadReason::Discarded`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded: Option<DeadReason>,
    /// The last [`crate::limits::HISTORY_MAX`] transitions, oldest first.
    #[serde(default)]
    pub history: Vec<Transition>,
}

/// Where a job stands in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum State {
    /// Submitted or seen open; nobody has said yet that it settled.
    Expected,
    /// Announced as (probably) settled; a worker shall look.
    Received,
    /// Failed, and about to be submitted again: money is at stake.
    Resubmitting {
        /// The POST that is being made.
        post: Post,
    },
    /// The result lies in the result store.
    Stored {
        /// Where and what.
        result: StoredObject,
    },
    /// Failed and replaced by another job.
    Superseded {
        /// The job that was submitted instead.
        by: JobId,
    },
    /// Given up, for a reason.
    Dead {
        /// Why.
        reason: DeadReason,
        /// What the platform said, if it said something.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<JobError>,
        /// The manifest of what was there (batch and crawl).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<StoredObject>,
    },
}

/// The state's name alone, for filters, indexes and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// See [`State::Expected`].
    Expected,
    /// See [`State::Received`].
    Received,
    /// See [`State::Resubmitting`].
    Resubmitting,
    /// See [`State::Stored`].
    Stored,
    /// See [`State::Superseded`].
    Superseded,
    /// See [`State::Dead`].
    Dead,
}

impl StateName {
    /// All names, in the order of a job's life.
    pub const ALL: [Self; 6] = [
        Self::Expected,
        Self::Received,
        Self::Resubmitting,
        Self::Stored,
        Self::Superseded,
        Self::Dead,
    ];

    /// The name in tables, logs and flags.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expected => "expected",
            Self::Received => "received",
            Self::Resubmitting => "resubmitting",
            Self::Stored => "stored",
            Self::Superseded => "superseded",
            Self::Dead => "dead",
        }
    }
}

impl std::fmt::Display for StateName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl State {
    /// The state's name.
    pub const fn name(&self) -> StateName {
        match self {
            Self::Expected => StateName::Expected,
            Self::Received => StateName::Received,
            Self::Resubmitting { .. } => StateName::Resubmitting,
            Self::Stored { .. } => StateName::Stored,
            Self::Superseded { .. } => StateName::Superseded,
            Self::Dead { .. } => StateName::Dead,
        }
    }

    /// The POST that may have made a job that nobody has linked yet.
    pub const fn open_post(&self) -> Option<&Post> {
        match self {
            Self::Resubmitting { post } => Some(post),
            _ => None,
        }
    }

    /// Whether nothing is owed any more.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Stored { .. } | Self::Superseded { .. } | Self::Dead { .. })
    }
}

/// Why an entry was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadReason {
    /// The job failed, and another try would not help.
    Failed,
    /// The job failed retryably as often as a lineage may.
    ResubmitsExhausted,
    /// The job failed and no submission of ours is known for it.
    UnlinkedFailure,
    /// The platform refused to take the job again.
    ResubmitRefused,
    /// Whether a POST was accepted could not be decided; nobody pays again.
    Ambiguous,
    /// The job was cancelled.
    Cancelled,
    /// The platform does not know the job.
    Gone,
    /// The job did not finish within the longest age.
    NeverSettled,
    /// Workers took the task again and again and never got as far as a look.
    Poison,
    /// One answer or item is larger than may be stored.
    TooLarge,
    /// The stored object is damaged or belongs to another job.
    CorruptObject,
    /// The result pages never agreed with the job's own counters.
    Inconsistent,
    /// The platform refuses to answer for this job although the account is in order.
    Denied,
    /// It was dead for another reason, and an operator decided that nobody need look at it again.
    Discarded,
}

impl DeadReason {
    /// All reasons.
    pub const ALL: [Self; 14] = [
        Self::Failed,
        Self::ResubmitsExhausted,
        Self::UnlinkedFailure,
        Self::ResubmitRefused,
        Self::Ambiguous,
        Self::Cancelled,
        Self::Gone,
        Self::NeverSettled,
        Self::Poison,
        Self::TooLarge,
        Self::CorruptObject,
        Self::Inconsistent,
        Self::Denied,
        Self::Discarded,
    ];

    /// The reason in tables, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::ResubmitsExhausted => "resubmits_exhausted",
            Self::UnlinkedFailure => "unlinked_failure",
            Self::ResubmitRefused => "resubmit_refused",
            Self::Ambiguous => "ambiguous",
            Self::Cancelled => "cancelled",
            Self::Gone => "gone",
            Self::NeverSettled => "never_settled",
            Self::Poison => "poison",
            Self::TooLarge => "too_large",
            Self::CorruptObject => "corrupt_object",
            Self::Inconsistent => "inconsistent",
            Self::Denied => "denied",
            Self::Discarded => "discarded",
        }
    }

    /// Whether word from the platform about the job opens the entry again.
    const fn reopens(self) -> bool {
        matches!(self, Self::Gone | Self::NeverSettled)
    }
}

impl std::fmt::Display for DeadReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The submission and lineage that a job belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Id of the submission's intent.
    pub submission: String,
    /// First job of the chain root -> resubmit -> resubmit.
    pub lineage: JobId,
    /// Position in the lineage; the root is 0.
    pub attempt: u32,
    /// Attempt from which the budget counts; moved by a redrive.
    #[serde(default)]
    pub base: u32,
    /// What a resubmit or a follow-up sends; absent for batch and crawl, which are never resubmitted
    /// whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<JobRequest>,
    /// The user's own id for the submission.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// An object in the result store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredObject {
    /// Its key, relative to the root of the store.
    pub key: String,
    /// Its size as it lies there, in bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes as they lie there, lower-case hex.
    pub sha256: String,
    /// Whether the platform called the job completed and gave no data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty: bool,
    /// Whether it was stored although tokens were still reserved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsettled: bool,
}

/// How often what was tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Counters {
    /// Answers of 404 in a row.
    pub missing: u32,
    /// Times the row was put off since its last progress; drives the back-off.
    pub put_offs: u32,
    /// Sweeps since the last look at the job.
    pub sweeps: u32,
    /// Answers in a row, beside single 404s, that told nothing of the job.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub unusable: u32,
    /// Times a terminal entry was opened again by word from the platform.
    pub reopens: u32,
    /// When the job was first seen finished while its children were still settling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settling_since: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_none_yet(count: &u32) -> bool {
    *count == 0
}

/// One line of an entry's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// When.
    pub at: Timestamp,
    /// The state before; absent for the first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<StateName>,
    /// The state after.
    pub to: StateName,
    /// What brought it about.
    pub cause: Cause,
    /// The delivery that announced it, as evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    /// Who decided it and why, where it was a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// What brings a transition about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A submission of ours.
    Submit,
    /// A lost answer found again in the job list.
    Adopt,
    /// A verified webhook delivery.
    Delivery,
    /// A look at the job list or at the job by `poll`.
    Poll,
    /// The platform's delivery log.
    Replay,
    /// A comparison of the platform's job list with the ledger.
    Reconcile,
    /// A worker.
    Work,
    /// The sweep.
    Sweep,
    /// A person.
    Operator,
}

/// The row as it was read; a write names it and fails when the row has moved on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Its state.
    pub state: StateName,
    /// Its generation.
    pub generation: u32,
    /// Its version.
    pub version: u64,
}

/// Word that a job has (probably) settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Who says so.
    pub cause: Cause,
    /// The delivery, if it was one.
    pub delivery_id: Option<String>,
    /// Names this call; random.
    pub token: String,
}

/// What an announcement does to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announced {
    /// The row is written, then a task is sent.
    Write(Box<Entry>),
    /// The row is ours already, from an earlier try of this very call: the task is sent.
    SendAgain,
    /// Nothing is to be done.
    Known,
}

#[cfg(test)]
mod tests;
