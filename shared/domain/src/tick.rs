//! The tick: everything that is to be looked after now and then, as one step.
//!
//! Its parts, in order: lost answers first, since rows wait for them; lists before single jobs,
//! since they answer for many; then what nobody has told the ledger of, and what is to be taken
//! away. Its input is nothing but the time that it has. It may end anywhere and may run twice at
//! once: what was done stays done, each part saves its own place, and a claim only saves the second
//! run its calls.

mod report;

use std::time::Duration;

pub use report::{Outcome, Ran, Summary, TickReport};

use crate::claim::{self, Claim};
use crate::pause::Scope;
use crate::poll::{Asked, bulk_poll};
use crate::ports::{PortError, Webhooks};
use crate::reconcile::{self, Manner, Reconciled, reconcile};
use crate::replay::{self, Replayed, replay};
use crate::retire::{RetirePorts, work_off};
use crate::steps::Ports;
use crate::sweep::{recover_due, sweep};
use crate::time::{Timestamp, between};
use crate::within::within;
use crate::work::Look;

/// The control row by which one run at a time is at work.
pub const CLAIM: &str = "claim/tick";

/// What a tick does, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Most rows of the ledger that one sweep and one recovery look at.
    pub rows: u32,
    /// How job lists are compared.
    pub reconcile: reconcile::Rules,
    /// How delivery logs are read; `None` where there are no webhooks, and job lists are all there
    /// is.
    pub replay: Option<replay::Rules>,
}

impl Default for Rules {
    fn default() -> Self {
        let replay = Some(replay::Rules::default());
        Self { rows: 1_000, reconcile: reconcile::Rules::default(), replay }
    }
}

/// The time that a tick has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Nothing of it happens after this instant.
    pub until: Timestamp,
    /// Until when it keeps others from running; `None` where there is nobody else.
    pub claimed_until: Option<Timestamp>,
}

/// A part of a tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Finding the jobs of POSTs whose answers were lost.
    #[default]
    Recovery,
    /// Asking the job lists for expected jobs that are overdue.
    BulkPolling,
    /// Sending the tasks of rows that are overdue.
    Sweep,
    /// Comparing the delivery logs with the ledger, and checking the subscriptions.
    Replay,
    /// Comparing the job lists with the ledger.
    Reconcile,
    /// Taking away webhooks that were replaced.
    Retirements,
}

impl Part {
    /// All parts in their order.
    pub const ALL: [Self; 6] = [
        Self::Recovery,
        Self::BulkPolling,
        Self::Sweep,
        Self::Replay,
        Self::Reconcile,
        Self::Retirements,
    ];

    /// All parts, this one first.
    fn and_others(self) -> impl Iterator<Item = Self> {
        let from = Self::ALL.into_iter().skip_while(move |part| *part != self);
        from.chain(Self::ALL.into_iter().take_while(move |part| *part != self))
    }
}

/// What a tick works with.
#[derive(Clone, Copy)]
pub struct TickPorts<'a> {
    /// What the steps work with.
    pub steps: Ports<'a>,
    /// The platform's webhooks.
    pub webhooks: &'a dyn Webhooks,
}

/// One tick. `first` is the part that begins, and is moved to the one that shall begin the next
/// tick: a part that a pause of the account or the end of the time keeps from its turn is first
/// then, so that none waits for ever.
///
/// # Contract
/// Trouble ends a part, which goes on in its next turn where it stopped, and leaves the others
/// alone. It is told in the report.
///
/// # Errors
/// When the claim cannot be asked for.
///
/// # Cancellation
/// As after a crash.
pub async fn tick(
    ports: TickPorts<'_>,
    rules: &Rules,
    first: &mut Part,
    term: Term,
) -> Result<TickReport, PortError> {
    let steps = ports.steps;
    let began = steps.clock.now();
    let mut report = TickReport { began, ..TickReport::default() };
    let mut claim = None;
    if let Some(until) = term.claimed_until {
        let holder = steps.random.token();
        claim = claim::take(steps.ledger, CLAIM, &holder, began, until).await?;
        if claim.is_none() {
            report.ran = Ran::Elsewhere;
            return Ok(report);
        }
    }
    report.ran = parts(ports, rules, first, term.until, &mut report).await;
    if let Some(claim) = claim {
        report.claim = give_back(steps, claim).await.err();
    }
    report.ended = steps.clock.now();
    Ok(report)
}

async fn give_back(ports: Ports<'_>, claim: Claim) -> Result<(), PortError> {
    claim::release(ports.ledger, claim).await
}

async fn parts(
    ports: TickPorts<'_>,
    rules: &Rules,
    first: &mut Part,
    until: Timestamp,
    report: &mut TickReport,
) -> Ran {
    for part in first.and_others() {
        *first = part;
        report.paused_until = paused_until(ports.steps).await;
        if report.paused_until.is_some() {
            return Ran::Paused;
        }
        let left = between(ports.steps.clock.now(), until);
        if left.is_zero() {
            return Ran::OutOfTime;
        }
        let work = Box::pin(one(ports, rules, part, until, report));
        if within(ports.steps.clock, left, work).await.is_none() {
            report.cut = Some(part);
            *first = part.next();
            return Ran::OutOfTime;
        }
    }
    *first = Part::default();
    report.paused_until = paused_until(ports.steps).await;
    if report.paused_until.is_some() { Ran::Paused } else { Ran::Whole }
}

impl Part {
    /// The part after this one.
    fn next(self) -> Self {
        self.and_others().nth(1).unwrap_or_default()
    }
}

/// When the account's pause ends, if it is paused. What cannot be read is no pause here; whoever
/// calls the API reads it again.
async fn paused_until(ports: Ports<'_>) -> Option<Timestamp> {
    let pause = ports.pauses.active(ports.ledger, Scope::All, ports.clock.now()).await;
    pause.ok().flatten().map(|pause| pause.until)
}

/// Does one part, and puts what it did into the report, of which what is there stays there if the
/// part is cut off.
async fn one(
    ports: TickPorts<'_>,
    rules: &Rules,
    part: Part,
    until: Timestamp,
    report: &mut TickReport,
) {
    let steps = ports.steps;
    let manner = Manner { look: Look::ScheduledUntil(until), is_dry: false };
    match part {
        Part::Recovery => report.recovered = Some(recover_due(steps, rules.rows).await),
        Part::BulkPolling => report.polled = Some(bulk_poll(steps, Asked::Due).await),
        Part::Sweep => report.swept = Some(sweep(steps, rules.rows).await),
        Part::Replay => {
            let Some(rules) = &rules.replay else { return };
            let replayed = report.replayed.insert(Outcome::<Replayed>::default());
            let outcome =
                replay(steps, ports.webhooks, rules, manner, &mut replayed.did, &mut |_| {}).await;
            replayed.error = outcome.err();
        }
        Part::Reconcile => {
            let reconciled = report.reconciled.insert(Outcome::<Reconciled>::default());
            let outcome =
                reconcile(steps, &rules.reconcile, manner, &mut reconciled.did, &mut |_| {}).await;
            reconciled.error = outcome.err();
        }
        Part::Retirements => {
            let announcing = steps.announcing();
            let ports = RetirePorts { announcing, webhooks: ports.webhooks, control: steps.ledger };
            let left: Duration = between(steps.clock.now(), until);
            report.retired = Some(work_off(ports, left).await);
        }
    }
}

#[cfg(test)]
mod tests;
