//! What is measured, and how often in one round.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use domain::entry::StateName;
use domain::job::Kind;
use domain::poll::{Asked, bulk_poll};
use domain::ports::{
    Cursor, Due as _, EntryFilter, Inspection as _, Intents as _, TaskSource as _,
};
use domain::receive::receive;
use domain::signature::Headers;
use domain::signature::preset::Preset;
use domain::signature::sign::sign;
use domain::sweep::sweep;
use domain::work::{Worked, work};
use tokio::task::JoinSet;

use super::commands;
use super::file;
use super::meter::{Block, Meter, block, wait};
use super::subject::{PAGE, Subject};

/// Deliveries in one round, and the tasks and expired rows that they become.
const DELIVERIES: usize = 512;
/// Deliveries and tasks under way at once.
const CALLERS: usize = 32;
/// Bytes of a delivery's body.
const BODY_BYTES: usize = 2_048;
/// Rows of one sweep: a page.
const SWEPT: u32 = 200;
/// How often each question is asked in one round.
const QUESTIONS: usize = 4;
/// Seconds by which the clock moves on after each round.
const ROUND_SECONDS: i64 = 2;

/// One thing that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Accept,
    Work,
    Expire,
    Sweep,
    BulkPollDue,
    CountEntries,
    CountIntents,
    ListAll,
    ListAllMiddle,
    ListStored,
    ListStoredMiddle,
    ListCrawls,
    ListCrawlsMiddle,
    ListDeadBatches,
    ListDeadBatchesMiddle,
    FindRef,
    ListRun,
    ListRunMiddle,
    ListDueIntents,
    UnresolvedPost,
    OpenAgain,
    CommandList,
    CommandRef,
    CommandShowRef,
    CommandCounts,
}

