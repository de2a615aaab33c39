//! `gleaner poll`: waiting for jobs without a public endpoint.

mod one;
mod report;
mod rounds;

use std::time::Duration;

use clap::Args;
use domain::job::Kind;
use domain::poll::Patience;
use domain::time::after;
use settings::Settings;

use crate::backend::Adapters;
use crate::commands::jobs::{Name, parse_job};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::parse_duration;
use crate::output::Output;

/// Wait for jobs, and store their results.
///
/// With ids, each job is asked about until it is settled, with growing pauses and a hard deadline;
/// a job that neither the ledger nor the platform knows is not remembered.
/// Without ids, everything that the ledger has open is worked in rounds, through the job lists,
/// until nothing is open or the deadline passes. Both work beside a running server.
///
/// Prints for each job: id, kind, outcome and last status. Ends with 0 when all are stored, 2 when
/// one failed, was cancelled or given up, 3 when the deadline passed (the jobs are still owed), 4
/// when an id is not known, 75 when it was interrupted (run it again), and 75, 77 or 79 when quota,
/// key or balance are in the way; of several, what concerns the account goes first, then 4, 2 and
/// 3.
#[derive(Debug, Args)]
pub(crate) struct Poll {
    /// Ids of jobs, or refs where no job has that id; none stands for everything open.
    #[arg(value_name = "ID", value_parser = parse_job)]
    ids: Vec<Name>,
    /// Kind of the jobs; without it the ledger is asked, and what it does not know is an extract
    /// job.
    #[arg(long, value_name = "KIND", requires = "ids")]
    kind: Option<Kind>,
    /// When to give up waiting.
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, default_value = "5m", value_parser = parse_duration)]
    max_wait: Duration,
    /// First pause between two looks, drawn at random up to this; doubles each time. Without ids, a
    /// job list is asked at most once in 2.5 times this.
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, default_value = "1s", value_parser = parse_duration)]
    base: Duration,
    /// Longest pause between two looks. Without ids, a job list is asked at least once in ten times
    /// this.
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, default_value = "30s", value_parser = parse_duration)]
    cap: Duration,
    /// One round, for a timer: end with 0 although jobs are still open.
    #[arg(long, conflicts_with = "ids")]
    once: bool,
}

impl Poll {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        if self.cap < self.base {
            return Err(CliError::new(Exit::Usage, "`--cap` is shorter than `--base`")
                .hint("the pauses grow from base to cap"));
        }
        let backend = Adapters::open(settings).await?;
        let patience = Patience {
            deadline: after(backend.pipeline.clock.now(), self.max_wait),
            base: self.base,
            cap: self.cap,
        };
        if self.ids.is_empty() {
            return rounds::run(&backend, patience, self.once, output).await;
        }
        one::run(&backend, &self.ids, self.kind, patience, output).await
    }
}
