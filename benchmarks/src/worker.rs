//! How many jobs a second the workers store when the platform answers at once.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use domain::announce::{AnnouncePorts, announce};
use domain::entry::Cause;
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use embedded::SqliteStore;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use system::{SystemClock, SystemRandom};

use crate::machine::fdatasync;
use crate::platform::Platform;
use crate::site::{Site, until_called, until_stored};
use crate::table::markdown;

/// Average bytes of one result.
const RESULT_BYTES: u32 = 10_000;
/// Announcements under way at once.
const ANNOUNCED: usize = 256;

const READ: &str = "GET /v1/extract/{job_id}";

/// Announces that many finished jobs, starts a server over them, and waits until all are stored.
pub(crate) async fn run(folder: &Path, jobs: u32, workers: &[u32]) -> Result<()> {
    let sync = fdatasync(folder)?;
    let mut rows = Vec::new();
    for count in workers {
        let folder = folder.join(format!("workers-{count}"));
        std::fs::create_dir_all(&folder)?;
        rows.push(measure(&folder, jobs, *count).await?);
    }
    let heading =
        ["Workers", "Jobs/s", "CPU ms a job", "its platform's", "Jobs per fdatasync", "Peak MiB"];
    for row in &mut rows {
        let rate: f64 = row.get(1).map_or(Ok(0.0), |rate| rate.parse())?;
        row.insert(4, format!("{:.2}", rate * sync.median / 1e3));
    }
    println!("{}", markdown(&heading, &rows));
    Ok(())
}

async fn measure(folder: &Path, jobs: u32, workers: u32) -> Result<Vec<String>> {
    let platform = Platform::start(folder, RESULT_BYTES)?;
    let ids = platform.submit_extracts(jobs).await?;
    let site = Site::new(folder.join("site"), &platform)?;
    let ledger = site.ledger()?;
    fill(&ledger, &ids).await?;
    let platform_before = platform.process().cpu_seconds()?;
    let served = site.serve(&["--without-webhooks", "--set", &format!("workers={workers}")])?;
    let begun = now();
    until_called(&platform, READ, u64::from(jobs)).await?;
    until_stored(&ledger, u64::from(jobs)).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let a_job = |cpu: f64| format!("{:.3}", cpu * 1e3 / f64::from(jobs));
    Ok(vec![
        workers.to_string(),
        format!("{:.0}", f64::from(jobs) / seconds),
        a_job(served.process.cpu_seconds()?),
        a_job(platform.process().cpu_seconds()? - platform_before),
        format!("{:.0}", served.process.peak_mib()?),
    ])
}

/// Announces the jobs as deliveries would.
async fn fill(ledger: &SqliteStore, ids: &[String]) -> Result<()> {
    let limits = Limits::default();
    let ports = AnnouncePorts {
        entries: ledger,
        queue: ledger,
        clock: &SystemClock,
        random: &SystemRandom,
        limits: &limits,
    };
    let announced = ids.iter().map(|id| async move {
        let key = JobKey { kind: Kind::Extract, job_id: JobId::parse(id)? };
        announce(ports, &key, Cause::Delivery, None).await?;
        anyhow::Ok(())
    });
    stream::iter(announced).buffer_unordered(ANNOUNCED).try_collect().await
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}
