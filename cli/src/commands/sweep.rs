//! `gleaner sweep`: what is overdue gets looked at.

use std::fmt;

use clap::Args;
use domain::sweep::{Overdue, Swept, plan, sweep};
use serde::Serialize;
use settings::Settings;

use super::upkeep::{Line, Lines, is_paused};
use crate::backend::{Adapters, Site};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note_unreadable};

/// Send the tasks of jobs that are overdue, and look for submissions whose answer was lost.
///
/// What a server and the scheduler on AWS do by themselves, done once and now: for when none of
/// them runs, or for a look with `--dry-run` at what they would do. Tasks are worked by the
/// workers: a running server, the worker on AWS, or `gleaner poll`.
///
/// Prints a summary; with `--dry-run` each job and submission as well. Ends with 0, and with 75 when
/// there is more than one sweep may do (`tick_rows`) or the account is left alone.
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    /// Print the plan, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

/// What a sweep did, or would do.
#[derive(Debug, Default, Serialize)]
struct Summary {
    version: u32,
    r#type: &'static str,
    dry_run: bool,
    /// Tasks sent.
    sent: u32,
    /// Jobs given up.
    given_up: u32,
    /// Submissions looked for.
    submissions: u32,
    /// Those of them whose job was found.
    adopted: u32,
    /// Those that were proved not accepted.
    not_accepted: u32,
    /// Those of which nobody can find out.
    ambiguous: u32,
    /// Rows that cannot be read or written.
    unreadable: u32,
    /// Whether there is more.
    partial: bool,
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, given_up, submissions, adopted, not_accepted, ambiguous, .. } = self;
        let verb = if self.dry_run { "would be " } else { "" };
        write!(out, "{sent} tasks {verb}sent, {given_up} jobs {verb}given up, ")?;
        if self.dry_run {
            write!(out, "{submissions} submissions would be looked for")?;
        } else {
            write!(
                out,
                "{submissions} submissions looked for ({adopted} found, {not_accepted} not \
                 accepted, {ambiguous} ambiguous)"
            )?;
        }
        if self.unreadable > 0 {
            write!(out, ", {} unreadable rows", self.unreadable)?;
        }
        Ok(())
    }
}

/// A submission that would be looked for.
#[derive(Debug, Serialize)]
struct Recovery<'a> {
    version: u32,
    r#type: &'static str,
    step: &'static str,
    run: &'a str,
    position: u64,
    url: Option<&'a str>,
}

impl fmt::Display for Recovery<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, run, position, .. } = self;
        write!(out, "{step}\t{run}\t{position}\t{}", self.url.unwrap_or("-"))
    }
}

impl Sweep {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        // Of a folder without a ledger nothing is overdue: its name is wrong.
        drop(Site::of(settings).await?.existing_store()?);
        let backend = Adapters::open(settings).await?;
        let rows = backend.settings.upkeep.rows;
        if self.dry_run {
            let summary = planned(&backend, rows, output).await?;
            output.print(&summary)?;
            return Ok(Exit::Ok);
        }
        if is_paused(&backend).await? {
            return Ok(Exit::TryAgain);
        }
        let swept = Box::pin(sweep(backend.pipeline.ports(), rows)).await?;
        let Swept { sent, dead, adopted, not_accepted, ambiguous, unreadable, .. } = swept;
        let (first, partial) = (swept.first_unreadable, swept.partial);
        note_unreadable(first.as_slice());
        output.print(&Summary {
            version: 1,
            r#type: "swept",
            dry_run: false,
            sent,
            given_up: dead,
            submissions: adopted.saturating_add(not_accepted).saturating_add(ambiguous),
            adopted,
            not_accepted,
            ambiguous,
            unreadable,
            partial,
        })?;
        Ok(if partial { Exit::TryAgain } else { Exit::Ok })
    }
}

async fn planned(backend: &Adapters, rows: u32, output: Output) -> Result<Summary, CliError> {
    let mut summary = Summary { version: 1, r#type: "swept", dry_run: true, ..Summary::default() };
    let mut lines = Lines::new(output);
    let mut failed = None;
    let mut hear = |overdue: Overdue| match overdue {
        Overdue::Send(entry) => {
            summary.sent = summary.sent.saturating_add(1);
            let state = Some(entry.state.name());
            lines.print(&Line::new(&entry.key, "send", state, entry.job_created_at));
        }
        Overdue::GiveUp(entry) => {
            summary.given_up = summary.given_up.saturating_add(1);
            let state = Some(entry.state.name());
            lines.print(&Line::new(&entry.key, "give_up", state, entry.job_created_at));
        }
        Overdue::Recover(intent) => {
            summary.submissions = summary.submissions.saturating_add(1);
            let (run, position) = (&*intent.run, intent.position);
            let (url, step) = (intent.request.url(), "recover");
            let line = Recovery { version: 1, r#type: "step", step, run, position, url };
            failed = failed.take().or_else(|| output.print(&line).err());
        }
    };
    let unreadable = plan(backend.pipeline.ports(), rows, &mut hear).await?;
    lines.end()?;
    failed.map_or(Ok(()), Err)?;
    note_unreadable(&unreadable);
    Ok(Summary { unreadable: u32::try_from(unreadable.len()).unwrap_or(u32::MAX), ..summary })
}
