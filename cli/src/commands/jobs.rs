//! `gleaner jobs`: what the ledger says of jobs, and the operator's redrive.

mod find;
mod redrive;
mod show;

use std::collections::BTreeMap;
use std::fmt;

use clap::{Args, Subcommand, ValueEnum};
use domain::entry::{Entry, State, StateName};
use domain::job::{JobId, Kind};
use domain::ports::EntryFilter;
use domain::time::Timestamp;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use settings::Settings;

pub(crate) use find::{Name, find, find_all, only, parse_job, reference_of, unknown, url_of};
pub(crate) use show::Shown;

use crate::backend::{Site, Store};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Limit, parse_limit, parse_name};
use crate::output::{Output, note, note_unreadable};

/// Rows read at once.
const PAGE: u32 = 500;
/// Rows whose page or seed is looked up at once.
pub(crate) const ROWS_AT_ONCE: usize = 16;

/// List jobs, show one, count them, or try one again.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Jobs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show one job with its history.
    Show(One),
    /// Count jobs by state and submissions by outcome.
    Counts,
    /// Try a dead job again, with a fresh budget: exactly this one, noted in its history.
    Redrive(One),
}

#[derive(Debug, Args)]
struct List {
    /// Jobs in this state only.
    #[arg(long, value_enum)]
    state: Option<StateFlag>,
    /// Jobs of this kind only.
    #[arg(long, value_name = "KIND")]
    kind: Option<Kind>,
    /// Jobs with this ref only, your own id for them.
    #[arg(long = "ref", value_name = "REF", value_parser = parse_name)]
    reference: Option<String>,
    /// Most rows, or `all`; 100 if not given, and all with --json.
    #[arg(long, allow_negative_numbers = true, value_name = "ROWS", value_parser = parse_limit)]
    limit: Option<Limit>,
}

#[derive(Debug, Args)]
struct One {
    /// The job's id or, where no job has that id, its ref; `ref:REF` is a ref always.
    #[arg(value_name = "ID", value_parser = parse_job)]
    id: Name,
    /// The job's kind, where one id is known under several.
    #[arg(long, value_name = "KIND")]
    kind: Option<Kind>,
}

/// A state on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StateFlag {
    Expected,
    Received,
    Resubmitting,
    Stored,
    Superseded,
    Dead,
}

impl StateFlag {
    const fn name(self) -> StateName {
        match self {
            Self::Expected => StateName::Expected,
            Self::Received => StateName::Received,
            Self::Resubmitting => StateName::Resubmitting,
            Self::Stored => StateName::Stored,
            Self::Superseded => StateName::Superseded,
            Self::Dead => StateName::Dead,
        }
    }
}

impl Jobs {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        let store = Site::of(settings).await?.existing_store()?;
        match self.action {
            None => self.list.run(&store, output).await,
            Some(Action::Counts) => counts(&store, output).await,
            Some(Action::Show(one)) => {
                let entry = find(&*store.ledger, &one.id, one.kind).await?;
                let url = url_of(&*store.ledger, &entry).await?;
                output.print(&Shown::new(entry, url))?;
                Ok(Exit::Ok)
            }
            Some(Action::Redrive(one)) => {
                let entry = find(&*store.ledger, &one.id, one.kind).await?;
                redrive::redrive(&store, entry, output).await
            }
        }
    }
}

impl List {
    async fn run(self, store: &Store, output: Output) -> Result<Exit, CliError> {
        let filter = EntryFilter {
            state: self.state.map(StateFlag::name),
            kind: self.kind,
            reference: self.reference,
        };
        let (mut left, mut cursor) = (Limit::rows(self.limit, output), None);
        loop {
            let page = store.ledger.list_entries(&filter, cursor.as_ref(), PAGE).await?;
            note_unreadable(&page.unreadable);
            let urls: Vec<_> = stream::iter(page.items.iter().take(left))
                .map(|entry| url_of(&*store.ledger, entry))
                .buffered(ROWS_AT_ONCE)
                .try_collect()
                .await?;
            for (entry, url) in page.items.iter().zip(&urls) {
                output.print(&Row::of(entry, url.as_deref()))?;
            }
            left -= urls.len();
            if urls.len() < page.items.len() {
                note("note: there are more; raise --limit, or name --state and --kind");
                return Ok(Exit::Ok);
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(Exit::Ok);
            }
        }
    }
}

/// One row of the list.
#[derive(Debug, Serialize)]
struct Row<'a> {
    version: u32,
    r#type: &'static str,
    kind: Kind,
    job_id: &'a JobId,
    state: StateName,
    /// Why it is dead.
    reason: Option<&'static str>,
    #[serde(rename = "ref")]
    reference: Option<&'a str>,
    /// The page or seed; null for a batch, and for a job that was not submitted from here.
    url: Option<&'a str>,
    first_seen: Timestamp,
    due_at: Option<Timestamp>,
    /// Key of the result, relative to the results folder.
    result: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn of(entry: &'a Entry, url: Option<&'a str>) -> Self {
        Self {
            version: 1,
            r#type: "job",
            kind: entry.key.kind,
            job_id: &entry.key.job_id,
            state: entry.state.name(),
            reason: reason(&entry.state),
            reference: reference_of(entry),
            url,
            first_seen: entry.first_seen,
            due_at: entry.due_at,
            result: result_key(&entry.state),
        }
    }
}

/// Why a dead entry is dead.
pub(crate) fn reason(state: &State) -> Option<&'static str> {
    match state {
        State::Dead { reason, .. } => Some(reason.as_str()),
        _ => None,
    }
}

/// Key of the result that an entry has.
pub(crate) fn result_key(state: &State) -> Option<&str> {
    match state {
        State::Stored { result } | State::Dead { result: Some(result), .. } => Some(&result.key),
        _ => None,
    }
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, job_id, state, first_seen, .. } = self;
        let reason = self.reason.map(|reason| format!("({reason})")).unwrap_or_default();
        let (reference, url) = (self.reference.unwrap_or("-"), self.url.unwrap_or("-"));
        write!(out, "{kind}\t{job_id}\t{state}{reason}\t{reference}\t{first_seen:.0}\t{url}")
    }
}

/// The ledger's counts.
#[derive(Debug, Serialize)]
struct Counts {
    version: u32,
    r#type: &'static str,
    /// By state.
    jobs: BTreeMap<String, u64>,
    /// Those of the state `dead`, by reason.
    dead_by_reason: BTreeMap<String, u64>,
    submissions: BTreeMap<String, u64>,
}

impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("jobs")?;
        for (state, count) in &self.jobs {
            write!(out, "\n  {state:<24} {count:>9}")?;
            if state == StateName::Dead.as_str() {
                for (reason, count) in &self.dead_by_reason {
                    write!(out, "\n    {reason:<22} {count:>9}")?;
                }
            }
        }
        out.write_str("\nsubmissions")?;
        for (state, count) in &self.submissions {
            write!(out, "\n  {state:<24} {count:>9}")?;
        }
        Ok(())
    }
}

async fn counts(store: &Store, output: Output) -> Result<Exit, CliError> {
    let (mut jobs, mut dead_by_reason) = (BTreeMap::new(), BTreeMap::new());
    for (name, count) in store.ledger.count_entries().await? {
        match name.strip_prefix("dead:") {
            Some(reason) => dead_by_reason.insert(reason.to_owned(), count),
            None => jobs.insert(name, count),
        };
    }
    let submissions = store.ledger.count_intents().await?;
    output.print(&Counts { version: 1, r#type: "counts", jobs, dead_by_reason, submissions })?;
    Ok(Exit::Ok)
}
