//! Deciding about the dead, some at a time, until all are done or somebody asks to stop.

use std::io::IsTerminal as _;
use std::time::Duration;

use domain::announce::AnnouncePorts;
use domain::entry::{DeadReason, Entry, Note};
use domain::ports::{Clock as _, Cursor, PortError};
use domain::redrive::{Decided, Left, PayAgain, discard, redrive};
use domain::time::{Timestamp, between};
use futures_util::{StreamExt as _, stream};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::{Serialize, Serializer};
use system::{SystemClock, SystemRandom};

use super::choice::{Chosen, Selection, Target, dead_since};
use super::letters;
use super::report::{Outcome, Row, Summary};
use crate::backend::Store;
use crate::commands::interrupted;
use crate::commands::jobs::{Name, find_all, only};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note, note_unreadable};
use crate::submitting::Stop;

/// Rows read at once.
const PAGE: u32 = 500;
/// Rows decided about before the next ones are begun: so many are finished after Ctrl-C.
const BATCH: usize = 50;
/// Rows decided about at once.
const AT_ONCE: usize = 10;
/// Shortest time between two notes of progress, where there is no bar.
const NOTE_SPACING: Duration = Duration::from_secs(10);

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// To try it again.
    Redrive(PayAgain),
    /// That nobody need look at it again.
    Discard,
}

impl Serialize for Order {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Redrive(_) => "redrive",
            Self::Discard => "discard",
        })
    }
}

/// Decides about one entry, as it was read.
///
/// # Errors
/// Those of the ledger.
pub(crate) async fn one(
    store: &Store,
    entry: Entry,
    order: Order,
    note: Option<&Note>,
) -> Result<Decided, PortError> {
    let ports = AnnouncePorts {
        entries: &*store.ledger,
        queue: &*store.queue,
        clock: &SystemClock,
        random: &SystemRandom,
        limits: &store.settings.limits,
    };
    match order {
        Order::Redrive(pay_again) => redrive(ports, entry, pay_again, note).await,
        Order::Discard => discard(ports, entry, note).await,
    }
}

/// Decides about what was chosen.
///
/// # Errors
/// Those of the ledger and the queue; what was done stays done, and is told before.
pub(super) async fn run(
    store: &Store,
    order: Order,
    chosen: &Chosen,
    selection: Selection,
    output: Output,
) -> Result<Exit, CliError> {
    let mut call = Call::new(store, order, chosen, output, &selection);
    let stop = Stop::default();
    let ended = {
        let working = call.work(selection, &stop);
        tokio::pin!(working);
        tokio::select! {
            ended = &mut working => ended,
            () = interrupted() => {
                note("stopping; what was begun is finished first");
                stop.stop();
                working.await
            }
        }
    };
    call.finish(ended, &stop)
}

/// One command.
pub(super) struct Call<'a> {
    pub(super) store: &'a Store,
    pub(super) order: Order,
    pub(super) chosen: &'a Chosen,
    output: Output,
    note: Option<Note>,
    /// What dies after this instant has been opened meanwhile, and is left alone: nothing goes
    /// round.
    pub(super) began: Timestamp,
    /// How many may still be decided about.
    pub(super) left: usize,
    pub(super) summary: Summary,
    bar: ProgressBar,
    noted_at: Timestamp,
}

impl<'a> Call<'a> {
    fn new(
        store: &'a Store,
        order: Order,
        chosen: &'a Chosen,
        output: Output,
        selection: &Selection,
    ) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let length = match selection {
            Selection::Named(targets) => u64::try_from(targets.len()).ok(),
            Selection::Filtered => None,
        };
        let bar = ProgressBar::with_draw_target(length, target);
        let template = match length {
            Some(_) => "{elapsed:>5} {bar:30} {pos}/{len}",
            None => "{elapsed:>5} {spinner} {pos}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let now = SystemClock.now();
        Self {
            store,
            order,
            chosen,
            output,
            note: chosen.note(),
            began: now,
            left: chosen.most(),
            summary: Summary::new(order, chosen.dry_run),
            bar,
            noted_at: now,
        }
    }

