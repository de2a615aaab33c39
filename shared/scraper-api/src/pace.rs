//! Pacing of paid POSTs by what the account can carry.
//!
//! The platform's work concurrency counts unfinished jobs. A 429 for it says "later", not "no":
//! nothing was paid, and the same POST may be made again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{
    ApiError, ApiErrorKind, Clock, ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage,
    SubmitError,
};
use domain::request::JobRequest;
use domain::time::{Timestamp, after, between};

use crate::account::Usage;

/// The window is counted in thousandths of a POST, so that it can grow by less than one.
const ONE: u64 = 1_000;
/// Pause before a full window is looked at again.
const SLOT_PAUSE: Duration = Duration::from_millis(25);
/// Longest wait for the account's concurrency.
const USAGE_WITHIN: Duration = Duration::from_secs(2);
/// Most POSTs made for one submission, all but the last refused with 429.
const TRIES_MAX: u32 = 8;
/// Share of a submission's time that may pass before its last POST is begun: one half.
const WAIT_SHARE: u32 = 2;

/// Bounds of [`Pace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaceSettings {
    /// POSTs in flight to begin with.
    pub start: u32,
    /// Most POSTs in flight as long as the account's concurrency is not known.
    pub ceiling: u32,
    /// Pause between two POSTs when one may be in flight; with `n` it is the `n`-th part.
    pub spacing: Duration,
    /// First pause after a 429 without `Retry-After`; doubles with each 429 in a row.
    pub backoff_base: Duration,
    /// Longest pause after a 429 without `Retry-After`.
    pub backoff_cap: Duration,
    /// Age at which the account's concurrency is read again.
    pub usage_max_age: Duration,
}

impl Default for PaceSettings {
    fn default() -> Self {
        Self {
            start: 4,
            ceiling: 16,
            spacing: Duration::from_millis(250),
            backoff_base: Duration::from_secs(1),
            backoff_cap: Duration::from_secs(30),
            usage_max_age: Duration::from_mins(1),
        }
    }
}

/// Whether a POST may be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It may, and counts as in flight from now on.
    Go,
    /// Ask again after this time.
    Wait(Duration),
}

/// How a POST went, as far as the pace is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// The platform took it.
    Accepted,
    /// 429.
    Throttled {
        /// How long to wait, if the platform said so.
        retry_after: Option<Duration>,
    },
    /// Anything else; says nothing about the pace.
    Other,
}

/// Decides when the next POST may be made: additive increase, multiplicative decrease.
#[derive(Debug, Clone)]
pub struct Pace {
    settings: PaceSettings,
    /// POSTs that may be in flight, in thousandths; at least one.
    window: u64,
    ceiling: u64,
    in_flight: u32,
    next_at: Timestamp,
    closed_until: Timestamp,
    throttled_in_a_row: u32,
    usage_read_at: Option<Timestamp>,
}

impl Pace {
    /// A pace at its start.
    pub fn new(settings: PaceSettings) -> Self {
        let ceiling = u64::from(settings.ceiling.max(1)) * ONE;
        Self {
            window: (u64::from(settings.start.max(1)) * ONE).min(ceiling),
            ceiling,
            settings,
            in_flight: 0,
            next_at: Timestamp::MIN,
            closed_until: Timestamp::MIN,
            throttled_in_a_row: 0,
            usage_read_at: None,
        }
    }

    /// Asks for a POST.
    pub fn ask(&mut self, now: Timestamp) -> Turn {
        let open_at = self.closed_until.max(self.next_at);
        if now < open_at {
            return Turn::Wait(between(now, open_at));
        }
        if u64::from(self.in_flight) * ONE >= self.window {
            return Turn::Wait(SLOT_PAUSE);
        }
        self.in_flight = self.in_flight.saturating_add(1);
        self.next_at = after(now, self.settings.spacing / self.posts_in_flight_max());
        Turn::Go
    }

