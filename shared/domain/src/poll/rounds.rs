//! Working everything that the ledger has open, in rounds, until a deadline.

use std::ops::ControlFlow;
use std::time::Duration;

use async_trait::async_trait;

use super::bulk::{BulkPolled, Lists};
use super::{PAUSE_MIN, Patience};
use crate::backoff::full_jitter;
use crate::ports::PortError;
use crate::steps::Ports;
use crate::sweep::{Swept, sweep};
use crate::time::{Timestamp, after, between};
use crate::within::within;

/// Rounds in a row in which a port may fail before waiting ends.
const ROUND_FAILURES_MAX: u32 = 5;

/// Who works the tasks between two looks at the job lists, and hears how it goes.
#[async_trait]
pub trait Crew: Send + Sync {
    /// Works the visible tasks until there is none; nothing that it does goes beyond the deadline.
    /// Breaks when nothing more is to be begun.
    ///
    /// # Errors
    /// Those of the queue.
    async fn work(&self, deadline: Timestamp) -> Result<ControlFlow<()>, PortError>;

    /// Returns when a task may be visible or nothing more is to be begun, at the latest after
    /// this time.
    ///
    /// # Errors
    /// Those of the queue.
    async fn wait(&self, longest: Duration) -> Result<(), PortError>;

    /// Whether another round would be in vain: nothing is open, or something is in the way.
    ///
    /// # Errors
    /// Those of the ledger.
    async fn is_done(&self) -> Result<bool, PortError>;

    /// Hears what happened. Breaks when the round is to end here.
    fn hear(&self, news: News<'_>) -> ControlFlow<()>;
}

/// What happened in a round.
#[derive(Debug, Clone, Copy)]
pub enum News<'a> {
    /// It began.
    Began,
    /// Job lists were asked.
    Polled(&'a BulkPolled),
    /// What was due was sent.
    Swept(&'a Swept),
    /// A port failed, and the next round tries again.
    Failed(&'a PortError),
}

/// Why the rounds ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundsEnded {
    /// The crew is done.
    Done,
    /// One round was asked for.
    Once,
    /// The deadline passed.
    Late,
}

/// Works rounds until the crew is done or the deadline passes; one round if asked so. Each asks
/// the job lists whose time has come, and sends what is due: at most `sweep_rows` rows.
///
/// No call of the platform and no round begins at the deadline or later, none lasts beyond it, and
/// no pause passes it.
///
/// # Errors
/// Those of the ledger and the queue, when they last.
pub async fn poll_open(
    ports: Ports<'_>,
    crew: &dyn Crew,
    patience: Patience,
    sweep_rows: u32,
    once: bool,
) -> Result<RoundsEnded, PortError> {
    let mut rounds = Rounds { ports, crew, patience, sweep_rows, lists: Lists::default() };
    let (mut attempt, mut failures) = (0_u32, 0_u32);
    while !rounds.left().is_zero() {
        match rounds.round().await {
            Ok(()) => failures = 0,
            Err(error) => {
                failures += 1;
                if once || failures >= ROUND_FAILURES_MAX || !error.is_transient() {
                    return Err(error);
                }
                let _ = crew.hear(News::Failed(&error));
            }
        }
        if crew.is_done().await? {
            return Ok(RoundsEnded::Done);
        }
        if once {
            return Ok(RoundsEnded::Once);
        }
        rounds.pause(attempt).await?;
        attempt = attempt.saturating_add(1);
    }
    // What the last pause has seen settled is not late.
    Ok(if crew.is_done().await? { RoundsEnded::Done } else { RoundsEnded::Late })
}

struct Rounds<'a> {
    ports: Ports<'a>,
    crew: &'a dyn Crew,
    patience: Patience,
    sweep_rows: u32,
    lists: Lists,
}

impl Rounds<'_> {
    fn left(&self) -> Duration {
        between(self.ports.clock.now(), self.patience.deadline)
    }

    /// Asks the job lists, sends what is due, and works what there is to work.
    async fn round(&mut self) -> Result<(), PortError> {
        let Self { ports, crew, patience, .. } = *self;
        if crew.hear(News::Began).is_break() {
            return Ok(());
        }
        let polled = self.lists.ask(ports, patience).await?;
        // Nobody would work what a sweep sends after a break, and a row that is swept often
        // without a look counts as poison.
        if crew.hear(News::Polled(&polled)).is_break() || self.left().is_zero() {
            return Ok(());
        }
        // It may look for lost submissions, with calls that know no deadline; what is cut off is
        // swept again.
        let Some(swept) = within(ports.clock, self.left(), sweep(ports, self.sweep_rows)).await
        else {
            return Ok(());
        };
        let swept = swept?;
        let _ = crew.hear(News::Swept(&swept));
        crew.work(patience.deadline).await.map(drop)
    }

    /// Waits for the next round; tasks that become visible meanwhile are worked.
    async fn pause(&self, attempt: u32) -> Result<(), PortError> {
        let Self { ports, crew, patience, .. } = *self;
        let now = ports.clock.now();
        let pause = match self.lists.next_at() {
            Some(at) if at > now => between(now, at).min(patience.cap),
            _ => full_jitter(attempt, patience.base, patience.cap, ports.random.next_u64()),
        };
        let until = after(now, pause.max(PAUSE_MIN)).min(patience.deadline);
        loop {
            let left = between(ports.clock.now(), until);
            if left.is_zero() {
                return Ok(());
            }
            crew.wait(left).await?;
            if self.left().is_zero() || crew.work(patience.deadline).await?.is_break() {
                return Ok(());
            }
        }
    }
}
