//! The product's own processes: `gleaner serve` and `gleaner simulate`.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::process::Process;

/// The `gleaner` binary that was built beside this program.
pub(crate) fn binary() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let beside = here.with_file_name("gleaner");
    anyhow::ensure!(
        beside.is_file(),
        "{} does not exist: run `cargo xtask bench`, which builds it",
        beside.display()
    );
    Ok(beside)
}

/// A `gleaner` verb in a folder of its own, with no environment but what the caller adds.
pub(crate) fn gleaner(folder: &Path, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(binary()?);
    command.args(arguments).current_dir(folder).env_clear().stdin(Stdio::null());
    Ok(command)
}

/// A process of ours that has said, as a line of JSON, that it is ready.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) process: Process,
    /// The line that it said.
    pub(crate) started: Value,
}

impl Served {
    /// Starts a verb that was given `--json` and waits for its first line.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let mut process = Process::start(command.stdout(Stdio::piped()))?;
        let stdout = process.child.stdout.take().context("its output is not piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let started = serde_json::from_str(&line)
            .with_context(|| format!("it did not start, and said `{}`", line.trim()))?;
        Ok(Self { process, started })
    }
}
