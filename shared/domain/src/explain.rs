//! One job's story, out of everything that is known of it: what happened, how it stands, and what
//! will happen next without anybody's doing.

mod present;
mod timeline;

use crate::entry::Entry;
use crate::intent::Intent;
use crate::job::{JobError, JobKey, JobStatus};
use crate::limits::Limits;
use crate::pause::Pause;
use crate::ports::{Delivery, WebhookId};
use crate::time::Timestamp;

/// Everything that is known of a job.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The present.
    pub now: Timestamp,
    /// The bounds in force.
    pub limits: &'a Limits,
    /// The job.
    pub key: &'a JobKey,
    /// Its row.
    pub entry: Option<&'a Entry>,
    /// The submission that made it.
    pub intent: Option<&'a Intent>,
    /// What the platform says of it.
    pub sight: &'a Sight,
    /// What the delivery logs hold of it.
    pub deliveries: &'a [Logged],
    /// What lies in the result store where the row says that its result is.
    pub object: &'a ObjectSight,
    /// The pause of the account that covers it.
    pub pause: Option<&'a Pause>,
}

/// A row of a webhook's delivery log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Whose log it is in.
    pub webhook: WebhookId,
    /// The row.
    pub delivery: Delivery,
}

/// What the platform says of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// Nobody asked.
    NotAsked,
    /// It could not be asked, for this reason.
    Failed(String),
    /// It knows no such job.
    Missing,
    /// It knows the job.
    Job {
        /// How it stands.
        status: JobStatus,
        /// When it was created, if the answer says so.
        created_at: Option<Timestamp>,
        /// Why it failed.
        error: Option<JobError>,
    },
}

/// What lies in the result store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectSight {
    /// The row names no object, or nobody looked.
    NotAsked,
    /// The store could not be asked, for this reason.
    Failed(String),
    /// There is no such object.
    Missing,
    /// It has the size and checksum that the row says.
    Whole,
    /// It is another than the row says, or is damaged.
    Differs,
}

/// A job's story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What happened, oldest first.
    pub timeline: Vec<Moment>,
    /// How the job stands, in one sentence.
    pub present: String,
    /// What will happen next, in one sentence, if nobody does anything.
    pub next: String,
    /// When that will be; `None` if never, or at no known time.
    pub next_at: Option<Timestamp>,
    /// What does not fit together, or needs a person, with what to do.
    pub remarks: Vec<String>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// Who says so.
    pub source: Source,
    /// What, in a few words.
    pub text: String,
}

/// Who says that something happened. The order is that of moments at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The record of the submission.
    Intent,
    /// The platform's answer about the job.
    Platform,
    /// The platform's delivery log.
    DeliveryLog,
    /// The row's history.
    Ledger,
}

impl Source {
    /// The source in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Intent => "submission",
            Self::Platform => "platform",
            Self::DeliveryLog => "delivery log",
            Self::Ledger => "ledger",
        }
    }
}

/// Tells the story.
pub fn explain(known: Known<'_>) -> Explanation {
    let present = present::of(known);
    Explanation {
        timeline: timeline::of(known),
        present: present.sentence,
        next: present.next,
        next_at: present.next_at,
        remarks: present.remarks,
    }
}

#[cfg(test)]
mod tests;
