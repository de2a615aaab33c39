//! `gleaner demo`: simulator and pipeline together.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use simulator::Corpus;

use crate::demo::{DemoOptions, Untampered, Weather, prepare_dir, run};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;

/// Shortest patience that is the default, in seconds.
const PATIENCE_SECS: u64 = 300;
/// Jobs for which a second is added to it: harsh weather lets a dozen through.
const JOBS_A_SEC: u32 = 4;
/// Most jobs in one demo.
const JOBS_MAX: i64 = 1_000_000;

/// Most kills in one demo.
const KILLS_MAX: i64 = 1_000;

/// Run simulator and pipeline together, and balance the books at the end.
///
/// The platform's simulator runs as a process of its own and sends signed webhooks over loopback;
/// the pipeline receives, verifies, records, queues, fetches and stores. An independent judge then
/// compares the simulator's books with the results folder, and `gleaner audit` balances the books of
/// the period. Exit code 1 if something does not balance. docs/demo.md explains each line.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Jobs to submit: four fifths pages, the rest batches and crawls.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=JOBS_MAX))]
    jobs: u32,
    /// Decides durations and faults of each job; what overlaps with what is not seeded.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Divides the platform's durations (a page takes 20 s in the median).
    #[arg(long, default_value = "20", value_parser = parse_speed)]
    speed: f64,
    /// What goes wrong.
    #[arg(long, value_enum, default_value = "gentle")]
    faults: Weather,
    /// Folder with real UTF-8 `.html` and `.md` files that are served as results.
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Kill the serving process with -9 so many times, at moments that the seed decides, and start
    /// it again each time.
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(..=KILLS_MAX))]
    kills: u32,
    /// Replace the signing secrets in the middle, as `gleaner rotate` does it beside a server.
    #[arg(long)]
    rotate: bool,
    /// New or empty folder for ledger and results; without it a temporary one, removed at the end.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Longest wait for submitting all jobs, and again for the last of them, in seconds; by default
    /// five minutes, and a second for each four jobs.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    patience: Option<u64>,
}

impl Demo {
    pub(crate) async fn run(self, output: Output) -> Result<Exit, CliError> {
        self.check_corpus()?;
        let temporary = match &self.dir {
            Some(_) => None,
            None => Some(tempfile::Builder::new().prefix("gleaner-demo-").tempdir().map_err(
                |error| CliError::new(Exit::System, "cannot make a folder").because(error),
            )?),
        };
        let dir = match (&self.dir, &temporary) {
            (Some(dir), _) => dir.clone(),
            (None, Some(temporary)) => temporary.path().to_owned(),
            (None, None) => PathBuf::from("."),
        };
        prepare_dir(&dir)?;
        let options = DemoOptions {
            jobs: self.jobs,
            seed: self.seed,
            speed: self.speed,
            weather: self.faults,
            corpus: self.corpus,
            dir,
            program: std::env::current_exe().map_err(|error| {
                CliError::new(Exit::System, "cannot find this program").because(error)
            })?,
            live: output == Output::Text,
            kills: self.kills,
            rotate: self.rotate,
            audit: true,
            patience: Duration::from_secs(
                self.patience.unwrap_or_else(|| PATIENCE_SECS + u64::from(self.jobs / JOBS_A_SEC)),
            ),
        };
        let mut report = run(&options, &Untampered).await?;
        if temporary.is_some() {
            report.dir = None;
        }
        output.print(&report)?;
        Ok(if report.balanced { Exit::Ok } else { Exit::CheckFailed })
    }
}

impl Demo {
    /// Reads the corpus before anything starts, so that a wrong folder is one plain error.
    fn check_corpus(&self) -> Result<(), CliError> {
        let Some(corpus) = &self.corpus else { return Ok(()) };
        Corpus::load(corpus).map(drop).map_err(|error| {
            CliError::new(Exit::Usage, "the value of --corpus cannot be used").because(error)
        })
    }
}

/// A positive, finite speed.
pub(crate) fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.001..=1_000_000.0).contains(&speed) => Ok(speed),
        _ => Err("give a number from 0.001 to 1000000".to_owned()),
    }
}
