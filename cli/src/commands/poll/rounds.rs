//! Working everything that the ledger has open, in rounds.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::backoff::full_jitter;
use domain::job::JobKey;
use domain::poll::{Asked, PAUSE_MIN, Patience, STOP_GRACE, bulk_poll};
use domain::ports::{ApiError, ApiErrorKind, EntryFilter, HeldTask, PortError, TaskSource as _};
use domain::sweep::sweep;
use domain::time::{after, between};
use domain::work::{PutOff, Worked, work};
use futures_util::{FutureExt as _, StreamExt as _};

use super::report::{INTERRUPTED, Outcome, Row, STOPPING, Summary, worst};
use crate::backend::Backend;
use crate::commands::Interrupt;
use crate::demo::open_entries;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note};
use crate::submitting::{Stop, blocks};

/// Most tasks taken at once.
const TAKE_MAX: u32 = 64;
/// Rows read at once when those that are still open are listed.
const PAGE: u32 = 500;
/// Rounds in a row in which the ledger may fail before the call ends.
const FAILURES_MAX: u32 = 5;

/// One call that works everything open.
struct Call<'a> {
    backend: &'a Backend,
    patience: Patience,
    output: Output,
    stop: Stop,
    state: Mutex<Progress>,
}

struct Progress {
    summary: Summary,
    /// What stood in the way, by kind, as last met.
    trouble: BTreeMap<&'static str, ApiError>,
    /// The first line that could not be printed.
    broken: Option<CliError>,
}

/// Works rounds until nothing is open, the deadline passes, or the account is in the way; one
/// round if asked so.
///
/// # Errors
/// Those of the ledger and the queue, when they last.
pub(super) async fn run(
    backend: &Backend,
    patience: Patience,
    once: bool,
    output: Output,
) -> Result<Exit, CliError> {
    let progress = Progress { summary: Summary::new(), trouble: BTreeMap::new(), broken: None };
    let state = Mutex::new(progress);
    let call = Call { backend, patience, output, stop: Stop::default(), state };
    let ended = call.run(once).await?;
    call.finish(ended).await
}

/// Why the rounds ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Done,
    Once,
    Late,
    Blocked,
    Interrupted,
}

