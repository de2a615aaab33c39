//! Six bugs, each planted between the pipeline and its adapters.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::entry::{Entry, StateName, StoredObject};
use domain::intent::Intent;
use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::ports::{
    ApiError, Control, ControlRow, Cursor, Due, Entries, EntryFilter, ErrorKind, Expected,
    ExtractJob, Inspection, IntentExpected, IntentWritten, Intents, Jobs, Ledger, ListPage,
    ListQuery, Page, PageRequest, Pairs, ParentPage, PortError, PutOutcome, Queue, Results,
    RowWrite, SubmitError, Written, WrittenBoth,
};
use domain::request::JobRequest;
use domain::task::Task;
use domain::time::Timestamp;
use gleaner::demo::Tamper;
use gleaner::pipeline::Pipeline;

/// Each delivery writes a fresh row, whatever is there, and finished jobs are forgotten.
pub(crate) struct NoDedupe;

impl Tamper for NoDedupe {
    fn tamper(&self, pipeline: Pipeline) -> Pipeline {
        let ledger = Tampered { ledger: pipeline.ledger, bug: Bug::NoDedupe };
        Pipeline { ledger: Arc::new(ledger), ..pipeline }
    }
}

/// The receiver answers before its row is committed, and stops in between: new rows are lost.
pub(crate) struct AnswerBeforeCommit;

impl Tamper for AnswerBeforeCommit {
    fn tamper(&self, pipeline: Pipeline) -> Pipeline {
        let ledger = Tampered { ledger: pipeline.ledger, bug: Bug::AnswerBeforeCommit };
        Pipeline { ledger: Arc::new(ledger), ..pipeline }
    }
}

/// Every third task is lost on its way, and no sweep sends another.
pub(crate) struct NoSecondSend;

impl Tamper for NoSecondSend {
    fn tamper(&self, pipeline: Pipeline) -> Pipeline {
        let ledger = Tampered { ledger: pipeline.ledger, bug: Bug::BlindSweep };
        let queue = LossyQueue { queue: pipeline.queue, sent: AtomicU64::new(0) };
        Pipeline { ledger: Arc::new(ledger), queue: Arc::new(queue), ..pipeline }
    }
}

/// The job list is never looked at before a POST is made again.
pub(crate) struct NoAdoption;

impl Tamper for NoAdoption {
    fn tamper(&self, pipeline: Pipeline) -> Pipeline {
        Pipeline { jobs: Arc::new(BlindJobs(pipeline.jobs)), ..pipeline }
    }
}

/// Results are put whether or not one is there; every other answer is lost, so that workers come
/// again.
pub(crate) struct UnconditionalPut(pub(crate) PathBuf);

impl Tamper for UnconditionalPut {
    fn tamper(&self, pipeline: Pipeline) -> Pipeline {
        let root = self.0.join("results");
        let results = Overwriting { results: pipeline.results, root, puts: AtomicU64::new(0) };
        Pipeline { results: Arc::new(results), ..pipeline }
    }
}

/// Jobs that failed for good or were cancelled are taken for unfinished ones, till they are given
/// up for their age.
pub(crate) struct NoEnd;

