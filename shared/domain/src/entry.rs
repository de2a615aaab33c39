//! The ledger entry: one row per job that we owe somebody.
//!
//! All transitions are pure functions from the row as it was read to the row as it shall be. The
//! ledger writes the outcome only if the row is still as it was read ([`Entry::seen`]), so the
//! loser of a race learns the row as it is and decides anew.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::job::{JobError, JobId, JobKey};
use crate::limits::{HISTORY_MAX, Limits, REOPENS_MAX};
use crate::post::Post;
use crate::request::JobRequest;
use crate::run::Run;
use crate::time::{Date, Timestamp, after};

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
    /// The last [`HISTORY_MAX`] transitions, oldest first.
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
}

impl DeadReason {
    /// All reasons.
    pub const ALL: [Self; 13] = [
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
    /// What a resubmit sends; absent for batch and crawl, which are never resubmitted whole.
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
    /// Times a terminal entry was opened again by word from the platform.
    pub reopens: u32,
    /// When the job was first seen finished while its children were still settling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settling_since: Option<Timestamp>,
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

impl Entry {
    /// A new row for a job that we submitted or saw open.
    pub fn expected(
        key: JobKey,
        link: Option<Link>,
        cause: Cause,
        now: Timestamp,
        limits: &Limits,
    ) -> Self {
        let mut entry = Self::blank(key, State::Expected, now);
        entry.link = link;
        entry.due_at = Some(after(now, limits.announce_grace));
        entry.history.push(Transition {
            at: now,
            from: None,
            to: StateName::Expected,
            cause,
            delivery_id: None,
        });
        entry
    }

    fn blank(key: JobKey, state: State, now: Timestamp) -> Self {
        Self {
            key,
            state,
            generation: 0,
            version: 1,
            first_seen: now,
            job_created_at: None,
            dt: None,
            not_before: None,
            due_at: None,
            enqueued_at: None,
            expires_at: None,
            link: None,
            counters: Counters::default(),
            token: None,
            run: None,
            history: Vec::new(),
        }
    }

    /// The row as it was read, for the condition of a write.
    pub const fn seen(&self) -> Seen {
        Seen { state: self.state.name(), generation: self.generation, version: self.version }
    }

    /// Whether the row counts as absent although it still exists.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now.as_second())
    }

    /// Decides what an announcement does to the row as it is.
    ///
    /// Absent and expired rows are written anew; `expected` becomes `received`; a row that was
    /// put off is pulled to now; one whose task may never have been sent gets another; a dead one
    /// that the platform was thought to have forgotten is opened again, a few times.
    pub fn announce(
        existing: Option<&Self>,
        key: &JobKey,
        announcement: &Announcement,
        now: Timestamp,
        limits: &Limits,
    ) -> Announced {
        let Some(entry) = existing.filter(|entry| !entry.is_expired(now)) else {
            let mut entry = Self::blank(key.clone(), State::Received, now);
            entry.mark_enqueued(Some(announcement), now, limits);
            entry.record(None, announcement.cause, announcement.delivery_id.clone(), now);
            return Announced::Write(Box::new(entry));
        };
        if entry.token.as_deref() == Some(&announcement.token) {
            return Announced::SendAgain;
        }
        let mut next = match &entry.state {
            State::Expected => entry.moved(State::Received),
            State::Received if entry.wants_task(now, limits) => entry.moved(State::Received),
            State::Dead { reason, .. }
                if reason.reopens() && entry.counters.reopens < REOPENS_MAX =>
            {
                let mut next = entry.moved(State::Received);
                next.generation += 1;
                next.counters =
                    Counters { reopens: entry.counters.reopens + 1, ..Counters::default() };
                next.expires_at = None;
                // A job that did not settle within its age gets a fresh age.
                next.first_seen = now;
                next
            }
            _ => return Announced::Known,
        };
        next.mark_enqueued(Some(announcement), now, limits);
        if entry.state.name() != StateName::Received {
            next.record(
                Some(entry.state.name()),
                announcement.cause,
                announcement.delivery_id.clone(),
                now,
            );
        }
        Announced::Write(Box::new(next))
    }

    /// Whether an announced row lacks a task that a worker could take now.
    fn wants_task(&self, now: Timestamp, limits: &Limits) -> bool {
        let put_off = self.not_before.is_some_and(|not_before| not_before > now);
        let unsent = self.enqueued_at.is_none_or(|sent| after(sent, limits.enqueue_grace) <= now);
        put_off || unsent
    }

    fn mark_enqueued(
        &mut self,
        announcement: Option<&Announcement>,
        now: Timestamp,
        limits: &Limits,
    ) {
        self.enqueued_at = Some(now);
        self.not_before = Some(now);
        self.due_at = Some(after(now, limits.enqueue_grace));
        self.token = announcement.map(|announcement| announcement.token.clone());
    }

    /// The row after its task could not be sent: the next announcement sends one at once.
    #[must_use]
    pub fn unsent(&self) -> Self {
        let mut next = self.moved(self.state.clone());
        next.enqueued_at = None;
        next.token = None;
        next
    }

    /// The row with its submission and lineage; `None` if it has a link already.
    #[must_use]
    pub fn linked(&self, link: &Link) -> Option<Self> {
        if self.link.is_some() {
            return None;
        }
        let mut next = self.moved(self.state.clone());
        next.link = Some(link.clone());
        Some(next)
    }

    /// The row with the date that its result will carry; `None` if it has one already.
    #[must_use]
    pub fn dated(&self, dt: Date, job_created_at: Option<Timestamp>) -> Option<Self> {
        if self.dt.is_some() {
            return None;
        }
        let mut next = self.moved(self.state.clone());
        next.dt = Some(dt);
        next.job_created_at = job_created_at.or(self.job_created_at);
        Some(next)
    }

    /// The row put off until `not_before`; the sweep looks a grace later.
    #[must_use]
    pub fn put_off(&self, not_before: Timestamp, counters: Counters, limits: &Limits) -> Self {
        let mut next = self.moved(self.state.clone());
        next.not_before = Some(not_before);
        next.due_at = Some(after(not_before, limits.enqueue_grace));
        next.counters = counters;
        next.enqueued_at = None;
        next.token = None;
        next
    }

    /// The row after the sweep sent its task once more; the next sweep is spaced out.
    #[must_use]
    pub fn swept(&self, now: Timestamp, limits: &Limits) -> Self {
        let mut next = self.moved(self.state.clone());
        next.counters.sweeps = self.counters.sweeps.saturating_add(1);
        next.enqueued_at = Some(now);
        next.token = None;
        next.due_at = Some(after(now, sweep_spacing(next.counters.sweeps, limits)));
        next
    }

    /// The row with the progress of its run.
    #[must_use]
    pub fn with_run(&self, run: Option<Run>) -> Self {
        let mut next = self.moved(self.state.clone());
        next.run = run;
        next
    }

    /// The row before (or instead of) a paid POST.
    #[must_use]
    pub fn resubmitting(&self, post: Post, due_at: Timestamp, now: Timestamp) -> Self {
        let mut next = self.moved(State::Resubmitting { post });
        next.not_before = None;
        next.due_at = Some(due_at);
        next.token = None;
        if self.state.name() != StateName::Resubmitting {
            next.record(Some(self.state.name()), Cause::Work, None, now);
        }
        next
    }

    /// The row back from `resubmitting`, after the platform refused the POST for now.
    #[must_use]
    pub fn back_to_received(&self, not_before: Timestamp, now: Timestamp, limits: &Limits) -> Self {
        let counters = Counters { put_offs: self.counters.put_offs + 1, ..self.counters.clone() };
        let mut next = self.put_off(not_before, counters, limits);
        next.state = State::Received;
        next.record(Some(self.state.name()), Cause::Work, None, now);
        next
    }

    /// The row in a terminal state.
    #[must_use]
    pub fn settled(&self, state: State, cause: Cause, now: Timestamp, limits: &Limits) -> Self {
        let mut next = self.moved(state);
        next.not_before = None;
        next.due_at = None;
        next.enqueued_at = None;
        next.token = None;
        next.run = None;
        next.expires_at = Some(after(now, limits.retention).as_second());
        next.record(Some(self.state.name()), cause, None, now);
        next
    }

    /// A dead row opened again by an operator, with a fresh budget; `None` unless it is dead.
    #[must_use]
    pub fn redriven(&self, now: Timestamp, limits: &Limits) -> Option<Self> {
        let State::Dead { .. } = self.state else { return None };
        let mut next = self.moved(State::Received);
        next.generation += 1;
        next.counters = Counters::default();
        next.expires_at = None;
        next.first_seen = now;
        if let Some(link) = &mut next.link {
            link.base = link.attempt;
        }
        next.mark_enqueued(None, now, limits);
        next.record(Some(StateName::Dead), Cause::Operator, None, now);
        Some(next)
    }

    /// The same row, one version on, in another state.
    fn moved(&self, state: State) -> Self {
        Self { state, version: self.version.saturating_add(1), ..self.clone() }
    }

    fn record(
        &mut self,
        from: Option<StateName>,
        cause: Cause,
        delivery_id: Option<String>,
        now: Timestamp,
    ) {
        if self.history.len() >= HISTORY_MAX {
            self.history.drain(..=self.history.len() - HISTORY_MAX);
        }
        self.history.push(Transition { at: now, from, to: self.state.name(), cause, delivery_id });
    }
}

/// Pause before the next sweep of an entry that was swept `sweeps` times: doubling, capped.
fn sweep_spacing(sweeps: u32, limits: &Limits) -> Duration {
    let doublings = sweeps.saturating_sub(1).min(20);
    limits.sweep_spacing.saturating_mul(1 << doublings).min(limits.sweep_spacing_cap)
}

#[cfg(test)]
mod tests;
