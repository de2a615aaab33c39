//! A webhook may be faster than our own answer to the POST that made its job.
//!
//! What is stored is never written again, so the row waits for its link, which carries the
//! user's own id and the lineage, as long as a POST may still bring one.

use std::time::Duration;

use super::{PutOff, Worked, jitter, put_off_once_more, settle};
use crate::asked;
use crate::entry::{DeadReason, Entry};
use crate::follow_up::{may_adopt, own_link};
use crate::job::JobError;
use crate::limits::Limits;
use crate::ports::{ExtractJob, PortError};
use crate::steps::Ports;
use crate::time::{Timestamp, after, between};
use crate::update::{Changed, change};

/// How long a finished row may wait: until a lost answer can be looked for, and once more the margin
/// of the job lists, in which the sweep comes by and looks.
const fn longest_wait(limits: &Limits) -> Duration {
    limits.recovery().saturating_add(limits.adoption_margin)
}

/// How long a failed row may wait. Each open POST ends by bounds of its own, in which a time when
/// the platform could not be asked does not count; this one is for a row of the ledger that no
/// search can close, such as one that does not decode.
const fn longest_wait_of_failed(limits: &Limits) -> Duration {
    limits.max_age.saturating_add(limits.ambiguous_after)
}

/// Whether a POST whose answer is not known yet may have made the row's job, which has no link.
///
/// A POST that was intended after the job was created has not: an account that is always
/// submitting does not keep other people's jobs waiting.
pub(super) async fn may_be_ours(
    ports: Ports<'_>,
    entry: &Entry,
    created_at: Option<Timestamp>,
) -> Result<bool, PortError> {
    if entry.link.is_some() {
        return Ok(false);
    }
    let created_at = created_at.or(entry.job_created_at).unwrap_or(entry.first_seen);
    let until = after(created_at, ports.limits.clock_slack());
    ports.ledger.has_unresolved_post(entry.key.kind, until).await
}

/// Puts a row off before its job is asked for, if an earlier look found the job finished and the
/// row still waits for its link: what the platform would say is known.
pub(super) async fn put_off_unasked(
    ports: Ports<'_>,
    entry: &Entry,
) -> Result<Option<Worked>, PortError> {
    // A row with a date is beyond this wait already.
    if entry.job_created_at.is_none() || entry.dt.is_some() {
        return Ok(None);
    }
    put_off(ports, entry, entry.job_created_at).await
}

/// Puts a row off before its result is stored while a POST of ours may have made its job; `None`
/// when nothing is to be waited for.
pub(super) async fn put_off(
    ports: Ports<'_>,
    entry: &Entry,
    created_at: Option<Timestamp>,
) -> Result<Option<Worked>, PortError> {
    let now = ports.clock.now();
    let until = after(entry.first_seen, longest_wait(ports.limits));
    if until <= now || !may_be_ours(ports, entry, created_at).await? {
        // If the link was written since the row was read, the next conditional write tells.
        return Ok(None);
    }
    let wait = jitter(ports, entry.counters.put_offs).min(between(now, until));
    wait_for_link(ports, entry.clone(), created_at, wait).await.map(Some)
}

/// Puts a row off whose job failed and that a POST of ours may have made: whether it is tried again
/// depends on that. Age is no reason to give it up, since it has settled.
pub(super) async fn put_off_failed(
    ports: Ports<'_>,
    entry: Entry,
    job: &ExtractJob,
    error: JobError,
) -> Result<Worked, PortError> {
    let until = after(entry.first_seen, longest_wait_of_failed(ports.limits));
    if until <= ports.clock.now() {
        let reason = DeadReason::UnlinkedFailure;
        return settle::die(ports, entry, reason, Some(error), None).await;
    }
    let wait = jitter(ports, entry.counters.put_offs);
    wait_for_link(ports, entry, job.created_at, wait).await
}

/// The row of a job that failed retryably, linked to a lineage of its own if it is nobody's, fresh,
/// and the policy is to submit such jobs again; what to say instead when others settled it.
///
/// Only a request that the platform's answer shows whole is made again. The link is written before
/// anybody pays, so that a crash leaves a row that is tried again like any of ours.
pub(super) async fn adopted(
    ports: Ports<'_>,
    entry: Entry,
    job: &ExtractJob,
) -> Result<Result<Entry, Worked>, PortError> {
    let (now, created_at) = (ports.clock.now(), job.created_at.or(entry.job_created_at));
    let may_adopt = entry.link.is_none() && may_adopt(created_at, now, ports.limits);
    let request = may_adopt.then(|| asked::extract_request(&job.raw.0)).flatten();
    let Some(request) = request else { return Ok(Ok(entry)) };
    let link = own_link(&entry.key, Some(request));
    let changed = change(ports.ledger, Some(entry), now, |row| {
        row.filter(|row| !row.state.is_terminal()).and_then(|row| row.linked(&link))
    })
    .await?;
    Ok(match changed {
        Changed::Written(row) => Ok(*row),
        Changed::Left(Some(row)) if !row.state.is_terminal() => Ok(*row),
        Changed::Left(row) => Err(settle::skipped(row.as_deref())),
    })
}

async fn wait_for_link(
    ports: Ports<'_>,
    entry: Entry,
    created_at: Option<Timestamp>,
    wait: Duration,
) -> Result<Worked, PortError> {
    let entry = Entry { job_created_at: created_at.or(entry.job_created_at), ..entry };
    put_off_once_more(ports, entry, wait, PutOff::Unlinked).await
}
