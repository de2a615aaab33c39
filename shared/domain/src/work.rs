//! Working a task: ask the API how the job stands, store what it gave, settle the row.
//!
//! A task carries a job's key and nothing else; whatever a webhook said, the API's answer is the
//! truth. Working is idempotent: two workers on one job waste one call and change nothing.

mod extract;
mod follow_up;
mod parent;
mod resubmit;
mod settle;
mod trouble;
mod unlinked;

pub use extract::{Failure, judge_failure};
pub use parent::release_run;

use std::time::Duration;

use crate::backoff::full_jitter;
use crate::entry::{Counters, DeadReason, Entry, State, StateName};
use crate::job::{JobId, JobStatus, Kind};
use crate::limits::QUEUE_DELAY_MAX;
use crate::pause::Scope;
use crate::ports::{ApiError, PortError};
use crate::probe;
use crate::steps::Ports;
use crate::task::Task;
use crate::time::{Timestamp, after, between};
use crate::update::{Changed, change};

/// What became of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Worked {
    /// The result lies in the store, and the row says so.
    Stored {
        /// Where.
        key: String,
        /// What became of failed items, where the policy asks for them once more.
        follow_up: Option<FollowedUp>,
    },
    /// The job failed and was replaced.
    Superseded {
        /// By this job.
        by: JobId,
    },
    /// The job was given up.
    Dead(DeadReason),
    /// Somebody looks again later.
    PutOff {
        /// After this time.
        wait: Duration,
        /// Why.
        because: PutOff,
    },
    /// There was nothing to do.
    Skipped(Skip),
}

/// What became of the items of a stored batch or crawl that failed retryably.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowedUp {
    /// A row asks for them once more.
    Asked {
        /// How many items it asks for.
        items: usize,
        /// How many more there are than one batch may hold.
        left: usize,
    },
    /// The lineage was tried as often as it may be.
    Capped {
        /// How many items would have been tried again.
        items: usize,
    },
}

impl Worked {
    /// The same with what became of failed items, if the result was stored.
    fn followed_up(self, with: FollowedUp) -> Self {
        match self {
            Self::Stored { key, .. } => Self::Stored { key, follow_up: Some(with) },
            other => other,
        }
    }
}

/// Why a row was put off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOff {
    /// The job has not finished.
    Unfinished(JobStatus),
    /// The job has finished, and its children are still settling.
    Settling,
    /// The API did not answer as it should.
    Trouble(ApiError),
    /// The API is left alone for a while.
    Paused(String),
    /// A POST whose answer is not known may have made this job; whose it is must be known first.
    Unlinked,
    /// Whether a POST was accepted is being found out.
    Recovering,
    /// The run over the result pages did not agree with the counters and begins anew.
    Inconsistent,
    /// The day's spend is used up.
    Spent,
    /// Whoever was waiting has no time left for another call; the row is as it was.
    OutOfTime,
}

/// Why there was nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// The ledger does not know the job.
    Absent,
    /// The row is terminal already.
    Settled(StateName),
    /// The row was put off to a later time.
    NotYet,
    /// Another worker is ahead of this one.
    Overtaken,
}

/// How a look is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// For a task of the queue: a row that was put off is left alone.
    Scheduled,
    /// For a task of the queue, on behalf of somebody who waits until this instant: as scheduled,
    /// and no call goes beyond it.
    ScheduledUntil(Timestamp),
    /// For somebody who waits until this instant: at once, and no call goes beyond it.
    Until(Timestamp),
}

/// Works a task.
///
/// # Errors
/// Those of the ledger, the queue and the result store; the task should come again.
pub async fn work(ports: Ports<'_>, task: &Task) -> Result<Worked, PortError> {
    look(ports, task, Look::Scheduled).await
}

/// Works a task in the given manner.
///
/// # Errors
/// As [`work`].
pub async fn look(ports: Ports<'_>, task: &Task, look: Look) -> Result<Worked, PortError> {
    let now = ports.clock.now();
    let Some(entry) = ports.ledger.load(&task.key).await?.filter(|entry| !entry.is_expired(now))
    else {
        return Ok(Worked::Skipped(Skip::Absent));
    };
    if entry.state.is_terminal() {
        return Ok(Worked::Skipped(Skip::Settled(entry.state.name())));
    }
    let put_off = entry.not_before.is_some_and(|not_before| not_before > now);
    if put_off && !matches!(look, Look::Until(_)) {
        return Ok(Worked::Skipped(Skip::NotYet));
    }
    if let State::Resubmitting { post } = &entry.state {
        let post = post.clone();
        return Box::pin(resubmit::recover(ports, entry, post, look)).await;
    }
    if let Some(pause) = probe::held(ports, Scope::All, look).await? {
        let now = ports.clock.now();
        let wait = between(now, pause.until).saturating_add(jitter(ports, 0));
        return put_off_for(ports, entry, wait, PutOff::Paused(pause.why)).await;
    }
    if entry.follow_up.is_some() {
        // It is no job of the platform's: there is nothing to ask for.
        return Box::pin(follow_up::work(ports, entry, look)).await;
    }
    if let Some(worked) = Box::pin(unlinked::put_off_unasked(ports, &entry)).await? {
        return Ok(worked);
    }
    // Boxed, since these are large and few callers need all of them.
    match task.key.kind {
        Kind::Extract => Box::pin(extract::work(ports, entry, look)).await,
        Kind::Batch | Kind::Crawl => Box::pin(parent::work(ports, entry, look)).await,
    }
}