    /// Records how a POST went that was allowed by [`Pace::ask`].
    pub fn record(&mut self, now: Timestamp, answered: Answered) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match answered {
            Answered::Accepted => {
                self.throttled_in_a_row = 0;
                self.window = (self.window + ONE * ONE / self.window).min(self.ceiling);
            }
            // POSTs that were in flight together are refused together: that is one refusal.
            Answered::Throttled { .. } if now < self.closed_until => {}
            Answered::Throttled { retry_after } => {
                self.window = (self.window / 2).max(ONE);
                let doubled = 1_u32.checked_shl(self.throttled_in_a_row).unwrap_or(u32::MAX);
                let backoff = self.settings.backoff_base.saturating_mul(doubled);
                let backoff = backoff.min(self.settings.backoff_cap);
                let pause = retry_after.unwrap_or(backoff);
                self.throttled_in_a_row = self.throttled_in_a_row.saturating_add(1);
                self.closed_until = after(now, pause);
            }
            Answered::Other => {}
        }
    }

    /// Whether the account's concurrency should be read now. Says so to one caller only.
    pub fn claim_usage_read(&mut self, now: Timestamp) -> bool {
        let is_due = self
            .usage_read_at
            .is_none_or(|read_at| between(read_at, now) >= self.settings.usage_max_age);
        if is_due {
            self.usage_read_at = Some(now);
        }
        is_due
    }

    /// Takes the account's concurrency for the most POSTs in flight.
    pub fn set_ceiling(&mut self, limit: u64) {
        self.ceiling = limit.clamp(1, u64::from(u32::MAX)) * ONE;
        self.window = self.window.min(self.ceiling);
    }

    /// Whole POSTs that may be in flight.
    pub fn posts_in_flight_max(&self) -> u32 {
        u32::try_from(self.window / ONE).unwrap_or(u32::MAX).max(1)
    }
}

/// A [`Jobs`] whose submissions keep to a [`Pace`]. All other calls pass through.
///
/// Waiting counts against a submission's `within`: a POST is begun in the first half of it or not
/// at all, so whoever knows when the call was made knows when its effect can be at the latest.
pub struct Paced<J> {
    jobs: J,
    usage: Arc<dyn Usage>,
    clock: Arc<dyn Clock>,
    pace: Mutex<Pace>,
}

impl<J: Jobs> Paced<J> {
    /// Wraps `jobs`. Nothing is sent.
    pub fn new(
        jobs: J,
        usage: Arc<dyn Usage>,
        clock: Arc<dyn Clock>,
        settings: PaceSettings,
    ) -> Self {
        Self { jobs, usage, clock, pace: Mutex::new(Pace::new(settings)) }
    }

    /// What is wrapped.
    pub const fn inner(&self) -> &J {
        &self.jobs
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read_usage_if_due(&self, within: Duration) {
        let is_due = self.pace().claim_usage_read(self.clock.now());
        if !is_due {
            return;
        }
        // Without an answer the pace goes on with what it knows.
        if let Ok(usage) = self.usage.concurrency(within.min(USAGE_WITHIN)).await {
            self.pace().set_ceiling(usage.limit);
        }
    }

    /// Waits for a turn until `give_up_at`; the error is how much longer it would take at least.
    async fn turn(&self, give_up_at: Timestamp) -> Result<InFlight<'_>, Duration> {
        loop {
            let now = self.clock.now();
            // Its own statement, so that the lock is not held while sleeping.
            let turn = self.pace().ask(now);
            match turn {
                Turn::Go => {
                    return Ok(InFlight {
                        pace: &self.pace,
                        clock: &*self.clock,
                        answered: Answered::Other,
                    });
                }
                Turn::Wait(pause) if after(now, pause) > give_up_at => return Err(pause),
                Turn::Wait(pause) => self.clock.sleep(pause).await,
            }
        }
    }
}

/// A POST in flight; recorded when dropped, also when the caller gives up on it.
struct InFlight<'a> {
    pace: &'a Mutex<Pace>,
    clock: &'a dyn Clock,
    answered: Answered,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let now = self.clock.now();
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).record(now, self.answered);
    }
}

#[async_trait]
impl<J: Jobs> Jobs for Paced<J> {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        self.jobs.extract(job_id, within).await
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.jobs.parent(key, page, within).await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        let began_at = self.clock.now();
        let give_up_at = after(began_at, within / WAIT_SHARE);
        self.read_usage_if_due(within / WAIT_SHARE).await;
        let mut refusal = ApiError::new(ApiErrorKind::Throttled, "too many submissions wait");
        for _ in 0..TRIES_MAX {
            let mut in_flight = match self.turn(give_up_at).await {
                Ok(in_flight) => in_flight,
                Err(pause) => {
                    refusal.retry_after = Some(pause);
                    break;
                }
            };
            let left = within.saturating_sub(between(began_at, self.clock.now()));
            let submitted = self.jobs.submit(request, left).await;
            match submitted {
                Err(SubmitError::Refused(error)) if error.kind == ApiErrorKind::Throttled => {
                    in_flight.answered = Answered::Throttled { retry_after: error.retry_after };
                    if error.retryable == Some(false) {
                        return Err(SubmitError::Refused(error));
                    }
                    refusal = error;
                }
                other => {
                    if other.is_ok() {
                        in_flight.answered = Answered::Accepted;
                    }
                    return other;
                }
            }
        }
        Err(SubmitError::Refused(refusal))
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        self.jobs.list(kind, query, within).await
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.jobs.probe(within).await
    }
}

#[cfg(test)]
mod tests;