impl Step {
    /// In the order of one round: later steps work off what earlier ones made.
    pub(super) const ALL: [Self; 25] = [
        Self::Accept,
        Self::Work,
        Self::Expire,
        Self::Sweep,
        Self::BulkPollDue,
        Self::CountEntries,
        Self::CountIntents,
        Self::ListAll,
        Self::ListAllMiddle,
        Self::ListStored,
        Self::ListStoredMiddle,
        Self::ListCrawls,
        Self::ListCrawlsMiddle,
        Self::ListDeadBatches,
        Self::ListDeadBatchesMiddle,
        Self::FindRef,
        Self::ListRun,
        Self::ListRunMiddle,
        Self::ListDueIntents,
        Self::UnresolvedPost,
        Self::OpenAgain,
        Self::CommandList,
        Self::CommandRef,
        Self::CommandShowRef,
        Self::CommandCounts,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept a delivery",
            Self::Work => "work a task",
            Self::Expire => "remove an expired row",
            Self::Sweep => "sweep 200 of 1,000 overdue",
            Self::BulkPollDue => "look through 1,000 overdue",
            Self::CountEntries => "count jobs",
            Self::CountIntents => "count submissions",
            Self::ListAll => "list 500, first page",
            Self::ListAllMiddle => "list 500, in the middle",
            Self::ListStored => "list stored, first page",
            Self::ListStoredMiddle => "list stored, in the middle",
            Self::ListCrawls => "list crawls, first page",
            Self::ListCrawlsMiddle => "list crawls, in the middle",
            Self::ListDeadBatches => "list dead batches, first 10",
            Self::ListDeadBatchesMiddle => "list dead batches, 10 in the middle",
            Self::FindRef => "find a job by its ref",
            Self::ListRun => "list a run, first page",
            Self::ListRunMiddle => "list a run, in its middle",
            Self::ListDueIntents => "list due submissions",
            Self::UnresolvedPost => "look for an open POST",
            Self::OpenAgain => "open the file beside a server",
            Self::CommandList => "`gleaner jobs`",
            Self::CommandRef => "`gleaner jobs --ref`",
            Self::CommandShowRef => "`gleaner jobs show ref:`",
            Self::CommandCounts => "`gleaner jobs counts`",
        }
    }

    /// Whether the work is done by another process, whose processor time is not ours.
    pub(super) const fn is_command(self) -> bool {
        matches!(
            self,
            Self::CommandList | Self::CommandRef | Self::CommandShowRef | Self::CommandCounts
        )
    }

    pub(super) async fn run(self, subject: &Arc<Subject>) -> Result<Block> {
        let store = &subject.store;
        let of = |state, kind| EntryFilter { state, kind, reference: None };
        let middle = &subject.middle;
        let dead_batches = of(Some(StateName::Dead), Some(Kind::Batch));
        match self {
            Self::Accept => accept(subject).await,
            Self::Work => work_all(subject).await,
            Self::Expire => expire(subject).await,
            Self::Sweep => sweep_page(subject).await,
            Self::BulkPollDue => block(1, || bulk_poll(subject.ports(), Asked::Due)).await,
            Self::CountEntries => block(QUESTIONS, || store.count_entries()).await,
            Self::CountIntents => block(QUESTIONS, || store.count_intents()).await,
            Self::ListAll => list(subject, &of(None, None), None, PAGE).await,
            Self::ListAllMiddle => list(subject, &of(None, None), Some(&middle.all), PAGE).await,
            Self::ListStored => list(subject, &of(Some(StateName::Stored), None), None, PAGE).await,
            Self::ListStoredMiddle => {
                let cursor = Some(&middle.stored);
                list(subject, &of(Some(StateName::Stored), None), cursor, PAGE).await
            }
            // Small pages, so that the smallest file has them too.
            Self::ListCrawls => list(subject, &of(None, Some(Kind::Crawl)), None, 100).await,
            Self::ListCrawlsMiddle => {
                list(subject, &of(None, Some(Kind::Crawl)), Some(&middle.crawls), 100).await
            }
            Self::ListDeadBatches => list(subject, &dead_batches, None, 5).await,
            Self::ListDeadBatchesMiddle => {
                list(subject, &dead_batches, Some(&middle.dead_batches), 5).await
            }
            Self::FindRef => {
                let reference = Some(subject.reference()?);
                list(subject, &EntryFilter { reference, ..of(None, None) }, None, 1).await
            }
            Self::ListRun => {
                let run = file::run(subject.size / 2);
                block(QUESTIONS, || store.list_intents(Some(&run), None, PAGE / 4)).await
            }
            Self::ListRunMiddle => {
                let run = file::run(subject.size / 2);
                let cursor = middle.intents.as_ref();
                block(QUESTIONS, || store.list_intents(Some(&run), cursor, PAGE / 4)).await
            }
            Self::ListDueIntents => {
                block(QUESTIONS, || store.list_due_intents(subject.now(), None, SWEPT)).await
            }
            Self::UnresolvedPost => {
                block(QUESTIONS, || store.has_unresolved_post(Kind::Extract, subject.now())).await
            }
            Self::OpenAgain => {
                let clock = Arc::clone(&subject.clock);
                block(1, || async { super::subject::open(&subject.folder, Arc::clone(&clock)) })
                    .await
            }
            Self::CommandList => commands::jobs(subject, &["jobs"]).await,
            Self::CommandRef => {
                let reference = subject.reference()?;
                commands::jobs(subject, &["jobs", "--ref", &reference]).await
            }
            Self::CommandShowRef => {
                let name = format!("ref:{}", subject.reference()?);
                commands::jobs(subject, &["jobs", "show", &name]).await
            }
            Self::CommandCounts => commands::jobs(subject, &["jobs", "counts"]).await,
        }
    }
}

async fn list(
    subject: &Subject,
    filter: &EntryFilter,
    after: Option<&Option<Cursor>>,
    limit: u32,
) -> Result<Block> {
    let after = match after {
        Some(Some(cursor)) => Some(cursor),
        Some(None) => anyhow::bail!("the listing {filter:?} is too short to have a middle"),
        None => None,
    };
    let block = block(QUESTIONS, || async {
        let page = subject.store.list_entries(filter, after, limit).await?;
        anyhow::ensure!(page.items.len() == usize::try_from(limit)?, "{filter:?} is too short");
        Ok(())
    });
    block.await
}