impl Look {
    /// The time-out of a call that has `usual` when nobody waits; `None` when no time is left, and
    /// the call may not begin.
    pub(crate) fn within(self, now: Timestamp, usual: Duration) -> Option<Duration> {
        match self {
            Self::Scheduled => Some(usual),
            Self::ScheduledUntil(deadline) | Self::Until(deadline) => {
                Some(between(now, deadline).min(usual)).filter(|left| !left.is_zero())
            }
        }
    }
}

/// The answer of a look that ended before its next call; the row says already who looks next.
const OUT_OF_TIME: Worked = Worked::PutOff { wait: Duration::ZERO, because: PutOff::OutOfTime };

/// A full-jitter wait with the limits' base and cap, and a floor that keeps a loop from spinning.
fn jitter(ports: Ports<'_>, attempt: u32) -> Duration {
    let limits = ports.limits;
    full_jitter(attempt, limits.backoff_base, limits.backoff_cap, ports.random.next_u64())
        .max(limits.backoff_base / 4)
}

/// Puts a row off after a look, and sends its delayed task if a queue can wait that long.
///
/// Only the winner of the conditional write sends; a loser leaves the row to whoever moved it.
async fn put_off_with(
    ports: Ports<'_>,
    entry: Entry,
    wait: Duration,
    counters: Counters,
    because: PutOff,
) -> Result<Worked, PortError> {
    let now = ports.clock.now();
    let seen = entry.seen();
    let key = entry.key.clone();
    let changed = change(ports.ledger, Some(entry), now, |row| {
        row.filter(|row| row.seen() == seen)
            .map(|row| row.put_off(after(now, wait), counters.clone(), ports.limits))
    })
    .await?;
    if matches!(changed, Changed::Left(_)) {
        return Ok(Worked::Skipped(Skip::Overtaken));
    }
    if wait <= QUEUE_DELAY_MAX {
        ports.queue.send(&Task { key }, wait).await?;
    }
    Ok(Worked::PutOff { wait, because })
}

/// Puts a row off without having learned anything about its job.
async fn put_off_for(
    ports: Ports<'_>,
    entry: Entry,
    wait: Duration,
    because: PutOff,
) -> Result<Worked, PortError> {
    let counters = Counters { sweeps: 0, ..entry.counters.clone() };
    put_off_with(ports, entry, wait, counters, because).await
}

/// Puts a row off after a look that found the job unfinished, or gives it up for its age.
async fn wait_for_end(
    ports: Ports<'_>,
    entry: Entry,
    because: PutOff,
) -> Result<Worked, PortError> {
    if after(entry.first_seen, ports.limits.max_age) <= ports.clock.now() {
        return settle::die(ports, entry, DeadReason::NeverSettled, None, None).await;
    }
    if entry.state == State::Expected {
        return leave_to_polling(ports, entry, because).await;
    }
    wait_longer(ports, entry, because).await
}

/// Leaves a row that nobody has announced to bulk polling, after a look that found the job
/// unfinished: one page of the job list answers for a hundred such rows.
async fn leave_to_polling(
    ports: Ports<'_>,
    entry: Entry,
    because: PutOff,
) -> Result<Worked, PortError> {
    let (now, limits) = (ports.clock.now(), ports.limits);
    let counters = found(&entry.counters);
    let (base, cap) = (limits.announce_grace / 4, limits.backoff_cap);
    let wait = full_jitter(counters.put_offs, base, cap, ports.random.next_u64()).max(base / 2);
    let seen = entry.seen();
    let changed = change(ports.ledger, Some(entry), now, |row| {
        row.filter(|row| row.seen() == seen).map(|row| {
            let mut next = row.put_off(now, counters.clone(), limits);
            next.due_at = Some(after(now, wait));
            next
        })
    })
    .await?;
    Ok(match changed {
        Changed::Written(_) => Worked::PutOff { wait, because },
        Changed::Left(_) => Worked::Skipped(Skip::Overtaken),
    })
}

/// The counters after a look that found the job.
fn found(counters: &Counters) -> Counters {
    Counters {
        put_offs: counters.put_offs.saturating_add(1),
        missing: 0,
        unusable: 0,
        sweeps: 0,
        ..counters.clone()
    }
}

/// Puts a row off after a look that found its job, whatever its age.
async fn wait_longer(ports: Ports<'_>, entry: Entry, because: PutOff) -> Result<Worked, PortError> {
    let wait = jitter(ports, entry.counters.put_offs);
    put_off_once_more(ports, entry, wait, because).await
}

/// Puts a row off after a look that found its job, and counts that.
async fn put_off_once_more(
    ports: Ports<'_>,
    entry: Entry,
    wait: Duration,
    because: PutOff,
) -> Result<Worked, PortError> {
    let counters = found(&entry.counters);
    put_off_with(ports, entry, wait, counters, because).await
}

#[cfg(test)]
pub(crate) mod tests;
