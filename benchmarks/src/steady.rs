//! What the server keeps in memory after very many deliveries.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::platform::Platform;
use crate::site::{Site, pause, until_called, until_stored};
use crate::table::markdown;

/// Average bytes of one result.
const RESULT_BYTES: u32 = 10_000;
/// Rest after the work, before the last look.
const REST: Duration = Duration::from_secs(10);
/// What must hold, in MiB at rest.
const RESIDENT_MIB: f64 = 64.0;
/// How often the memory is looked at on the way.
const STEPS: u32 = 4;

const READ: &str = "GET /v1/extract/{job_id}";

/// Lets the platform deliver so many finished jobs, all of which are stored.
pub(crate) async fn run(folder: &Path, deliveries: u32) -> Result<()> {
    let platform = Platform::start(folder, RESULT_BYTES)?;
    let site = Site::new(folder.join("site"), &platform)?;
    let served = site.serve_webhooks()?;
    let process = &served.process;
    let mut rows = Vec::new();
    let mut look = |name: String| -> Result<f64> {
        let (resident, peak) = (process.resident_mib()?, process.peak_mib()?);
        let cpu = process.cpu_seconds()?;
        rows.push(vec![name, format!("{resident:.1}"), format!("{peak:.1}"), format!("{cpu:.1}")]);
        Ok(resident)
    };
    look("0 (started)".to_owned())?;
    let mut sent = 0;
    for step in 1..=STEPS {
        let upto = deliveries / STEPS * step;
        sent += u32::try_from(platform.submit_extracts(upto - sent).await?.len())?;
        until_called(&platform, READ, u64::from(sent)).await?;
        look(format!("{sent} (at work)"))?;
    }
    until_stored(&site.ledger()?, u64::from(sent)).await?;
    pause(REST).await;
    let resident = look(format!("{sent} (all stored, at rest)"))?;
    println!("{}", markdown(&["Deliveries", "Resident MiB", "Peak MiB", "CPU seconds"], &rows));
    let is_met = resident <= RESIDENT_MIB;
    let met = if is_met { "met" } else { "MISSED" };
    println!("resident at rest: {met} ({resident:.1}, at most {RESIDENT_MIB} MiB)");
    Ok(())
}
