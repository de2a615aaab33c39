//! The machine that the figures come from.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::figures::{median, percentile};

/// How often the disk is asked to sync.
const SYNCS: usize = 300;
/// What is written before each: a page of SQLite's log.
const PAGE: [u8; 4096] = [7; 4096];

/// What one fdatasync of a freshly appended page costs, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sync {
    pub(crate) median: f64,
    pub(crate) p99: f64,
}

/// Measures fdatasync on the disk that holds this folder.
pub(crate) fn fdatasync(folder: &Path) -> Result<Sync> {
    let mut file = tempfile::tempfile_in(folder)?;
    let mut costs = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        file.write_all(&PAGE)?;
        costs.push(timed(&file)?);
    }
    let median = median(&mut costs).context("no sync was measured")?;
    let p99 = percentile(&mut costs, 0.99).context("no sync was measured")?;
    Ok(Sync { median, p99 })
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn timed(file: &File) -> Result<f64> {
    let begun = Instant::now();
    file.sync_data()?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

/// One line: processor, cores, kernel, load, fdatasync of the folder for temporary files.
pub(crate) fn describe() -> Result<String> {
    let cores = std::thread::available_parallelism()?;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let sync = fdatasync(&std::env::temp_dir())?;
    Ok(format!(
        "{}, {cores} cores, Linux {}, load {load}, fdatasync median {:.2} ms, p99 {:.2} ms",
        processor(),
        kernel.trim(),
        sync.median,
        sync.p99
    ))
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = info.lines().find_map(|line| line.strip_prefix("model name"));
    named
        .and_then(|rest| rest.split_once(':'))
        .map_or("an unnamed processor", |(_, name)| name.trim())
        .to_owned()
}