/// A signed delivery.
struct Delivery {
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Headers for Delivery {
    fn values(&self, name: &str) -> Vec<&[u8]> {
        self.headers.as_slice().values(name)
    }
}

fn delivery(subject: &Subject) -> Result<Delivery> {
    let job_id = subject.random.job_id()?;
    let head = format!(
        r#"{{"event":"extract_completed","delivery_id":"evt_{job_id}","data":{{"job_id":"{job_id}","status":"completed","html":""#
    );
    let filler = "x".repeat(BODY_BYTES.saturating_sub(head.len() + 3));
    let body = format!(r#"{head}{filler}"}}}}"#).into_bytes();
    let scheme = Preset::Geonode.scheme()?;
    let headers = sign(&scheme, &subject.secret, &body, "", subject.now())?;
    let headers = headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
    Ok(Delivery { headers, body })
}

async fn accept(subject: &Arc<Subject>) -> Result<Block> {
    let deliveries = (0..DELIVERIES).map(|_| delivery(subject)).collect::<Result<Vec<_>>>()?;
    let (deliveries, next) = (Arc::new(deliveries), Arc::new(AtomicUsize::new(0)));
    let meter = Meter::start();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (subject, deliveries, next) =
            (Arc::clone(subject), Arc::clone(&deliveries), Arc::clone(&next));
        callers.spawn(async move {
            let mut waits = Vec::new();
            while let Some(one) = deliveries.get(next.fetch_add(1, Ordering::Relaxed)) {
                let answer = async {
                    let got = receive(subject.receiving(), one, &one.body).await;
                    anyhow::ensure!(got.code() == "accepted_new", "it was {}", got.code());
                    Ok(())
                };
                waits.push(wait(answer).await?.0);
            }
            anyhow::Ok(waits)
        });
    }
    Ok(meter.end(joined(callers).await?))
}

async fn joined(mut callers: JoinSet<Result<Vec<f64>>>) -> Result<Vec<f64>> {
    let mut waits = Vec::new();
    while let Some(joined) = callers.join_next().await {
        waits.extend(joined??);
    }
    Ok(waits)
}

/// Takes and works the tasks of this round's deliveries, as the server's workers do.
async fn work_all(subject: &Arc<Subject>) -> Result<Block> {
    let meter = Meter::start();
    let mut waits = Vec::new();
    while waits.len() < DELIVERIES {
        let limit = u32::try_from(CALLERS)?;
        let held = subject.store.receive(limit, Duration::from_mins(1)).await?;
        anyhow::ensure!(!held.is_empty(), "tasks are missing");
        let mut workers = JoinSet::new();
        for one in held {
            let subject = Arc::clone(subject);
            workers.spawn(async move {
                let whole = async {
                    let worked = work(subject.ports(), &one.task).await?;
                    anyhow::ensure!(matches!(worked, Worked::Stored { .. }), "it was {worked:?}");
                    Ok(subject.store.acknowledge(&one).await?)
                };
                Ok(vec![wait(whole).await?.0])
            });
        }
        waits.extend(joined(workers).await?);
    }
    Ok(meter.end(waits))
}

/// Removes the rows of this round's deliveries, which have expired a moment after they were
/// stored.
async fn expire(subject: &Arc<Subject>) -> Result<Block> {
    subject.clock.advance(ROUND_SECONDS);
    let meter = Meter::start();
    let (waited, removed) = wait(subject.store.remove_expired()).await?;
    let removed = usize::try_from(removed)?;
    anyhow::ensure!(removed == DELIVERIES, "{removed} rows expired");
    #[expect(clippy::cast_precision_loss, reason = "far fewer rows than 2^52")]
    let each = waited / removed as f64;
    Ok(meter.end(vec![each; removed]))
}

/// Sends the tasks of a page of overdue rows again, then throws them away.
async fn sweep_page(subject: &Arc<Subject>) -> Result<Block> {
    let block = block(1, || async {
        let swept = sweep(subject.ports(), SWEPT).await?;
        anyhow::ensure!(swept.sent == SWEPT, "{swept:?}");
        Ok(())
    });
    let block = block.await?;
    let mut left = usize::try_from(SWEPT)?;
    while left > 0 {
        let held = subject.store.receive(SWEPT, Duration::from_mins(1)).await?;
        left = left.checked_sub(held.len()).filter(|_| !held.is_empty()).context("odd tasks")?;
        for one in held {
            subject.store.acknowledge(&one).await?;
        }
    }
    Ok(block)
}
