//! Submitting: an intent, one paid POST, a linked row, a closed intent.

mod recover;

use std::time::Duration;

pub use self::recover::recover;
pub(crate) use self::recover::recover_together;
use crate::adopt::{Claimed, claim};
use crate::backoff::full_jitter;
use crate::entry::Cause;
use crate::intent::{Intent, IntentState, Submission};
use crate::job::{JobError, JobId, JobKey};
use crate::limits::WRITE_CONFLICTS_MAX;
use crate::pause::Scope;
use crate::ports::{
    ApiError, ApiErrorKind, ErrorKind, IntentExpected, IntentWritten, PortError, SubmitError,
};
use crate::post::Post;
use crate::probe;
use crate::spend;
use crate::steps::Ports;
use crate::time::{Timestamp, after, between, utc_date};
use crate::work::Look;

/// What became of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// The platform has the job, and the ledger owes its result.
    Accepted {
        /// The job.
        job_id: JobId,
        /// Whether this call made it.
        by: Submitter,
    },
    /// The platform will never take it.
    Refused(JobError),
    /// Nothing was paid; the same call may be made again after `wait`.
    Deferred {
        /// How long to wait at least.
        wait: Duration,
        /// What was in the way.
        because: Deferral,
    },
    /// The answer was lost; from `look_at` on the same call finds out what became of it.
    Unanswered {
        /// When.
        look_at: Timestamp,
    },
    /// Whether the platform took it could not be found out; nobody pays again.
    Ambiguous,
}

/// Whose call made a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitter {
    /// This one.
    ThisCall,
    /// An earlier one of the same submission, or one whose answer was lost.
    Earlier,
}

/// What is in the way of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deferral {
    /// The platform's answer.
    Api(ApiError),
    /// A pause of the account, with its short reason.
    Paused(String),
    /// The day's spend is used up.
    Spent,
    /// Another process is submitting the same.
    Contended,
}

/// Submits, or finds out what became of an earlier try.
///
/// The call may be repeated at any time, by any process: it pays at most once per decision.
///
/// # Errors
/// Those of the ledger.
pub async fn submit(ports: Ports<'_>, submission: &Submission) -> Result<Submitted, PortError> {
    let now = ports.clock.now();
    let id = Intent::id_of(submission);
    let known = ports.ledger.load_intent(&id).await?;
    let known = known
        .filter(|intent| intent.expires_at.is_none_or(|expires_at| expires_at > now.as_second()));
    match known {
        None => {
            if let Some(deferred) = held_back(ports, submission, None).await? {
                return Ok(deferred);
            }
            let now = ports.clock.now();
            let intent = Intent::open(submission, ports.random.token(), now, ports.limits);
            match ports.ledger.write_intent(&intent, IntentExpected::Absent(now)).await? {
                IntentWritten::Done => pay(ports, intent).await,
                IntentWritten::Conflict(row) if row.as_deref() == Some(&intent) => {
                    pay(ports, intent).await
                }
                IntentWritten::Conflict(_) => Ok(contended(ports)),
            }
        }
        Some(intent) => resume(ports, submission, intent).await,
    }
}

fn contended(ports: Ports<'_>) -> Submitted {
    Submitted::Deferred { wait: ports.limits.backoff_base, because: Deferral::Contended }
}

async fn resume(
    ports: Ports<'_>,
    submission: &Submission,
    intent: Intent,
) -> Result<Submitted, PortError> {
    match &intent.state {
        IntentState::Accepted { job_id } => {
            Ok(Submitted::Accepted { job_id: job_id.clone(), by: Submitter::Earlier })
        }
        IntentState::Refused { error } => Ok(Submitted::Refused(error.clone())),
        IntentState::Ambiguous => Ok(Submitted::Ambiguous),
        IntentState::Open { .. } => recover(ports, intent).await,
        IntentState::Deferred { post } => {
            if let Some(deferred) = held_back(ports, submission, Some(post)).await? {
                return Ok(deferred);
            }
            let post = post.next(ports.random.token(), ports.clock.now(), ports.limits);
            match moved(ports, &intent, IntentState::Open { post }).await? {
                Some(intent) => pay(ports, intent).await,
                None => Ok(contended(ports)),
            }
        }
    }
}

