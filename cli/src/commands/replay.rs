//! `gleaner replay`: the platform's delivery logs against the ledger.

use std::fmt;
use std::time::Duration;

use clap::Args;
use domain::envelope::EventType;
use domain::reconcile::{Manner, Step};
use domain::replay::{Logged, Replayed, Rules, replay};
use domain::subscriptions::{Standing, Subscriptions};
use domain::time::Timestamp;
use domain::work::Look;
use serde::Serialize;
use settings::Settings;

use super::upkeep::{Line, Lines, end, is_paused};
use crate::backend::Adapters;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note};

/// Compare the platform's delivery logs with the ledger, and announce what it does not know.
///
/// Reads each webhook's delivery log as far as there is something new in it. A job that the ledger
/// does not hold is announced and gets a task, whatever the log says of its delivery: nothing is
/// delivered again, the job is fetched. Works beside a running server, and may be run at any time
/// and twice. With `--whole` each log is read from its first page on; jobs whose deliveries the
/// receiver refused are then shown with its answer, also those that the ledger has.
///
/// Prints each job that something is done about, how the subscriptions stand, and a summary. Ends
/// with 0 when the logs were read to the end of what is new, 75 when the rest is to be tried again,
/// and with what the platform says when it refuses.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Print the plan, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Read each log whole, whatever was read before.
    #[arg(long)]
    whole: bool,
}

/// What a reading of the logs found.
#[derive(Debug, Serialize)]
struct Summary {
    version: u32,
    r#type: &'static str,
    dry_run: bool,
    webhooks: u32,
    pages: u32,
    rows: u32,
    /// Jobs that nobody had announced.
    announced: u32,
    /// Those of them that the ledger did not know at all.
    unknown: u32,
    /// Jobs whose delivery is on its way.
    waiting: u32,
    /// Jobs that are too old.
    forgotten: u32,
    /// Rows that name no job.
    nameless: u32,
    /// Rows of event types that are not owed.
    strange: u32,
    /// Entries of the logs that cannot be read.
    unreadable: u32,
    /// Jobs whose row cannot be read or written.
    faulty: u32,
    /// When the oldest of the announced jobs was logged.
    oldest: Option<Timestamp>,
    /// Events that no active webhook delivers here, as `kind: why`.
    subscriptions: Vec<String>,
    /// Whether something was not looked at.
    partial: bool,
    /// What kept a log from being read.
    trouble: Option<String>,
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { webhooks, rows, announced, unknown, waiting, .. } = self;
        let verb = if self.dry_run { "would be " } else { "" };
        write!(
            out,
            "{rows} deliveries of {webhooks} webhooks: {announced} jobs {verb}announced \
             ({unknown} unknown), {waiting} on their way"
        )?;
        for (count, what) in [
            (self.forgotten, "too old"),
            (self.nameless, "without a job"),
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

impl Replay {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        let backend = Adapters::open(settings).await?;
        if is_paused(&backend).await? {
            return Ok(Exit::TryAgain);
        }
        let set = &backend.settings;
        // Also where webhooks are off: whoever asks for the logs gets them.
        let rules = set.upkeep.replay.clone().unwrap_or_default();
        let url = set.public_url.clone();
        let rules = Rules { every: Duration::ZERO, whole: self.whole, url, ..rules };
        let manner = Manner { look: Look::Scheduled, is_dry: self.dry_run };
        let (mut report, mut lines) = (Replayed::default(), Lines::new(output));
        let is_whole = self.whole;
        let mut hear = |logged: &Logged| {
            let is_refused = is_whole && !logged.is_delivered && logged.answered.is_some();
            if logged.step != Step::Known || is_refused {
                let Logged { key, step, row, created_at, answered, .. } = logged;
                let line = Line::new(key, step.as_str(), *row, *created_at);
                lines.print(&line.answered(*answered));
            }
        };
        let (ports, webhooks) = (backend.pipeline.ports(), &*backend.webhooks);
        replay(ports, webhooks, &rules, manner, &mut report, &mut hear).await?;
        lines.end()?;
        self.end(&report, output)
    }

    fn end(&self, report: &Replayed, output: Output) -> Result<Exit, CliError> {
        let trouble = report.trouble.as_ref();
        let wrong: Vec<_> = report.subscriptions.iter().flat_map(Subscriptions::wrong).collect();
        let subscriptions =
            wrong.iter().map(|(kind, standing)| format!("{kind}: {standing}")).collect();
        for (kind, standing) in &wrong {
            let event = EventType::completed(*kind);
            let why = match standing {
                Standing::Inactive => "its webhook is switched off",
                Standing::Elsewhere => "its webhook leads elsewhere",
                _ => "it has no webhook",
            };
            note(&format!("note: {} is not delivered here: {why}", event.as_str()));
        }
        if !wrong.is_empty() {
            note("hint: `gleaner webhooks ensure` puts that right");
        }
        output.print(&Summary {
            version: 1,
            r#type: "replayed",
            dry_run: self.dry_run,
            webhooks: report.webhooks,
            pages: report.pages,
            rows: report.rows,
            announced: report.announced,
            unknown: report.unknown,
            waiting: report.waiting,
            forgotten: report.forgotten,
            nameless: report.nameless,
            strange: report.strange,
            unreadable: report.unreadable,
            faulty: report.faulty,
            oldest: report.oldest,
            subscriptions,
            partial: report.partial,
            trouble: trouble.map(ToString::to_string),
        })?;
        end("a delivery log", report.partial, trouble)
    }
}