    async fn work(&mut self, selection: Selection, stop: &Stop) -> Result<(), CliError> {
        match selection {
            Selection::Named(targets) => self.named(targets, stop).await,
            Selection::Filtered => {
                if self.chosen.filter.wants_entries() {
                    self.filtered(stop).await?;
                }
                if self.chosen.filter.wants_letters() && !stop.is_set() {
                    letters::filtered(self, stop).await?;
                }
                Ok(())
            }
        }
    }

    async fn named(&mut self, targets: Vec<Target>, stop: &Stop) -> Result<(), CliError> {
        let mut jobs = Vec::new();
        let mut ids = Vec::new();
        for target in targets {
            match target {
                Target::Job(name) => jobs.push(name),
                Target::Letter(id) => ids.push(id),
            }
        }
        self.summary.more = jobs.len() + ids.len() > self.left;
        jobs.truncate(self.left);
        ids.truncate(self.left - jobs.len());
        let mut ended = Ok(());
        let mut rest = jobs.as_slice();
        while !rest.is_empty() && !stop.is_set() && ended.is_ok() {
            let (batch, later) = rest.split_at(BATCH.min(rest.len()));
            let call = &*self;
            let deciding: Vec<_> = batch.iter().map(|name| call.by_name(name, stop)).collect();
            let rows = stream::iter(deciding).buffered(AT_ONCE).collect().await;
            ended = self.tell(rows);
            rest = later;
        }
        if !ids.is_empty() && !stop.is_set() && ended.is_ok() {
            ended = letters::named(self, &ids, stop).await;
            ids.clear();
        }
        for name in rest {
            let name = Some(name.to_string());
            self.row(&Row { name, ..Row::new(self.order, Outcome::NotLookedAt) })?;
        }
        for id in ids {
            let letter_id = Some(id);
            self.row(&Row { letter_id, ..Row::new(self.order, Outcome::NotLookedAt) })?;
        }
        ended
    }

    async fn by_name(&self, name: &Name, stop: &Stop) -> Result<Row, CliError> {
        let row = |outcome| Row { name: Some(name.to_string()), ..Row::new(self.order, outcome) };
        if stop.is_set() {
            return Ok(row(Outcome::NotLookedAt));
        }
        let found = match find_all(&*self.store.ledger, name, self.chosen.filter.kind).await {
            Ok(found) => found,
            Err(error) if error.exit == Exit::Data => {
                return Ok(self.failed(row(Outcome::Failed), &error));
            }
            Err(error) => return Err(error),
        };
        match only(name, found) {
            Ok(Some(entry)) => self.entry(entry, stop).await,
            Ok(None) => Ok(row(Outcome::Unknown)),
            Err(error) => Ok(self.failed(row(Outcome::Several), &error)),
        }
    }

    async fn filtered(&mut self, stop: &Stop) -> Result<(), CliError> {
        let filter = self.chosen.filter.of_entries();
        let mut cursor: Option<Cursor> = None;
        loop {
            let page = self.store.ledger.list_entries(&filter, cursor.as_ref(), PAGE).await?;
            note_unreadable(&page.unreadable);
            cursor = page.next;
            let mut chosen: Vec<_> =
                page.items.into_iter().filter(|entry| self.is_chosen(entry)).collect();
            self.summary.more = chosen.len() > self.left;
            chosen.truncate(self.left);
            while !chosen.is_empty() && !stop.is_set() {
                let later = chosen.split_off(BATCH.min(chosen.len()));
                self.left -= chosen.len();
                let call = &*self;
                let deciding: Vec<_> =
                    chosen.into_iter().map(|entry| call.entry(entry, stop)).collect();
                let rows = stream::iter(deciding).buffered(AT_ONCE).collect().await;
                self.tell(rows)?;
                chosen = later;
            }
            self.summary.more |= self.left == 0 && cursor.is_some();
            if cursor.is_none() || self.left == 0 || stop.is_set() {
                return Ok(());
            }
        }
    }

    fn is_chosen(&self, entry: &Entry) -> bool {
        dead_since(entry) <= self.began && self.chosen.filter.has(entry, self.began)
    }

