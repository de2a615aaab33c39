//! `gleaner reconcile`: the platform's job lists against the ledger.

use std::fmt;
use std::time::Duration;

use clap::Args;
use domain::reconcile::{Found, Manner, Reconciled, Rules, Step, reconcile};
use domain::time::Timestamp;
use domain::work::Look;
use serde::Serialize;
use settings::Settings;

use super::upkeep::{Line, Lines, end, is_paused};
use crate::backend::Adapters;
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::parse_duration;
use crate::output::{Output, note, told};

/// Compare the platform's job lists with the ledger, and announce what it does not know.
///
/// Walks the three job lists from where the last comparison ended, whoever made it. A finished job
/// that the ledger does not hold is announced and gets a task; an open one is expected from then
/// on. The results are fetched by the workers: a running server, the worker on AWS, or `gleaner
/// poll`. Works beside them, and may be run at any time and twice.
///
/// Prints each job that something is done about, and a summary. Ends with 0 when the lists were
/// walked to their end, 75 when the rest is to be tried again, and with what the platform says when
/// it refuses.
#[derive(Debug, Args)]
pub(crate) struct Reconcile {
    /// Print the plan, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Compare again what was created in this time, whatever was compared before.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    back: Option<Duration>,
}

/// What a comparison found.
#[derive(Debug, Serialize)]
struct Summary {
    version: u32,
    r#type: &'static str,
    dry_run: bool,
    pages: u32,
    listed: u32,
    /// Finished jobs that nobody had announced.
    announced: u32,
    /// Those of them that the ledger did not know at all.
    unknown: u32,
    /// Open jobs that the ledger did not know.
    expected: u32,
    /// Jobs that are too old.
    forgotten: u32,
    /// Jobs whose time of creation cannot be read.
    undated: u32,
    /// Entries of the lists that cannot be read.
    unreadable: u32,
    /// Jobs whose row cannot be read or written.
    faulty: u32,
    /// When the oldest of the announced jobs was created.
    oldest: Option<Timestamp>,
    /// Whether something was not compared.
    partial: bool,
    /// What kept a list from being read.
    trouble: Option<String>,
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pages, listed, announced, unknown, expected, .. } = self;
        let verb = if self.dry_run { "would be " } else { "" };
        write!(
            out,
            "{listed} jobs on {pages} pages: {announced} {verb}announced ({unknown} unknown), \
             {expected} {verb}expected"
        )?;
        for (count, what) in [
            (self.forgotten, "too old"),
            (self.unreadable, "unreadable entries"),
            (self.faulty, "unreadable rows"),
        ] {
            if count > 0 {
                write!(out, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

impl Reconcile {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        let backend = Adapters::open(settings).await?;
        if is_paused(&backend).await? {
            return Ok(Exit::TryAgain);
        }
        let rules = &backend.settings.upkeep.reconcile;
        let rules = Rules {
            every: Duration::ZERO,
            history: self.back.unwrap_or(rules.history),
            anew: self.back.is_some(),
            ..rules.clone()
        };
        let manner = Manner { look: Look::Scheduled, is_dry: self.dry_run };
        let (mut report, mut lines) = (Reconciled::default(), Lines::new(output));
        let mut hear = |found: &Found| {
            if found.step != Step::Known {
                let Found { key, step, row, created_at, .. } = found;
                lines.print(&Line::new(key, step.as_str(), *row, *created_at));
            }
        };
        let ports = backend.pipeline.ports();
        reconcile(ports, &rules, manner, &mut report, &mut hear).await?;
        lines.end()?;
        if !rules.threshold.is_zero() {
            let threshold = told(rules.threshold);
            note(&format!("note: jobs of the last {threshold} are left to their webhooks"));
        }
        self.end(&report, output)
    }

    fn end(&self, report: &Reconciled, output: Output) -> Result<Exit, CliError> {
        let trouble = report.trouble.as_ref();
        output.print(&Summary {
            version: 1,
            r#type: "reconciled",
            dry_run: self.dry_run,
            pages: report.pages,
            listed: report.listed,
            announced: report.announced,
            unknown: report.unknown,
            expected: report.expected,
            forgotten: report.forgotten,
            undated: report.undated,
            unreadable: report.unreadable,
            faulty: report.faulty,
            oldest: report.oldest,
            partial: report.partial,
            trouble: trouble.map(ToString::to_string),
        })?;
        end("a job list", report.partial, trouble)
    }
}
