//! Working everything that the ledger has open, in rounds.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::job::JobKey;
use domain::poll::{Crew, News, Patience, RoundsEnded, STOP_GRACE, poll_open};
use domain::ports::{ApiError, ApiErrorKind, EntryFilter, HeldTask, PortError};
use domain::time::{Timestamp, between};
use domain::work::{Look, PutOff, Worked, look};
use futures_util::{FutureExt as _, StreamExt as _};

use super::report::{INTERRUPTED, Outcome, Row, STOPPING, Summary, worst};
use crate::backend::Adapters;
use crate::commands::Interrupt;
use crate::demo::open_entries;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note, note_unreadable};
use crate::submitting::{Stop, blocks};

/// Most tasks taken at once.
const TAKE_MAX: u32 = 64;
/// Rows read at once when those that are still open are listed.
const PAGE: u32 = 500;

/// One call that works everything open.
struct Call<'a> {
    backend: &'a Adapters,
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
    backend: &Adapters,
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
        let left = between(self.backend.pipeline.clock.now(), self.patience.deadline);
        let rounds = tokio::time::timeout(left, self.rounds(once));
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

    async fn rounds(&self, once: bool) -> Result<Ended, CliError> {
        let ports = self.backend.pipeline.ports();
        let sweep_rows = self.backend.settings.upkeep.rows;
        let ended = poll_open(ports, self, self.patience, sweep_rows, once).await;
        if let Some(error) = self.with(|progress| progress.broken.take()) {
            return Err(error);
        }
        Ok(match ended? {
            RoundsEnded::Once => Ended::Once,
            RoundsEnded::Late => Ended::Late,
            RoundsEnded::Done if self.is_blocked() => Ended::Blocked,
            RoundsEnded::Done if self.stop.is_set() => Ended::Interrupted,
            RoundsEnded::Done => Ended::Done,
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Progress) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Works one task. Its trouble, a panic included, is its alone: it comes again after its hold.
    async fn one(&self, held: HeldTask, deadline: Timestamp) {
        let key = &held.task.key;
        if self.stop.is_set() {
            return self.put_back(&held).await;
        }
        let manner = Look::ScheduledUntil(deadline);
        let working = look(self.backend.pipeline.ports(), &held.task, manner);
        match AssertUnwindSafe(working).catch_unwind().await {
            Ok(Ok(Worked::PutOff { because: PutOff::OutOfTime, .. })) => {
                self.put_back(&held).await;
            }
            Ok(Ok(worked)) => {
                self.note(key, worked).await;
                if let Err(error) = self.backend.tasks.acknowledge(&held).await {
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
            Ok(()) => self.backend.tasks.acknowledge(held).await,
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

    /// Whether nothing more is to be begun.
    fn is_ending(&self) -> bool {
        let is_broken = self.with(|progress| progress.broken.is_some());
        is_broken || self.stop.is_set() || self.is_blocked()
    }

    /// Whether nothing is owed any more. What is owed is due one day, which takes a look at one row;
    /// that nothing is takes a count, since such lists may lag behind the rows.
    async fn is_settled(&self) -> Result<bool, PortError> {
        let ledger = &self.backend.pipeline.ledger;
        let is_idle = ledger.list_due(Timestamp::MAX, None, 1).await?.items.is_empty()
            && ledger.list_due_intents(Timestamp::MAX, None, 1).await?.items.is_empty();
        Ok(is_idle && self.open().await? == (0, 0))
    }

    /// Counts the jobs and submissions that are still owed.
    async fn open(&self) -> Result<(u64, u64), PortError> {
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

    async fn finish(&self, ended: Ended) -> Result<Exit, CliError> {
        let (open, unanswered) = match ended {
            // It was counted a moment ago.
            Ended::Done => (0, 0),
            _ => self.open().await?,
        };
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
            let filter = EntryFilter { state: Some(state), ..EntryFilter::default() };
            let mut cursor = None;
            loop {
                let page = ledger.list_entries(&filter, cursor.as_ref(), PAGE).await?;
                note_unreadable(&page.unreadable);
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

#[async_trait]
impl Crew for Call<'_> {
    async fn work(&self, deadline: Timestamp) -> Result<ControlFlow<()>, PortError> {
        let hold = self.backend.settings.task_hold;
        let at_once = usize::try_from(self.backend.settings.workers).unwrap_or(1).max(1);
        loop {
            if self.is_ending() {
                return Ok(ControlFlow::Break(()));
            }
            let taken = self.backend.tasks.receive(TAKE_MAX, hold).await?;
            if taken.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            let works = taken.into_iter().map(|held| self.one(held, deadline));
            let mut works = futures_util::stream::iter(works).buffer_unordered(at_once);
            while works.next().await.is_some() {}
        }
    }

    async fn wait(&self, longest: Duration) -> Result<(), PortError> {
        tokio::select! {
            found = self.backend.tasks.wait(longest) => found,
            () = self.stop.asked() => Ok(()),
        }
    }

    async fn is_done(&self) -> Result<bool, PortError> {
        Ok(self.is_ending() || self.is_settled().await?)
    }

    fn hear(&self, news: News<'_>) -> ControlFlow<()> {
        match news {
            News::Began => self.with(|progress| {
                progress.summary.rounds += 1;
                progress.trouble.clear();
            }),
            News::Polled(polled) => {
                if let Some(error) = &polled.trouble {
                    tracing::warn!(%error, "a job list could not be read whole");
                    self.note_trouble(error.clone());
                }
            }
            News::Swept(swept) => {
                if swept.unreadable > 0 {
                    let first = swept.first_unreadable.as_deref();
                    tracing::error!(
                        rows = swept.unreadable,
                        first,
                        "rows of the ledger do not decode"
                    );
                }
                self.with(|progress| progress.summary.dead += u64::from(swept.dead));
            }
            News::Failed(error) => tracing::warn!(error = ?error, "the round ended early"),
        }
        if self.is_ending() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