    /// Decides about one entry as it was read.
    async fn entry(&self, entry: Entry, stop: &Stop) -> Result<Row, CliError> {
        let row = |outcome| Row {
            kind: Some(entry.key.kind),
            job_id: Some(entry.key.job_id.clone()),
            reason: entry.died_of(),
            ..Row::new(self.order, outcome)
        };
        if stop.is_set() {
            return Ok(row(Outcome::NotLookedAt));
        }
        if self.chosen.dry_run {
            return Ok(row(planned(&entry, self.order, self.began)));
        }
        let decided = one(self.store, entry.clone(), self.order, self.note.as_ref()).await;
        match decided {
            Ok(Decided::Done(written) | Decided::Unsent(written)) => Ok(match self.order {
                Order::Redrive(_) => {
                    Row { generation: Some(written.generation), ..row(Outcome::Redriven) }
                }
                Order::Discard => row(Outcome::Discarded),
            }),
            Ok(Decided::Left(left)) => Ok(row(Outcome::of_left(left))),
            Err(error) if !error.is_transient() => {
                let error = CliError::from(error);
                match error.exit {
                    Exit::Data => Ok(self.failed(row(Outcome::Failed), &error)),
                    _ => Err(error),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The row, and why it is so.
    pub(super) fn failed(&self, row: Row, error: &CliError) -> Row {
        self.bar.suspend(|| note(&error.render()));
        row
    }

    /// Prints rows as they came; the first error ends the command.
    pub(super) fn tell(&mut self, rows: Vec<Result<Row, CliError>>) -> Result<(), CliError> {
        let mut ended = Ok(());
        for row in rows {
            match row {
                Ok(row) => self.row(&row)?,
                Err(error) => ended = ended.and(Err(error)),
            }
        }
        ended
    }

    pub(super) fn row(&mut self, row: &Row) -> Result<(), CliError> {
        self.summary.count(row.outcome);
        self.bar.inc(1);
        self.bar.suspend(|| self.output.print(row))?;
        let now = SystemClock.now();
        if self.bar.is_hidden() && between(self.noted_at, now) >= NOTE_SPACING {
            self.noted_at = now;
            note(&format!("so far: {}", self.summary));
        }
        Ok(())
    }

    fn finish(mut self, ended: Result<(), CliError>, stop: &Stop) -> Result<Exit, CliError> {
        self.bar.finish_and_clear();
        self.summary.interrupted = stop.is_set() && ended.is_ok();
        match self.output {
            Output::Json => self.output.print(&self.summary)?,
            Output::Text => note(&self.summary.to_string()),
        }
        ended?;
        if self.summary.interrupted {
            note("stopped: what is not listed is as it was; the same command goes on");
        } else if self.summary.more {
            note("note: there may be more; run it again, or raise --limit");
        }
        if self.summary.of(Outcome::NeedsPayAgain) > 0 {
            note(
                "hint: look for these jobs at the platform; `--pay-again` tries them again, and \
                 may pay twice",
            );
        }
        if self.summary.of(Outcome::Redriven) > 0 {
            note(WORKED_BY);
        }
        Ok(self.summary.exit())
    }
}

/// Who works what was opened.
pub(crate) const WORKED_BY: &str = "note: a running server, or the worker on AWS, works them now; \
                                    without one, `gleaner poll` does";

/// What would become of an entry.
fn planned(entry: &Entry, order: Order, now: Timestamp) -> Outcome {
    let Some(died_of) = entry.died_of().filter(|_| !entry.is_expired(now)) else {
        let left = match entry.state.is_terminal() {
            _ if entry.is_expired(now) => Left::Absent,
            true => Left::Settled(entry.state.name()),
            false => Left::Open(entry.state.name()),
        };
        return Outcome::of_left(left);
    };
    match order {
        Order::Redrive(PayAgain::Never) if died_of == DeadReason::Ambiguous => {
            Outcome::NeedsPayAgain
        }
        Order::Discard if entry.discarded.is_some() => Outcome::AlreadyDiscarded,
        Order::Redrive(_) | Order::Discard => Outcome::Planned,
    }
}