impl Tamper for NoEnd {
    fn tamper(&self, pipeline: Pipeline) -> Pipeline {
        Pipeline { jobs: Arc::new(EndlessJobs(pipeline.jobs)), ..pipeline }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bug {
    NoDedupe,
    AnswerBeforeCommit,
    BlindSweep,
}

struct Tampered {
    ledger: Arc<dyn Ledger>,
    bug: Bug,
}

/// Whether the write is that of an announcement.
fn announces(entry: &Entry) -> bool {
    entry.state.name() == StateName::Received && entry.token.is_some()
}

#[async_trait]
impl Entries for Tampered {
    async fn load(&self, key: &JobKey) -> Result<Option<Entry>, PortError> {
        let entry = self.ledger.load(key).await?;
        let forgets = self.bug == Bug::NoDedupe;
        Ok(entry.filter(|entry| !forgets || !entry.state.is_terminal()))
    }

    async fn write(&self, entry: &Entry, expected: Expected) -> Result<Written, PortError> {
        if self.bug == Bug::AnswerBeforeCommit
            && announces(entry)
            && matches!(expected, Expected::Absent(_))
        {
            return Ok(Written::Done);
        }
        if self.bug == Bug::NoDedupe && announces(entry) {
            let fresh = Entry { link: None, ..entry.clone() };
            let there = self.ledger.load(&entry.key).await?;
            let expected = there.map_or(expected, |there| Expected::As(there.seen()));
            return self.ledger.write(&fresh, expected).await;
        }
        self.ledger.write(entry, expected).await
    }
}

#[async_trait]
impl Pairs for Tampered {
    async fn write_both(&self, rows: [RowWrite<'_>; 2]) -> Result<WrittenBoth, PortError> {
        self.ledger.write_both(rows).await
    }
}

#[async_trait]
impl Due for Tampered {
    async fn list_due(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        if self.bug == Bug::BlindSweep {
            return Ok(Page { items: Vec::new(), next: None, unreadable: Vec::new() });
        }
        self.ledger.list_due(now, after, limit).await
    }

    async fn list_due_intents(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        self.ledger.list_due_intents(now, after, limit).await
    }
}

#[async_trait]
impl Intents for Tampered {
    async fn load_intent(&self, id: &str) -> Result<Option<Intent>, PortError> {
        self.ledger.load_intent(id).await
    }

    async fn write_intent(
        &self,
        intent: &Intent,
        expected: IntentExpected,
    ) -> Result<IntentWritten, PortError> {
        self.ledger.write_intent(intent, expected).await
    }

    async fn has_unresolved_post(&self, kind: Kind, until: Timestamp) -> Result<bool, PortError> {
        self.ledger.has_unresolved_post(kind, until).await
    }
}

#[async_trait]
impl Control for Tampered {
    async fn load_control(&self, name: &str) -> Result<Option<ControlRow>, PortError> {
        self.ledger.load_control(name).await
    }

    async fn write_control(&self, row: &ControlRow) -> Result<bool, PortError> {
        self.ledger.write_control(row).await
    }
}

#[async_trait]
impl Inspection for Tampered {
    async fn list_entries(
        &self,
        filter: &EntryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        self.ledger.list_entries(filter, after, limit).await
    }

    async fn count_entries(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.ledger.count_entries().await
    }

    async fn count_intents(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.ledger.count_intents().await
    }

    async fn list_intents(
        &self,
        run: Option<&str>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        self.ledger.list_intents(run, after, limit).await
    }
}

struct LossyQueue {
    queue: Arc<dyn Queue>,
    sent: AtomicU64,
}

#[async_trait]
impl Queue for LossyQueue {
    async fn send(&self, task: &Task, delay: Duration) -> Result<(), PortError> {
        if self.sent.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
            return Ok(());
        }
        self.queue.send(task, delay).await
    }
}

struct BlindJobs(Arc<dyn Jobs>);

#[async_trait]
impl Jobs for BlindJobs {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        self.0.extract(job_id, within).await
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.0.parent(key, page, within).await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        self.0.submit(request, within).await
    }

    async fn list(&self, _: Kind, _: &ListQuery, _: Duration) -> Result<ListPage, ApiError> {
        Ok(ListPage { jobs: Vec::new(), unreadable: 0, page_count: Some(0), is_capped: false })
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.0.probe(within).await
    }
}

struct EndlessJobs(Arc<dyn Jobs>);

#[async_trait]
impl Jobs for EndlessJobs {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        let mut job = self.0.extract(job_id, within).await?;
        if job.error.as_ref().is_some_and(|error| !error.retryable) {
            job.status = JobStatus::Processing;
        }
        Ok(job)
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.0.parent(key, page, within).await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        self.0.submit(request, within).await
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        self.0.list(kind, query, within).await
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.0.probe(within).await
    }
}

struct Overwriting {
    results: Arc<dyn Results>,
    root: PathBuf,
    puts: AtomicU64,
}

impl Overwriting {
    /// Removes what is there, as a store without conditions would replace it.
    fn remove(&self, key: &str) -> Result<(), PortError> {
        match std::fs::remove_file(self.root.join(key)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(PortError::new("results", "remove", ErrorKind::Invalid).with_source(error))
            }
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Results for Overwriting {
    async fn put_new(&self, key: &str, content: &[u8]) -> Result<PutOutcome, PortError> {
        self.remove(key)?;
        let outcome = self.results.put_new(key, content).await?;
        if self.puts.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            return Err(PortError::new("results", "put_new", ErrorKind::Unavailable));
        }
        Ok(outcome)
    }

    async fn read(&self, key: &str) -> Result<Option<(StoredObject, Vec<u8>)>, PortError> {
        self.results.read(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, PortError> {
        self.results.list(prefix, after, limit).await
    }
}
