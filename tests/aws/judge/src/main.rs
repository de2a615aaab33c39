//! Judges a run: `judge RESULTS < REMAINS`, the folder of results and what else the run left behind.
//! Prints the judgement, and ends with 1 if it is not clean.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use gleaner::demo::Remains;

fn main() -> Result<ExitCode> {
    let results = std::env::args_os().nth(1).map(PathBuf::from);
    let results = results.context("which folder holds the results?")?;
    let remains: Remains =
        serde_json::from_reader(std::io::stdin().lock()).context("cannot read the remains")?;
    let judgement = remains.judge(&results)?;
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &judgement)?;
    writeln!(out)?;
    Ok(if judgement.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