/// What keeps a POST from being made now: a pause, or the day's spend. A POST that was not
/// accepted leaves its reservation to the next one of the same day.
async fn held_back(
    ports: Ports<'_>,
    submission: &Submission,
    unaccepted: Option<&Post>,
) -> Result<Option<Submitted>, PortError> {
    let pause = probe::held(ports, Scope::Paying, Look::Scheduled).await?;
    let now = ports.clock.now();
    if let Some(pause) = pause {
        let wait = between(now, pause.until).saturating_add(jitter(ports, 0));
        return Ok(Some(Submitted::Deferred { wait, because: Deferral::Paused(pause.why) }));
    }
    let reserved = unaccepted.is_some_and(|post| utc_date(post.intended_at) == utc_date(now));
    if !reserved && !spend::reserve(ports, submission.request.tokens_max()).await? {
        let wait = ports.limits.backoff_cap;
        return Ok(Some(Submitted::Deferred { wait, because: Deferral::Spent }));
    }
    Ok(None)
}

fn jitter(ports: Ports<'_>, attempt: u32) -> Duration {
    let limits = ports.limits;
    full_jitter(attempt, limits.backoff_base, limits.backoff_cap, ports.random.next_u64())
        .max(limits.backoff_base / 4)
}

/// Makes the POST of an open intent that this call wrote, and acts on the answer.
async fn pay(ports: Ports<'_>, intent: Intent) -> Result<Submitted, PortError> {
    let IntentState::Open { post } = intent.state.clone() else { return Ok(contended(ports)) };
    let look_at = post.recover_from(ports.limits);
    if ports.clock.now() >= post.begin_before {
        return Ok(Submitted::Unanswered { look_at });
    }
    match ports.jobs.submit(&intent.request, ports.limits.post_timeout).await {
        Ok(job_id) => {
            let accepted = accepted(ports, &intent, job_id).await;
            probe::paid(ports).await;
            accepted
        }
        Err(SubmitError::Unanswered(_)) => Ok(Submitted::Unanswered { look_at }),
        Err(SubmitError::Refused(error)) => refused(ports, &intent, post, error).await,
    }
}

/// Links the job's row first, then closes the intent: until the row is linked the intent says
/// that a job may exist.
async fn accepted(
    ports: Ports<'_>,
    intent: &Intent,
    job_id: JobId,
) -> Result<Submitted, PortError> {
    let key = JobKey::new(intent.request.kind(), job_id.clone());
    if claim(ports, &key, &intent.link(&job_id), Cause::Submit).await? == Claimed::Theirs {
        let look_at = intent.due_at.unwrap_or_else(|| ports.clock.now());
        return Ok(Submitted::Unanswered { look_at });
    }
    close(ports, intent, IntentState::Accepted { job_id: job_id.clone() }).await?;
    Ok(Submitted::Accepted { job_id, by: Submitter::ThisCall })
}

/// Closes the intent, unless others moved it meanwhile to where this outcome says nothing new.
async fn close(ports: Ports<'_>, intent: &Intent, state: IntentState) -> Result<(), PortError> {
    let mut current = intent.clone();
    for _ in 0..WRITE_CONFLICTS_MAX {
        let next = current.moved(state.clone(), ports.clock.now(), ports.limits);
        let expected = IntentExpected::Version(current.version);
        match ports.ledger.write_intent(&next, expected).await? {
            IntentWritten::Conflict(Some(row)) if still_closes(&row.state, intent, &state) => {
                current = *row;
            }
            IntentWritten::Done | IntentWritten::Conflict(_) => return Ok(()),
        }
    }
    Err(PortError::new("ledger", "write_intent", ErrorKind::Unavailable)
        .with_source("the intent kept changing under this write"))
}

