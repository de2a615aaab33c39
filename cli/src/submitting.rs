//! Submitting many: a bounded number at once, each until its outcome is known.

use std::time::Duration;

use domain::intent::Submission;
use domain::ports::{ApiError, ApiErrorKind, PortError};
use domain::submit::{Deferral, Submitted, submit};
use domain::time::{Timestamp, between};
use futures_util::StreamExt as _;

use crate::pipeline::Pipeline;

/// Longest single wait; a longer pause of the account is waited for in pieces.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Failures of the ledger in a row after which a submission is given up for this call.
const FAILURES_MAX: u32 = 5;

/// How a submission ended in this call.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Its outcome is known for good.
    Known(Submitted),
    /// The account is in the way: waiting does not help.
    Blocked(ApiError),
    /// The deadline of the call passed; the same call goes on where this one stopped.
    GivenUp(Submitted),
    /// The ledger failed.
    Failed(PortError),
}

/// What to do when the account is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenBlocked {
    /// Stop at once.
    Stop,
    /// Wait like for anything else.
    Wait,
}

/// How many are submitted at once, and until when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Submissions at once.
    pub(crate) at_once: usize,
    /// When to stop waiting.
    pub(crate) deadline: Timestamp,
    /// What to do when the account is in the way.
    pub(crate) when_blocked: WhenBlocked,
}

/// Submits all, calling `told` with each outcome as it becomes known.
///
/// Those whose answer was lost are looked for last, so that nobody waits for them.
pub(crate) async fn submit_all(
    pipeline: &Pipeline,
    submissions: &[Submission],
    manner: Manner,
    told: &(dyn Fn(&Submission, &Ended) + Sync),
) {
    let all: Vec<_> = submissions.iter().collect();
    if let Some(unanswered) = round(pipeline, all, manner, Patience::UntilUnanswered, told).await {
        round(pipeline, unanswered, manner, Patience::UntilKnown, told).await;
    }
}

/// Tries each submission; returns those whose answer was lost, or `None` when the account is in
/// the way.
async fn round<'a>(
    pipeline: &Pipeline,
    submissions: Vec<&'a Submission>,
    manner: Manner,
    patience: Patience,
    told: &(dyn Fn(&Submission, &Ended) + Sync),
) -> Option<Vec<&'a Submission>> {
    let one = |submission| async move {
        (submission, tries(pipeline, submission, manner, patience).await)
    };
    let mut ends = futures_util::stream::iter(submissions.into_iter().map(one))
        .buffer_unordered(manner.at_once.max(1));
    let mut unanswered = Vec::new();
    while let Some((submission, ended)) = ends.next().await {
        let Some(ended) = ended else {
            unanswered.push(submission);
            continue;
        };
        told(submission, &ended);
        if matches!(ended, Ended::Blocked(_)) {
            return None;
        }
    }
    Some(unanswered)
}

/// How long a submission is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// Until an answer was lost, at the latest.
    UntilUnanswered,
    /// Until the outcome is known.
    UntilKnown,
}

/// Tries until the outcome is known; `None` when an answer was lost and that ends the patience.
async fn tries(
    pipeline: &Pipeline,
    submission: &Submission,
    manner: Manner,
    patience: Patience,
) -> Option<Ended> {
    let mut failures = 0;
    loop {
        let submitted = match submit(pipeline.ports(), submission).await {
            Ok(submitted) => submitted,
            Err(error) => {
                failures += 1;
                if failures >= FAILURES_MAX || !error.is_transient() {
                    return Some(Ended::Failed(error));
                }
                pipeline.clock.sleep(pipeline.limits.backoff_base).await;
                continue;
            }
        };
        failures = 0;
        let now = pipeline.clock.now();
        let wait = match &submitted {
            Submitted::Accepted { .. } | Submitted::Refused(_) | Submitted::Ambiguous => {
                return Some(Ended::Known(submitted));
            }
            Submitted::Unanswered { .. } if patience == Patience::UntilUnanswered => return None,
            Submitted::Unanswered { look_at } => {
                between(now, *look_at).max(pipeline.limits.backoff_base)
            }
            Submitted::Deferred { because: Deferral::Api(error), .. }
                if manner.when_blocked == WhenBlocked::Stop && blocks(error) =>
            {
                return Some(Ended::Blocked(error.clone()));
            }
            Submitted::Deferred { wait, .. } => *wait,
        };
        let left = between(now, manner.deadline);
        if left.is_zero() {
            return Some(Ended::GivenUp(submitted));
        }
        pipeline.clock.sleep(wait.min(WAIT_MAX).min(left)).await;
    }
}

/// Whether the platform says that waiting does not help.
fn blocks(error: &ApiError) -> bool {
    match error.kind {
        ApiErrorKind::Denied | ApiErrorKind::PaymentRequired => true,
        ApiErrorKind::Throttled => error.retryable == Some(false),
        _ => false,
    }
}
