//! Polling: waiting for one job with full-jitter back-off and a hard deadline, and asking for
//! many jobs at once through the job list.

mod ask;
mod bulk;
mod pace;
mod rounds;

pub use bulk::{Asked, BulkPolled, bulk_poll};
pub use rounds::{Crew, News, RoundsEnded, poll_open};

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use self::ask::{Answer, ask};
use crate::backoff::full_jitter;
use crate::entry::{Cause, Entry};
use crate::job::{JobKey, JobStatus};
use crate::ports::{ApiError, ApiErrorKind, PortError};
use crate::steps::Ports;
use crate::task::Task;
use crate::time::{Timestamp, between};
use crate::update::change;
use crate::within::within;
use crate::work::{Look, PutOff, Worked, look};

/// Shortest pause between two looks at one job, whatever the platform or chance say.
pub const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Failures in a row, of the platform or of a port, after which waiting ends.
pub const FAILURES_MAX: u32 = 20;
/// Looks at a status that this version does not know, before it is reported.
pub const UNKNOWN_LOOKS_MAX: u32 = 3;
/// Answers of 404 for a job that the ledger does not know, before it counts as unknown: the
/// platform's reads may lag behind a submission by moments.
pub const MISSING_LOOKS_MAX: u32 = 3;
/// How long a look that has begun may go on after its owner was asked to stop: time for most
/// calls, and less than the 10 seconds after which supervisors kill.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// How one job is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// When waiting ends, in every branch.
    pub deadline: Timestamp,
    /// Base of the back-off.
    pub base: Duration,
    /// Cap of the back-off.
    pub cap: Duration,
}

/// How waiting for a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Polled {
    /// The row is terminal.
    Settled(Box<Entry>),
    /// The deadline passed; the last thing that was learned.
    Timeout(Option<PutOff>),
    /// Whoever waited was asked to stop; the last thing that was learned.
    Stopped(Option<PutOff>),
    /// Waiting would not help.
    Failed(ApiError),
    /// Neither the ledger nor the platform knows the job; nothing was written down for it.
    Unknown(ApiError),
    /// The platform names a status that this version does not know.
    UnknownStatus(JobStatus),
}

/// Waits until a job is settled, working it here and now.
///
/// A job that the ledger does not know is owed by it from the first look on that found it at the
/// platform; until then nothing is written down.
///
/// # Errors
/// Those of the ledger, the queue and the result store, when they last.
pub async fn poll(ports: Ports<'_>, key: &JobKey, patience: Patience) -> Result<Polled, PortError> {
    poll_until(ports, key, patience, std::future::pending()).await
}

/// Waits as [`poll`] does, or until `stop` resolves. A look that has begun is then given
/// [`STOP_GRACE`] to end, since it may be paying.
///
/// # Errors
/// As [`poll`].
pub async fn poll_until(
    ports: Ports<'_>,
    key: &JobKey,
    patience: Patience,
    stop: impl Future<Output = ()>,
) -> Result<Polled, PortError> {
    let mut stop = pin!(stop);
    let task = Task { key: key.clone() };
    let mut watch = Watch { is_owed: is_owed(ports, key).await?, ..Watch::default() };
    let mut attempt = 0_u32;
    while ports.clock.now() < patience.deadline {
        let noted = {
            let left = || between(ports.clock.now(), patience.deadline);
            let mut look = pin!(watch.look(ports, &task, patience.deadline));
            match unless(stop.as_mut(), look.as_mut()).await {
                Some(noted) => Some(noted),
                None => match within(ports.clock, STOP_GRACE.min(left()), look).await {
                    Some(Ok(Noted::Ended(polled))) => return Ok(polled),
                    _ => None,
                },
            }
        };
        let asked = match noted {
            None => return Ok(Polled::Stopped(watch.last)),
            Some(Ok(Noted::Ended(polled))) => return Ok(polled),
            Some(Ok(Noted::Wait(asked))) => asked,
            Some(Err(error)) if error.is_transient() && watch.bears_failure() => {
                error.retry_after.unwrap_or_default()
            }
            Some(Err(error)) => return Err(error),
        };
        let chance = ports.random.next_u64();
        let pause =
            full_jitter(attempt, patience.base, patience.cap, chance).max(asked).max(PAUSE_MIN);
        attempt = attempt.saturating_add(1);
        let left = between(ports.clock.now(), patience.deadline);
        if unless(stop.as_mut(), ports.clock.sleep(pause.min(left))).await.is_none() {
            return Ok(Polled::Stopped(watch.last));
        }
    }
    Ok(Polled::Timeout(watch.last))
}

