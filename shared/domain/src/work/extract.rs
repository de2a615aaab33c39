//! Extract jobs: one answer holds everything.

use super::{Look, OUT_OF_TIME, PutOff, Worked, resubmit, settle, trouble, unlinked, wait_for_end};
use crate::content::{EXTRACT_FORMAT, belongs_to, extract_object, has_data};
use crate::entry::{DeadReason, Entry, Link};
use crate::job::{JobError, JobStatus};
use crate::limits::Limits;
use crate::place::{date_of, extract_key};
use crate::ports::{ApiError, ApiErrorKind, ErrorKind, ExtractJob, PortError, PutOutcome};
use crate::steps::Ports;
use crate::time::Timestamp;
use crate::update::{Changed, change};

pub(super) async fn work(ports: Ports<'_>, entry: Entry, look: Look) -> Result<Worked, PortError> {
    let Some(within) = look.within(ports.clock.now(), ports.limits.call_timeout) else {
        return Ok(OUT_OF_TIME);
    };
    let job = match ports.jobs.extract(&entry.key.job_id, within).await {
        Ok(job) => job,
        Err(error) => return trouble::with(ports, entry, error, look).await,
    };
    ports.looks.note(false);
    match job.status {
        JobStatus::Completed => store(ports, entry, &job, look).await,
        JobStatus::Failed => failed(ports, entry, &job, look).await,
        JobStatus::Cancelled => {
            settle::die(ports, entry, DeadReason::Cancelled, job.error, None).await
        }
        status => wait_for_end(ports, entry, PutOff::Unfinished(status)).await,
    }
}

async fn store(
    ports: Ports<'_>,
    entry: Entry,
    job: &ExtractJob,
    look: Look,
) -> Result<Worked, PortError> {
    if let Some(worked) = unlinked::put_off(ports, &entry, job.created_at).await? {
        return Ok(worked);
    }
    let entry = match dated(ports, entry, job.created_at).await? {
        Ok(entry) => entry,
        Err(worked) => return Ok(worked),
    };
    let key = extract_key(&entry.key.job_id, date_of(&entry, job.created_at));
    let Ok(content) = extract_object(&entry, &job.raw, ports.clock.now()) else {
        let error = ApiError::new(ApiErrorKind::Unreadable, "the answer is not JSON");
        return trouble::with(ports, entry, error, look).await;
    };
    match ports.results.put_new(&key, &content).await {
        Ok(PutOutcome::Now(mut object)) => {
            object.empty = !job.has_data;
            settle::stored(ports, entry, object).await
        }
        Ok(PutOutcome::Already { mut object, content }) => {
            if !belongs_to(&content, EXTRACT_FORMAT, &entry.key) {
                return settle::die(ports, entry, DeadReason::CorruptObject, None, None).await;
            }
            // The object decides, whatever the platform still gives.
            object.empty = !has_data(&content);
            settle::stored(ports, entry, object).await
        }
        Err(error) if error.kind == ErrorKind::Corrupt => {
            settle::die(ports, entry, DeadReason::CorruptObject, None, None).await
        }
        Err(error) => Err(error),
    }
}

/// The row with its date fixed; what to say instead when another worker settled it meanwhile.
pub(super) async fn dated(
    ports: Ports<'_>,
    entry: Entry,
    created_at: Option<Timestamp>,
) -> Result<Result<Entry, Worked>, PortError> {
    let dt = date_of(&entry, created_at);
    let changed = change(ports.ledger, Some(entry), ports.clock.now(), |row| {
        row.filter(|row| !row.state.is_terminal()).and_then(|row| row.dated(dt, created_at))
    })
    .await?;
    Ok(match changed {
        Changed::Written(entry) => Ok(*entry),
        Changed::Left(Some(entry)) if !entry.state.is_terminal() => Ok(*entry),
        Changed::Left(row) => Err(settle::skipped(row.as_deref())),
    })
}

/// What to do about a failed extract job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Submit it again, as the next attempt of this lineage.
    Resubmit(Box<Link>),
    /// Wait until it is known which submission made it.
    Wait,
    /// Give it up.
    Die(DeadReason),
}

/// Decides what to do about a failed extract job.
///
/// `unresolved_post` says whether a POST of ours may have made a job that nobody has linked yet,
/// `forgotten` whether the job is so old that the ledger may have known and forgotten it.
pub fn judge_failure(
    entry: &Entry,
    error: &JobError,
    unresolved_post: bool,
    forgotten: bool,
    limits: &Limits,
) -> Failure {
    if !error.retryable || forgotten {
        return Failure::Die(DeadReason::Failed);
    }
    let Some(link) = &entry.link else {
        return if unresolved_post {
            Failure::Wait
        } else {
            Failure::Die(DeadReason::UnlinkedFailure)
        };
    };
    if link.request.is_none() {
        return Failure::Die(DeadReason::UnlinkedFailure);
    }
    if link.attempt.saturating_sub(link.base) >= limits.resubmits_max {
        return Failure::Die(DeadReason::ResubmitsExhausted);
    }
    let mut next = link.clone();
    next.attempt = next.attempt.saturating_add(1);
    Failure::Resubmit(Box::new(next))
}

/// Whether a job is so old that its row may have been forgotten before.
fn is_forgotten(created_at: Option<Timestamp>, now: Timestamp, limits: &Limits) -> bool {
    created_at.is_some_and(|created_at| created_at <= limits.remembered_from(now))
}

async fn failed(
    ports: Ports<'_>,
    entry: Entry,
    job: &ExtractJob,
    look: Look,
) -> Result<Worked, PortError> {
    // `error` may be null even for a failed job; what is not known to be retryable is not.
    let error = job.error.clone().unwrap_or_else(|| JobError::new("UNKNOWN", "", false));
    let unresolved =
        error.retryable && unlinked::may_be_ours(ports, &entry, job.created_at).await?;
    let created_at = job.created_at.or(entry.job_created_at);
    let forgotten = is_forgotten(created_at, ports.clock.now(), ports.limits);
    let entry = if error.retryable && !unresolved && !forgotten {
        match unlinked::adopted(ports, entry, job).await? {
            Ok(entry) => entry,
            Err(worked) => return Ok(worked),
        }
    } else {
        entry
    };
    match judge_failure(&entry, &error, unresolved, forgotten, ports.limits) {
        Failure::Die(reason) => settle::die(ports, entry, reason, Some(error), None).await,
        Failure::Wait => unlinked::put_off_failed(ports, entry, job, error).await,
        Failure::Resubmit(next) => {
            let dt = date_of(&entry, created_at);
            resubmit::begin(ports, entry, *next, error, dt, look).await
        }
    }
}