/// Whether the outcome of this intent's POST closes the row as it is now. A job that is there
/// outweighs whatever was concluded from not seeing it, so that nobody pays again; any other
/// outcome concerns its own POST alone, never one that was begun since.
fn still_closes(row: &IntentState, intent: &Intent, outcome: &IntentState) -> bool {
    match (row, &intent.state, outcome) {
        (IntentState::Accepted { .. } | IntentState::Refused { .. }, _, _) => false,
        (_, _, IntentState::Accepted { .. }) => true,
        (IntentState::Open { post: held }, IntentState::Open { post }, _) => {
            held.token == post.token
        }
        _ => false,
    }
}

/// Moves the intent if it is as it was read.
async fn moved(
    ports: Ports<'_>,
    intent: &Intent,
    state: IntentState,
) -> Result<Option<Intent>, PortError> {
    let next = intent.moved(state, ports.clock.now(), ports.limits);
    let expected = IntentExpected::Version(intent.version);
    Ok(match ports.ledger.write_intent(&next, expected).await? {
        IntentWritten::Done => Some(next),
        IntentWritten::Conflict(row) if row.as_deref() == Some(&next) => Some(next),
        IntentWritten::Conflict(_) => None,
    })
}

/// The platform did not take the job, so nothing was paid: later again, or never.
async fn refused(
    ports: Ports<'_>,
    intent: &Intent,
    post: Post,
    error: ApiError,
) -> Result<Submitted, PortError> {
    if judge_refusal(ports, &error, Look::Scheduled).await? == Refusal::Final {
        let said = error.as_job_error();
        close(ports, intent, IntentState::Refused { error: said.clone() }).await?;
        return Ok(Submitted::Refused(said));
    }
    let attempt = post.number;
    close(ports, intent, IntentState::Deferred { post }).await?;
    let wait = jitter(ports, attempt).max(error.retry_after.unwrap_or_default());
    let wait = wait.min(ports.limits.retry_after_clamp);
    Ok(Submitted::Deferred { wait, because: Deferral::Api(error) })
}

/// What a refused POST means for its decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The platform will never take the job.
    Final,
    /// The POST may be made again later.
    ForNow,
}

/// Judges a refused POST, and pauses paying where the trouble is the account's.
pub(crate) async fn judge_refusal(
    ports: Ports<'_>,
    error: &ApiError,
    look: Look,
) -> Result<Refusal, PortError> {
    match error.kind {
        ApiErrorKind::Refused | ApiErrorKind::Missing => return Ok(Refusal::Final),
        ApiErrorKind::Denied => {
            let Some(within) = look.within(ports.clock.now(), ports.limits.call_timeout) else {
                return Ok(Refusal::ForNow);
            };
            if ports.jobs.probe(within).await.is_err() {
                pause(ports, Scope::All, ports.limits.account_pause, error).await?;
            } else if error.status == Some(403) {
                // The key is in order, so it is this job that it may not have.
                return Ok(Refusal::Final);
            }
        }
        ApiErrorKind::PaymentRequired => {
            pause(ports, Scope::Paying, ports.limits.account_pause, error).await?;
        }
        // A quota that says of itself that waiting does not help ends the submission's wait, not
        // the submission: it may be made when the account is in order again.
        ApiErrorKind::Throttled => {
            if let Some(wait) = error.retry_after {
                pause(ports, Scope::Paying, wait, error).await?;
            }
        }
        ApiErrorKind::Unavailable | ApiErrorKind::Unreadable | ApiErrorKind::TooLarge => {}
    }
    Ok(Refusal::ForNow)
}

async fn pause(
    ports: Ports<'_>,
    scope: Scope,
    wait: Duration,
    error: &ApiError,
) -> Result<(), PortError> {
    let until = after(ports.clock.now(), wait.min(ports.limits.retry_after_clamp));
    ports.pauses.extend(ports.ledger, scope, until, error.kind.as_str()).await
}

#[cfg(test)]
mod tests;
