//! Submitting many: a bounded number at once, each until its outcome is known.

use std::time::Duration;

use domain::intent::Submission;
use domain::ports::{ApiError, ApiErrorKind, PortError};
use domain::submit::{Deferral, Submitted, submit};
use domain::time::{Timestamp, between};
use futures_util::StreamExt as _;
use tokio::sync::watch;

use crate::pipeline::Pipeline;

/// Longest single wait; a longer pause of the account is waited for in pieces.
const WAIT_MAX: Duration = Duration::from_mins(1);
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

/// Asks a call to begin nothing more. What was begun is finished, since a POST that is cut off may
/// have been paid for.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    signal: watch::Sender<bool>,
}

impl Stop {
    /// Asks.
    pub(crate) fn stop(&self) {
        self.signal.send_replace(true);
    }

    /// Whether somebody asked.
    pub(crate) fn is_set(&self) -> bool {
        *self.signal.borrow()
    }

    /// Resolves when somebody asks.
    pub(crate) async fn asked(&self) {
        // The sender lives as long as `self`, so this ends with the signal only.
        let _ = self.signal.subscribe().wait_for(|stop| *stop).await;
    }
}

/// Who hears how the submissions go.
pub(crate) trait Audience: Sync {
    /// A submission ended for this call.
    fn ended(&self, submission: &Submission, ended: &Ended);

    /// A try did not settle a submission: it waits for another one.
    fn waits(&self, _submission: &Submission, _tried: &Submitted) {}
}

impl<F: Fn(&Submission, &Ended) + Sync> Audience for F {
    fn ended(&self, submission: &Submission, ended: &Ended) {
        self(submission, ended);
    }
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
    submit_until(pipeline, submissions, manner, &Stop::default(), &told).await;
}

/// Submits all, until somebody asks to stop, the account is in the way, or the deadline passes.
/// Nothing is told of those that were not begun.
pub(crate) async fn submit_until(
    pipeline: &Pipeline,
    submissions: &[Submission],
    manner: Manner,
    stop: &Stop,
    audience: &dyn Audience,
) {
    let call = Call { pipeline, manner, stop, audience };
    let unanswered = call.round(submissions.iter().collect(), Patience::UntilUnanswered).await;
    call.round(unanswered, Patience::UntilKnown).await;
}

/// How long a submission is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// Until an answer was lost, at the latest.
    UntilUnanswered,
    /// Until the outcome is known.
    UntilKnown,
}

/// How trying a submission ended.
enum Tried {
    /// For this call.
    Ended(Ended),
    /// An answer was lost, and that ends the patience.
    Unanswered,
    /// Somebody asked to stop.
    Stopped,
}

/// One call that submits.
struct Call<'a> {
    pipeline: &'a Pipeline,
    manner: Manner,
    stop: &'a Stop,
    audience: &'a dyn Audience,
}

impl Call<'_> {
    /// Tries each submission; returns those whose answer was lost.
    async fn round<'s>(
        &self,
        submissions: Vec<&'s Submission>,
        patience: Patience,
    ) -> Vec<&'s Submission> {
        let one = |submission| async move { (submission, self.tries(submission, patience).await) };
        let mut ends = futures_util::stream::iter(submissions.into_iter().map(one))
            .buffer_unordered(self.manner.at_once.max(1));
        let mut unanswered = Vec::new();
        while let Some((submission, tried)) = ends.next().await {
            match tried {
                Tried::Ended(ended) => {
                    self.audience.ended(submission, &ended);
                    // Where one has to wait beyond the deadline or cannot pay, so do the others.
                    if matches!(ended, Ended::Blocked(_) | Ended::GivenUp(_)) {
                        self.stop.stop();
                    }
                }
                Tried::Unanswered => unanswered.push(submission),
                Tried::Stopped => {}
            }
        }
        unanswered
    }

    /// Tries until the outcome is known.
    async fn tries(&self, submission: &Submission, patience: Patience) -> Tried {
        let Self { pipeline, manner, stop, .. } = self;
        let mut failures = 0;
        while !stop.is_set() {
            let submitted = match submit(pipeline.ports(), submission).await {
                Ok(submitted) => submitted,
                Err(error) => {
                    failures += 1;
                    let is_late = self.left().is_zero();
                    if failures >= FAILURES_MAX || !error.is_transient() || is_late {
                        return Tried::Ended(Ended::Failed(error));
                    }
                    self.sleep(pipeline.limits.backoff_base.min(self.left())).await;
                    continue;
                }
            };
            failures = 0;
            let now = pipeline.clock.now();
            let wait = match &submitted {
                Submitted::Accepted { .. } | Submitted::Refused(_) | Submitted::Ambiguous => {
                    return Tried::Ended(Ended::Known(submitted));
                }
                Submitted::Unanswered { .. } if patience == Patience::UntilUnanswered => {
                    self.audience.waits(submission, &submitted);
                    return Tried::Unanswered;
                }
                Submitted::Unanswered { look_at } => {
                    between(now, *look_at).max(pipeline.limits.backoff_base)
                }
                Submitted::Deferred { because: Deferral::Api(error), .. }
                    if manner.when_blocked == WhenBlocked::Stop && blocks(error) =>
                {
                    return Tried::Ended(Ended::Blocked(error.clone()));
                }
                Submitted::Deferred { wait, .. } => *wait,
            };
            if !self.left().is_zero() {
                self.audience.waits(submission, &submitted);
                self.sleep(wait.min(WAIT_MAX).min(self.left())).await;
            }
            // Nothing is tried again at the deadline: the POST could end long after it.
            if self.left().is_zero() {
                return Tried::Ended(Ended::GivenUp(submitted));
            }
        }
        Tried::Stopped
    }

    /// Time until the deadline.
    fn left(&self) -> Duration {
        between(self.pipeline.clock.now(), self.manner.deadline)
    }

    async fn sleep(&self, wait: Duration) {
        tokio::select! {
            biased;
            () = self.stop.asked() => {}
            () = self.pipeline.clock.sleep(wait) => {}
        }
    }
}

/// Whether the platform says that waiting does not help.
pub(crate) fn blocks(error: &ApiError) -> bool {
    match error.kind {
        ApiErrorKind::Denied | ApiErrorKind::PaymentRequired => true,
        ApiErrorKind::Throttled => error.retryable == Some(false),
        _ => false,
    }
}
