//! `audit`: the books of a period of a million jobs.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use domain::ports::Clock as _;
use domain::time::before;
use serde_json::json;
use system::SystemClock;

use crate::reconcile::platform::{Jobs, Lists};
use crate::reconcile::{HISTORY, NEWEST, fill, measure, verdict};
use crate::table::markdown;

/// The results of these jobs were never written, and nobody delivered anything.
const AUDIT: [&str; 5] = ["audit", "--json", "--no-objects", "--no-deliveries", "--from"];
/// Jobs of the first of two periods, against which the second shows what a job takes.
const FEW: u64 = 1_000;
const MIB: f64 = 1024.0 * 1024.0;
/// What must hold: bytes a job.
const BYTES_A_JOB: f64 = 64.0;

/// How much is compared.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Jobs of the period, all of them listed and stored
    #[arg(long, default_value_t = 1_000_000)]
    jobs: u64,
}

impl Audit {
    pub(crate) async fn run(self, folder: &Path) -> Result<()> {
        let (mut rows, mut peaks) = (Vec::new(), Vec::new());
        for count in [FEW, self.jobs] {
            let newest = before(SystemClock.now(), NEWEST);
            let step = HISTORY / u32::try_from(count.max(1))?;
            let jobs = Jobs { count, newest, step, is_new_from: count };
            let folder = folder.join(count.to_string());
            fill(&folder.join("gleaner-data"), &jobs).await?;
            let lists = Lists::start(jobs).await?;
            let from = before(newest, HISTORY + Duration::from_hours(1)).to_string();
            let figures = measure(&folder, &lists, &[&AUDIT[..], &[&from]].concat())?;
            let listed = figures.report.pointer("/jobs/extract/ledger/stored");
            ensure!(listed == Some(&json!(count)), "{}", figures.report);
            rows.push(vec![
                count.to_string(),
                figures.calls.to_string(),
                format!("{:.1}", figures.seconds),
                format!("{:.1}", figures.cpu_seconds),
                format!("{:.0}", figures.peak_mib),
            ]);
            peaks.push(figures.peak_mib);
        }
        let heading = ["Jobs", "List calls", "Seconds", "CPU seconds", "Peak MiB"];
        println!("{}", markdown(&heading, &rows));
        if let [few, many] = peaks.as_slice() {
            let more = f64::from(u32::try_from(self.jobs.saturating_sub(FEW).max(1))?);
            let bytes = (many - few) * MIB / more;
            let what = format!("{bytes:.0} bytes a job");
            verdict(&what, bytes <= BYTES_A_JOB, &BYTES_A_JOB.to_string());
        }
        Ok(())
    }
}