impl Call<'_> {
    /// Works rounds until they end, the deadline passes, or somebody ends the call. Both limits
    /// are hard: a call that hangs is dropped as by a crash, which loses nothing.
    async fn run(&self, once: bool) -> Result<Ended, CliError> {
        let interrupt = Interrupt::listen();
        let rounds = tokio::time::timeout(self.left(), self.rounds(once));
        tokio::pin!(rounds);
        tokio::select! {
            ended = &mut rounds => ended.unwrap_or(Ok(Ended::Late)),
            () = interrupt.wait() => {
                note(STOPPING);
                self.stop.stop();
                match tokio::time::timeout(STOP_GRACE, rounds).await {
                    Ok(Ok(ended)) => ended,
                    Ok(Err(_)) | Err(_) => Ok(Ended::Interrupted),
                }
            }
        }
    }

    fn left(&self) -> Duration {
        between(self.backend.pipeline.clock.now(), self.patience.deadline)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Progress) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn rounds(&self, once: bool) -> Result<Ended, CliError> {
        let (mut attempt, mut failures) = (0_u32, 0_u32);
        loop {
            match self.round().await {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    if once || failures >= FAILURES_MAX || !error.is_transient() {
                        return Err(error.into());
                    }
                    tracing::warn!(error = ?error, "the round ended early");
                }
            }
            if let Some(error) = self.with(|progress| progress.broken.take()) {
                return Err(error);
            }
            if self.is_blocked() {
                return Ok(Ended::Blocked);
            }
            if self.open().await? == (0, 0) {
                return Ok(Ended::Done);
            }
            if self.stop.is_set() {
                return Ok(Ended::Interrupted);
            }
            if once {
                return Ok(Ended::Once);
            }
            if self.left().is_zero() {
                return Ok(Ended::Late);
            }
            self.pause(attempt).await?;
            attempt = attempt.saturating_add(1);
        }
    }

    /// Asks the job lists, sends what is due, and works what there is to work.
    async fn round(&self) -> Result<(), PortError> {
        let ports = self.backend.pipeline.ports();
        self.with(|progress| {
            progress.summary.rounds += 1;
            progress.trouble.clear();
        });
        if let Some(error) = bulk_poll(ports, Asked::Open).await?.trouble {
            tracing::warn!(%error, "a job list could not be read whole");
            self.note_trouble(error);
        }
        if self.is_blocked() {
            // Nobody would work what a sweep sends, and a row that is swept often without a look
            // counts as poison.
            return Ok(());
        }
        let swept = sweep(ports, self.backend.settings.tick_rows).await?;
        if swept.unreadable > 0 {
            tracing::error!(rows = swept.unreadable, "rows of the ledger do not decode");
        }
        self.with(|progress| progress.summary.dead += u64::from(swept.dead));
        self.drain().await
    }

    /// Works tasks until none is visible.
    async fn drain(&self) -> Result<(), PortError> {
        let hold = self.backend.settings.task_hold;
        let at_once = usize::try_from(self.backend.settings.workers).unwrap_or(1).max(1);
        while !self.is_blocked() && !self.stop.is_set() {
            let taken = self.backend.store.receive(TAKE_MAX, hold).await?;
            if taken.is_empty() {
                return Ok(());
            }
            let works = taken.into_iter().map(|held| self.one(held));
            let mut works = futures_util::stream::iter(works).buffer_unordered(at_once);
            while works.next().await.is_some() {}
        }
        Ok(())
    }

    /// Works one task. Its trouble, a panic included, is its alone: it comes again after its hold.
    async fn one(&self, held: HeldTask) {
        let key = &held.task.key;
        if self.stop.is_set() {
            return self.put_back(&held).await;
        }
        let working = work(self.backend.pipeline.ports(), &held.task);
        match AssertUnwindSafe(working).catch_unwind().await {
            Ok(Ok(worked)) => {
                self.note(key, worked).await;
                if let Err(error) = self.backend.store.acknowledge(&held).await {
                    tracing::warn!(job.id = %key.job_id, error = ?error, "task could not be acknowledged");
                }
            }
            Ok(Err(error)) => {
                tracing::warn!(job.id = %key.job_id, error = ?error, "task failed");
            }
            Err(_) => tracing::error!(job.id = %key.job_id, "task panicked"),
        }
    }

    /// Makes a task that nobody began visible again, lest the next call wait for its hold.
    async fn put_back(&self, held: &HeldTask) {
        let queue = &self.backend.pipeline.queue;
        let returned = match queue.send(&held.task, Duration::ZERO).await {
            Ok(()) => self.backend.store.acknowledge(held).await,
            Err(error) => Err(error),
        };
        if let Err(error) = returned {
            tracing::warn!(job.id = %held.task.key.job_id, error = ?error, "task stays held");
        }
    }

    async fn note(&self, key: &JobKey, worked: Worked) {
        match worked {
            Worked::Stored { .. } => self.with(|progress| progress.summary.stored += 1),
            Worked::Dead(_) => self.with(|progress| progress.summary.dead += 1),
            Worked::Superseded { .. } => self.with(|progress| progress.summary.superseded += 1),
            Worked::PutOff { because: PutOff::Trouble(error), .. } => {
                self.note_trouble(error);
                return;
            }
            Worked::PutOff { .. } | Worked::Skipped(_) => return,
        }
        match self.backend.pipeline.ledger.load(key).await {
            Ok(Some(entry)) => self.print(&Row::of_entry(&entry)),
            Ok(None) => {}
            Err(error) => tracing::warn!(job.id = %key.job_id, error = ?error, "row not read"),
        }
    }

    fn print(&self, row: &Row) {
        if let Err(error) = self.output.print(row) {
            self.with(|progress| progress.broken = Some(error));
        }
    }

    fn note_trouble(&self, error: ApiError) {
        self.with(|progress| {
            progress.trouble.insert(error.kind.as_str(), error);
        });
    }

    /// Whether waiting does not help: the key is refused, or a quota says that it will stay used
    /// up. An empty balance keeps no result from being fetched.
    fn is_blocked(&self) -> bool {
        let stops = |error: &ApiError| blocks(error) && error.kind != ApiErrorKind::PaymentRequired;
        self.with(|progress| progress.trouble.values().any(stops))
    }

    /// Jobs and submissions that are still owed.
    async fn open(&self) -> Result<(u64, u64), CliError> {
        let pipeline = &self.backend.pipeline;
        let open = open_entries(pipeline).await?;
        let intents = pipeline.ledger.count_intents().await?;
        let unanswered = intents.get("open").copied().unwrap_or_default();
        self.with(|progress| {
            progress.summary.open = open;
            progress.summary.unanswered = unanswered;
        });
        Ok((open, unanswered))
    }

    /// Waits for the next round; tasks that become visible meanwhile are worked.
    async fn pause(&self, attempt: u32) -> Result<(), CliError> {
        let pipeline = &self.backend.pipeline;
        let Patience { base, cap, .. } = self.patience;
        let pause = full_jitter(attempt, base, cap, pipeline.random.next_u64()).max(PAUSE_MIN);
        let until = after(pipeline.clock.now(), pause.min(self.left()));
        loop {
            let left = between(pipeline.clock.now(), until);
            if left.is_zero() || self.is_blocked() || self.stop.is_set() {
                return Ok(());
            }
            tokio::select! {
                found = self.backend.store.wait_for_task(left) => drop(found?),
                () = self.stop.asked() => {}
            }
            self.drain().await?;
        }
    }

    async fn finish(&self, ended: Ended) -> Result<Exit, CliError> {
        let (open, unanswered) = self.open().await?;
        if matches!(ended, Ended::Late | Ended::Interrupted) {
            self.list_open(ended).await?;
        }
        self.with(|progress| match self.output {
            Output::Json => self.output.print(&progress.summary),
            Output::Text => {
                note(&progress.summary.to_string());
                Ok(())
            }
        })?;
        let trouble = self.with(|progress| std::mem::take(&mut progress.trouble));
        let dead = self.with(|progress| progress.summary.dead);
        let is_done = open == 0 && unanswered == 0;
        let account = trouble.into_values().find(blocks);
        match (ended, account) {
            (_, Some(error)) if !is_done => Err(error.into()),
            (Ended::Late, _) if !is_done => {
                note(
                    "hint: the jobs are still owed; run `gleaner poll` again, or wait longer with --max-wait",
                );
                Ok(worst([Exit::Timeout, if dead > 0 { Exit::JobFailed } else { Exit::Ok }]))
            }
            (Ended::Interrupted, _) if !is_done => {
                note(INTERRUPTED);
                Ok(Exit::TryAgain)
            }
            _ if dead > 0 => Ok(Exit::JobFailed),
            _ => Ok(Exit::Ok),
        }
    }

    /// Prints the rows of the jobs that the end of the call found open.
    async fn list_open(&self, ended: Ended) -> Result<(), CliError> {
        let ledger = &self.backend.pipeline.ledger;
        let open = domain::entry::StateName::ALL.into_iter().filter(|name| {
            use domain::entry::StateName::{Expected, Received, Resubmitting};
            matches!(name, Expected | Received | Resubmitting)
        });
        for state in open {
            let filter = EntryFilter { state: Some(state), kind: None };
            let mut cursor = None;
            loop {
                let page = ledger.list_entries(&filter, cursor.as_ref(), PAGE).await?;
                for entry in &page.items {
                    let mut row = Row::of_entry(entry);
                    if ended == Ended::Interrupted {
                        row.outcome = Outcome::Interrupted;
                    }
                    self.output.print(&row)?;
                }
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}
