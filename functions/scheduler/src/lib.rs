//! The function that looks after what is overdue: it recovers submissions whose answer was lost, asks
//! the platform's job lists about jobs that nobody announced, and sends tasks again that were lost.
//!
//! Its input is ignored. A run may end anywhere and may run twice at once: what was done stays done,
//! and a claim in the ledger only saves the second run its calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::claim::{self, Claim};
use domain::pause::Scope;
use domain::poll::{Asked, bulk_poll};
use domain::ports::PortError;
use domain::steps::Pipeline;
use domain::sweep::{recover_due, sweep};
use domain::time::{Timestamp, between};
use domain::within::within;
use serde::Serialize;
use telemetry::{Chain, Metrics, measure, tell};

/// The control row by which one run at a time is at work.
const CLAIM: &str = "claim/tick";
/// Time at the end of an invocation in which nothing of a run happens any more, but its claim is
/// given back and its report is written.
const REPORT_TIME: Duration = Duration::from_secs(5);

/// What the function works with.
pub struct Scheduler {
    /// The adapters.
    pub pipeline: Pipeline,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Most rows of the ledger that one run sweeps.
    pub tick_rows: u32,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ran {
    /// To its end.
    Whole,
    /// The time was over; the next run goes on.
    OutOfTime,
    /// Another run is at work.
    Elsewhere,
    /// The account is paused: nothing can be asked.
    Paused,
}

/// What is answered, for whoever invokes the function by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How it ended.
    pub ran: Ran,
    /// What it counted, by the names of docs/logging.md; zeros are left out.
    pub counted: BTreeMap<&'static str, u64>,
}

impl Scheduler {
    /// One run, until shortly before `deadline`, at which Lambda ends the process.
    ///
    /// # Errors
    /// When the ledger cannot be asked at all.
    pub async fn tick(&self, deadline: Timestamp) -> Result<Report, PortError> {
        let (clock, ledger) = (&*self.pipeline.clock, &*self.pipeline.ledger);
        let began = clock.now();
        let holder = self.pipeline.random.token();
        let Some(claim) = claim::take(ledger, CLAIM, &holder, began, deadline).await? else {
            tracing::info!("another run is at work");
            return Ok(self.report(Ran::Elsewhere));
        };
        let left = between(began, deadline).saturating_sub(REPORT_TIME);
        let ran = within(clock, left, Box::pin(self.parts())).await.unwrap_or(Ran::OutOfTime);
        measure(&self.metrics, self.pipeline.ports()).await;
        self.give_back(claim).await;
        tell::tick(&self.metrics, between(began, clock.now()));
        tracing::info!(?ran, "run ended");
        Ok(self.report(ran))
    }

    fn report(&self, ran: Ran) -> Report {
        Report { ran, counted: self.metrics.counts() }
    }

    /// Lost answers first, since rows wait for them; lists before single jobs, since they answer for
    /// many. Trouble ends a part, which goes on in its next turn where it stopped.
    async fn parts(&self) -> Ran {
        let ports = self.pipeline.ports();
        if self.is_paused().await {
            return Ran::Paused;
        }
        tell::swept(&self.metrics, &recover_due(ports, self.tick_rows).await);
        tell::polled(&self.metrics, &bulk_poll(ports, Asked::Due).await);
        tell::swept(&self.metrics, &sweep(ports, self.tick_rows).await);
        if self.is_paused().await { Ran::Paused } else { Ran::Whole }
    }

    async fn is_paused(&self) -> bool {
        let pipeline = &self.pipeline;
        let now = pipeline.clock.now();
        let pause = pipeline.pauses.active(&*pipeline.ledger, Scope::All, now).await;
        // What cannot be read is no pause here; whoever calls the API reads it again.
        pause.ok().flatten().is_some()
    }

    async fn give_back(&self, claim: Claim) {
        let now = self.pipeline.clock.now();
        if let Err(error) = claim::release(&*self.pipeline.ledger, claim, now).await {
            tracing::warn!(error = %Chain(&error), "the run's claim ends by itself");
        }
    }
}
