//! The demo's folder as a data folder: its settings file, and verbs that run on it as processes of
//! their own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use domain::limits::Limits;
use domain::tick::Rules;
use tokio::process::Command;

use super::DemoOptions;
use super::platform::KEY;
use crate::error::CliError;
use crate::exit::Exit;

/// Name of the settings file, which verbs find by themselves where they run in the folder.
const SETTINGS: &str = "gleaner.toml";
/// Shortest overlap that the settings allow.
const OVERLAP_MIN: Duration = Duration::from_mins(1);
/// Longest time that a verb may take, after which it is ended.
const VERB_TIMEOUT: Duration = Duration::from_mins(15);

/// The folder, and the program that works in it.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    program: PathBuf,
    dir: PathBuf,
}

/// How a verb ended.
pub(super) struct Ran {
    /// Its exit code; `None` if it was ended from outside.
    pub(super) code: Option<i32>,
    /// Its rows.
    pub(super) rows: Vec<serde_json::Value>,
    /// What it said on standard error.
    pub(super) talk: String,
}

/// What the settings file says besides the limits.
pub(super) struct Settings<'a> {
    pub(super) limits: &'a Limits,
    pub(super) upkeep: &'a Rules,
    pub(super) api_url: &'a str,
    /// Port of the receiver on the loopback interface.
    pub(super) port: u16,
    pub(super) workers: u32,
    pub(super) hold: Duration,
    pub(super) tick: Duration,
}

impl Folder {
    /// Makes the folder one in which verbs find these settings.
    pub(super) fn new(options: &DemoOptions, settings: &Settings<'_>) -> Result<Self, CliError> {
        let failed = |error: std::io::Error| {
            CliError::new(Exit::System, "cannot write the demo's settings").because(error)
        };
        let dir = options.dir.canonicalize().map_err(failed)?;
        std::fs::write(dir.join(SETTINGS), settings.text()).map_err(failed)?;
        Ok(Self { program: options.program.clone(), dir })
    }

    /// Where it is.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A verb that runs in the folder, with no environment but the API key.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .current_dir(&self.dir)
            .env_clear()
            .env("GLEANER_API_KEY", KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs a verb to its end.
    pub(super) async fn run(&self, args: &[&str]) -> Result<Ran, CliError> {
        let verb = args.first().copied().unwrap_or_default();
        let failed = || CliError::new(Exit::System, format!("`gleaner {verb}` did not run"));
        let child = self.command(args).spawn().map_err(|error| failed().because(error))?;
        let output = tokio::time::timeout(VERB_TIMEOUT, child.wait_with_output())
            .await
            .map_err(|error| failed().because(error))?
            .map_err(|error| failed().because(error))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(Ran {
            code: output.status.code(),
            rows: text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
            talk: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

impl Settings<'_> {
    /// The settings file. Every bound that the demo shortens is in it, so that the processes and
    /// the demo itself agree on all of them.
    fn text(&self) -> String {
        let Self { limits, upkeep, .. } = self;
        let replay = upkeep.replay.as_ref();
        let durations = [
            ("task_hold", self.hold),
            ("tick", self.tick),
            ("api_connect_timeout", limits.call_timeout),
            ("reconcile.every", upkeep.reconcile.every),
            ("reconcile.threshold", upkeep.reconcile.threshold),
            ("reconcile.overlap", upkeep.reconcile.overlap.max(OVERLAP_MIN)),
            ("replay.every", replay.map_or(upkeep.reconcile.every, |rules| rules.every)),
            ("limits.enqueue_grace", limits.enqueue_grace),
            ("limits.sweep_spacing", limits.sweep_spacing),
            ("limits.sweep_spacing_cap", limits.sweep_spacing_cap),
            ("limits.announce_grace", limits.announce_grace),
            ("limits.missing_pause", limits.missing_pause),
            ("limits.settle_grace", limits.settle_grace),
            ("limits.max_age", limits.max_age),
            ("limits.backoff_base", limits.backoff_base),
            ("limits.backoff_cap", limits.backoff_cap),
            ("limits.retry_after_clamp", limits.retry_after_clamp),
            ("limits.post_begin", limits.post_begin),
            ("limits.post_timeout", limits.post_timeout),
            ("limits.call_timeout", limits.call_timeout),
            ("limits.page_timeout", limits.page_timeout),
            ("limits.adoption_margin", limits.adoption_margin),
            ("limits.ambiguous_after", limits.ambiguous_after),
            ("limits.account_pause", limits.account_pause),
            ("limits.run_claim", limits.run_claim),
            ("limits.secret_cooldown", limits.secret_cooldown),
        ];
        let mut text = format!(
            "data_dir = \".\"\napi_url = \"{}\"\nlisten = \"127.0.0.1:{}\"\nworkers = {}\n",
            self.api_url, self.port, self.workers
        );
        for (name, duration) in durations {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name} = \"{}ms\"", duration.as_millis());
        }
        text
    }
}