/// What `work` gives; `None` when `stop` resolves first.
async fn unless<T>(
    mut stop: Pin<&mut impl Future<Output = ()>>,
    mut work: impl Future<Output = T> + Unpin,
) -> Option<T> {
    poll_fn(|context| {
        if let Poll::Ready(value) = Pin::new(&mut work).poll(context) {
            return Poll::Ready(Some(value));
        }
        stop.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// What the looks of one wait have shown so far.
#[derive(Default)]
struct Watch {
    /// Whether the ledger owes the job.
    is_owed: bool,
    failures: u32,
    unknown: u32,
    missing: u32,
    last: Option<PutOff>,
}

enum Noted {
    /// The wait is over.
    Ended(Polled),
    /// Another look, not before this pause.
    Wait(Duration),
}

impl Watch {
    async fn look(
        &mut self,
        ports: Ports<'_>,
        task: &Task,
        deadline: Timestamp,
    ) -> Result<Noted, PortError> {
        let is_late = || between(ports.clock.now(), deadline) < PAUSE_MIN;
        if !self.is_owed {
            if let Answer::Not(because, wait) = ask(ports, &task.key, deadline).await? {
                return Ok(self.note(because, wait, is_late()));
            }
            expect(ports, &task.key).await?;
            self.is_owed = true;
        }
        if let Worked::PutOff { because, wait } = look(ports, task, Look::Until(deadline)).await? {
            return Ok(self.note(because, wait, is_late()));
        }
        Ok(match ports.ledger.load(&task.key).await? {
            Some(entry) if entry.state.is_terminal() => {
                Noted::Ended(Polled::Settled(Box::new(entry)))
            }
            _ => Noted::Wait(Duration::ZERO),
        })
    }

    fn note(&mut self, because: PutOff, wait: Duration, is_late: bool) -> Noted {
        let mut asked = Duration::ZERO;
        match &because {
            PutOff::Trouble(error) if !self.is_owed && error.kind == ApiErrorKind::Missing => {
                self.missing += 1;
                if error.status == Some(410) || self.missing >= MISSING_LOOKS_MAX {
                    return Noted::Ended(Polled::Unknown(error.clone()));
                }
                asked = error.retry_after.unwrap_or_default();
            }
            PutOff::Trouble(error) => {
                if is_final(error) || !self.bears_failure() {
                    return Noted::Ended(Polled::Failed(error.clone()));
                }
                asked = error.retry_after.unwrap_or_default();
            }
            PutOff::Paused(_) => asked = wait,
            PutOff::OutOfTime => {}
            PutOff::Unfinished(status @ JobStatus::Unknown(_)) => {
                self.failures = 0;
                self.unknown += 1;
                if self.unknown >= UNKNOWN_LOOKS_MAX {
                    return Noted::Ended(Polled::UnknownStatus(status.clone()));
                }
            }
            _ => {
                self.failures = 0;
                self.unknown = 0;
            }
        }
        // A call that the deadline cut says nothing of the job: the platform's last word stays.
        if self.last.is_none() || !is_late || !is_cut(&because) {
            self.last = Some(because);
        }
        Noted::Wait(asked)
    }

    /// Counts a failure; whether the wait goes on all the same.
    const fn bears_failure(&mut self) -> bool {
        self.failures += 1;
        self.failures < FAILURES_MAX
    }
}

/// Whether a look may have ended for want of time alone.
fn is_cut(because: &PutOff) -> bool {
    match because {
        PutOff::OutOfTime => true,
        PutOff::Trouble(error) => error.kind == ApiErrorKind::Unavailable && error.status.is_none(),
        _ => false,
    }
}

/// Whether waiting does not help: the key is refused, the account is empty, or the platform says
/// of a refusal that it will stay.
fn is_final(error: &ApiError) -> bool {
    match error.kind {
        ApiErrorKind::Denied | ApiErrorKind::PaymentRequired | ApiErrorKind::Refused => true,
        ApiErrorKind::Throttled => error.retryable == Some(false),
        _ => false,
    }
}

/// Whether the ledger knows the job.
async fn is_owed(ports: Ports<'_>, key: &JobKey) -> Result<bool, PortError> {
    let now = ports.clock.now();
    Ok(ports.ledger.load(key).await?.is_some_and(|row| !row.is_expired(now)))
}

/// Makes sure that the ledger owes a job that the platform has.
async fn expect(ports: Ports<'_>, key: &JobKey) -> Result<(), PortError> {
    let now = ports.clock.now();
    let read = ports.ledger.load(key).await?;
    change(ports.ledger, read, now, |row| match row {
        Some(row) if !row.is_expired(now) => None,
        _ => Some(Entry::expected(key.clone(), None, Cause::Poll, now, ports.limits)),
    })
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests;
