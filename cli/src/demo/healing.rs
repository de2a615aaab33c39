//! How long it took to make good what a webhook did not tell at once, and by which way jobs came.

use std::collections::BTreeMap;
use std::path::Path;

use domain::entry::{Cause, Entry, StateName};
use domain::ports::EntryFilter;
use serde::Serialize;

use super::books::Job;
use super::report::percentile;
use super::seconds_between;
use crate::error::CliError;
use crate::pipeline::Pipeline;

/// Rows read at once.
const PAGE: u32 = 500;

/// Times from the platform's end of a job to its stored result, of the stored jobs whose first
/// delivery was not accepted: it was never sent, signed wrongly, refused, or not answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Healing {
    /// Those jobs.
    pub jobs: u64,
    /// Seconds, median.
    pub p50_secs: f64,
    /// The same, 99th percentile.
    pub p99_secs: f64,
    /// The longest.
    pub max_secs: f64,
}

impl Healing {
    /// Of these books, and of the moments in which the objects were stored.
    pub(super) fn of(books: &[Job], stored: &BTreeMap<String, domain::time::Timestamp>) -> Self {
        let mut secs: Vec<f64> = books
            .iter()
            .filter(|job| job.deliveries.first_accepted != Some(true))
            .filter_map(|job| Some(seconds_between(job.finished_at?, *stored.get(&job.id)?)))
            .collect();
        secs.sort_by(f64::total_cmp);
        Self {
            jobs: u64::try_from(secs.len()).unwrap_or(u64::MAX),
            p50_secs: percentile(&secs, 50),
            p99_secs: percentile(&secs, 99),
            max_secs: secs.last().copied().unwrap_or_default(),
        }
    }
}

/// When a file was written for the last time.
pub(super) fn written_at(path: &Path) -> Option<domain::time::Timestamp> {
    let modified = path.metadata().ok()?.modified().ok()?;
    domain::time::Timestamp::try_from(modified).ok()
}

/// By which way the end of each job that has ended became known first.
pub(super) async fn ways(pipeline: &Pipeline) -> Result<BTreeMap<String, u64>, CliError> {
    let mut ways = BTreeMap::new();
    let (filter, mut after) = (EntryFilter::default(), None);
    loop {
        let page = pipeline.ledger.list_entries(&filter, after.as_ref(), PAGE).await?;
        for entry in page.items.iter().filter(|entry| entry.state.is_terminal()) {
            *ways.entry(way(entry).to_owned()).or_default() += 1;
        }
        after = page.next;
        if after.is_none() {
            return Ok(ways);
        }
    }
}

/// Who announced the job first; the sweep, where nobody did before a worker looked.
fn way(entry: &Entry) -> &'static str {
    let first = entry.history.iter().find(|transition| transition.to != StateName::Expected);
    match first.map(|transition| transition.cause) {
        Some(Cause::Delivery) => "webhook",
        Some(Cause::Replay) => "replay",
        Some(Cause::Reconcile) => "reconcile",
        Some(Cause::Poll) => "poll",
        _ => "sweep",
    }
}
