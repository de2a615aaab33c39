//! The function that looks after what is overdue: it recovers submissions whose answer was lost, asks
//! the platform's job lists about jobs that nobody announced, sends tasks again that were lost,
//! compares delivery logs and job lists with the ledger, and takes replaced webhooks away.
//!
//! Its input is ignored. What a run does is [`domain::tick`]; here it gets its time and is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::ports::{PortError, Webhooks};
use domain::steps::Pipeline;
use domain::tick::{Part, Ran, Rules, Summary, Term, TickPorts, tick};
use domain::time::{Timestamp, before};
use serde::Serialize;
use telemetry::{Metrics, measure, tell};

/// Time at the end of an invocation in which nothing of a run happens any more, but its claim is
/// given back and its report is written.
const REPORT_TIME: Duration = Duration::from_secs(5);

/// What the function works with.
pub struct Scheduler {
    /// The adapters.
    pub pipeline: Pipeline,
    /// The platform's webhooks and their delivery logs.
    pub webhooks: Arc<dyn Webhooks>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What a run does.
    pub rules: Rules,
    /// The part that begins the next run of this process.
    pub first: Mutex<Part>,
}

/// What is answered, for whoever invokes the function by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What the run did.
    #[serde(flatten)]
    pub summary: Summary,
    /// What the process counted since its last report, by the names of docs/logging.md; zeros are
    /// left out.
    pub metrics: BTreeMap<&'static str, u64>,
}

impl Report {
    /// How the run ended.
    pub const fn ran(&self) -> Ran {
        self.summary.ran
    }
}

impl Scheduler {
    /// One run, until shortly before `deadline`, at which Lambda ends the process.
    ///
    /// # Errors
    /// When the ledger cannot be asked at all.
    pub async fn tick(&self, deadline: Timestamp) -> Result<Report, PortError> {
        let steps = self.pipeline.ports();
        let ports = TickPorts { steps, webhooks: &*self.webhooks };
        let term = Term { until: before(deadline, REPORT_TIME), claimed_until: Some(deadline) };
        let mut first = *self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let report = tick(ports, &self.rules, &mut first, term).await?;
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = first;
        if report.ran != Ran::Elsewhere {
            measure(&self.metrics, steps).await;
        }
        tell::ticked(&self.metrics, &report);
        Ok(Report { summary: report.summary(), metrics: self.metrics.counts() })
    }
}
