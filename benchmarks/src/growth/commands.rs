//! The command line beside a server, and a server's start.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result};

use super::meter::{Block, Meter, wait};
use super::subject::Subject;
use crate::served::{Served, gleaner};

/// How often a verb is run in one round.
const RUNS: usize = 2;

/// Runs a verb on the subject's data folder while this process holds it open.
pub(super) async fn jobs(subject: &Subject, verb: &[&str]) -> Result<Block> {
    let meter = Meter::start();
    let mut waits = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let mut command = gleaner(&subject.folder, verb)?;
        command.arg("--data-dir").arg(&subject.folder).stdout(Stdio::piped());
        let run = async {
            let output = command.stderr(Stdio::piped()).output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            anyhow::ensure!(output.status.success(), "{verb:?} failed: {said}");
            anyhow::ensure!(!output.stdout.is_empty(), "{verb:?} found nothing");
            Ok(())
        };
        waits.push(wait(run).await?.0);
    }
    Ok(meter.end(waits))
}

/// A server's start on a data folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// From its first instruction until it says that it is up, in milliseconds.
    pub(super) milliseconds: f64,
    /// Its largest resident memory until then, in MiB.
    pub(super) peak_mib: f64,
}

/// Starts a server that receives nothing, and kills it.
pub(super) async fn serve(folder: &Path) -> Result<Start> {
    let mut command = gleaner(folder, &["serve", "--json", "--without-webhooks"])?;
    // Nothing listens at the discard port: the platform counts as down, and nothing is due.
    command.args(["--api-url", "http://127.0.0.1:9", "--data-dir"]).arg(folder);
    command.env("GLEANER_API_KEY", "geo_benchmark_key_0000000000000000").stderr(Stdio::null());
    let (microseconds, mut served) = wait(async { Served::start(command) }).await?;
    let peak_mib = served.process.peak_mib().context("it ended at once")?;
    served.process.kill()?;
    Ok(Start { milliseconds: microseconds / 1e3, peak_mib })
}
