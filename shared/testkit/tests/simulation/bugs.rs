//! Bugs, each planted between the steps and their adapters.

mod rotation;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::entry::{Entry, StateName, StoredObject};
use domain::intent::Intent;
use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::ports::{
    ApiError, Control, ControlRow, Cursor, Due, Entries, EntryFilter, Expected, ExtractJob,
    Inspection, IntentExpected, IntentWritten, Intents, Jobs, Ledger, ListPage, ListQuery, Page,
    PageRequest, Pairs, ParentPage, PortError, PutOutcome, Queue, Results, RowWrite, SubmitError,
    Written, WrittenBoth,
};
use domain::request::JobRequest;
use domain::task::Task;
use domain::time::Timestamp;
use testkit::simulation::{Parts, Tamper};

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A new row is called written before it is.
    AnswerBeforeCommit,
    /// Whatever was read, a write takes effect.
    LastWriterWins,
    /// Finished jobs are forgotten, so that a late delivery makes them new.
    NoDedupe,
    /// The record of a submission is not durable when its POST is made.
    VolatileIntents,
    /// Nobody waits for a POST that may have made a job.
    NoWaitForPosts,
    /// The sweep does not see rows that are being resubmitted.
    SweepBlindToResubmits,
    /// Every third task is lost, and no sweep sends another.
    NoSecondSend,
    /// The job list is never looked at.
    NoLists,
    /// Jobs that failed for good are taken for unfinished ones.
    NoEnd,
    /// Every third result is called stored and is not.
    VolatileResults,
    /// A rotation's secret is the current one before its webhook delivers: the old one's grace ends
    /// before the overlap has begun.
    FinishBeforeOverlap,
    /// The webhook that takes another one's place is not looked at.
    RetireBlindly,
    /// A secret that the platform showed is called kept before it is.
    VolatileSecrets,
}

impl Bug {
    pub(crate) const ALL: [Self; 13] = [
        Self::AnswerBeforeCommit,
        Self::LastWriterWins,
        Self::NoDedupe,
        Self::VolatileIntents,
        Self::NoWaitForPosts,
        Self::SweepBlindToResubmits,
        Self::NoSecondSend,
        Self::NoLists,
        Self::NoEnd,
        Self::VolatileResults,
        Self::FinishBeforeOverlap,
        Self::RetireBlindly,
        Self::VolatileSecrets,
    ];

    /// Seeds by which it is found. The three that need most are found at the 51st, the 99th and the
    /// 250th seed from 0 on; what lies long before is left out.
    pub(crate) fn seeds(self) -> Range<u64> {
        match self {
            Self::SweepBlindToResubmits => 40..60,
            Self::NoWaitForPosts => 90..110,
            Self::RetireBlindly => 240..260,
            _ => 0..20,
        }
    }
}

impl Tamper for Bug {
    fn tamper(&self, parts: Parts) -> Parts {
        let bug = *self;
        rotation::tamper(
            Parts {
                ledger: Arc::new(BuggyLedger { inner: parts.ledger, bug }),
                queue: Arc::new(BuggyQueue { inner: parts.queue, bug, sent: AtomicU64::new(0) }),
                jobs: Arc::new(BuggyJobs { inner: parts.jobs, bug }),
                results: Arc::new(BuggyResults {
                    inner: parts.results,
                    bug,
                    puts: AtomicU64::new(0),
                }),
                ..parts
            },
            bug,
        )
    }
}

/// Whether the call is one of every three.
fn is_third(count: &AtomicU64) -> bool {
    count.fetch_add(1, Ordering::Relaxed).is_multiple_of(3)
}

struct BuggyLedger {
    inner: Arc<dyn Ledger>,
    bug: Bug,
}

#[async_trait]
impl Entries for BuggyLedger {
    async fn load(&self, key: &JobKey) -> Result<Option<Entry>, PortError> {
        let entry = self.inner.load(key).await?;
        Ok(entry.filter(|entry| self.bug != Bug::NoDedupe || !entry.state.is_terminal()))
    }

    async fn write(&self, entry: &Entry, expected: Expected) -> Result<Written, PortError> {
        if self.bug == Bug::AnswerBeforeCommit
            && entry.state.name() == StateName::Received
            && matches!(expected, Expected::Absent(_))
        {
            return Ok(Written::Done);
        }
        if matches!(self.bug, Bug::LastWriterWins | Bug::NoDedupe)
            && let Some(there) = self.inner.load(&entry.key).await?
        {
            let version = there.version.saturating_add(1);
            let (generation, seen) = (entry.generation.max(there.generation), there.seen());
            let forced = Entry { version, generation, ..entry.clone() };
            return self.inner.write(&forced, Expected::As(seen)).await;
        }
        self.inner.write(entry, expected).await
    }
}

#[async_trait]
impl Pairs for BuggyLedger {
    async fn write_both(&self, rows: [RowWrite<'_>; 2]) -> Result<WrittenBoth, PortError> {
        self.inner.write_both(rows).await
    }
}

#[async_trait]
impl Due for BuggyLedger {
    async fn list_due(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        let mut page = self.inner.list_due(now, after, limit).await?;
        match self.bug {
            Bug::NoSecondSend => page.items.clear(),
            Bug::SweepBlindToResubmits => {
                page.items.retain(|entry| entry.state.name() != StateName::Resubmitting);
            }
            _ => {}
        }
        Ok(page)
    }

    async fn list_due_intents(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        self.inner.list_due_intents(now, after, limit).await
    }
}

#[async_trait]
impl Intents for BuggyLedger {
    async fn load_intent(&self, id: &str) -> Result<Option<Intent>, PortError> {
        self.inner.load_intent(id).await
    }

    async fn write_intent(
        &self,
        intent: &Intent,
        expected: IntentExpected,
    ) -> Result<IntentWritten, PortError> {
        if self.bug == Bug::VolatileIntents && intent.state.is_open() {
            return Ok(IntentWritten::Done);
        }
        self.inner.write_intent(intent, expected).await
    }

    async fn has_unresolved_post(&self, kind: Kind, until: Timestamp) -> Result<bool, PortError> {
        let is_unresolved = self.inner.has_unresolved_post(kind, until).await?;
        Ok(is_unresolved && self.bug != Bug::NoWaitForPosts)
    }
}

#[async_trait]
impl Control for BuggyLedger {
    async fn load_control(&self, name: &str) -> Result<Option<ControlRow>, PortError> {
        self.inner.load_control(name).await
    }

    async fn write_control(&self, row: &ControlRow) -> Result<bool, PortError> {
        self.inner.write_control(row).await
    }
}

#[async_trait]
impl Inspection for BuggyLedger {
    async fn list_entries(
        &self,
        filter: &EntryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        self.inner.list_entries(filter, after, limit).await
    }

    async fn count_entries(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.inner.count_entries().await
    }

    async fn count_intents(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.inner.count_intents().await
    }

    async fn list_intents(
        &self,
        run: Option<&str>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        self.inner.list_intents(run, after, limit).await
    }
}

struct BuggyQueue {
    inner: Arc<dyn Queue>,
    bug: Bug,
    sent: AtomicU64,
}

#[async_trait]
impl Queue for BuggyQueue {
    async fn send(&self, task: &Task, delay: Duration) -> Result<(), PortError> {
        if self.bug == Bug::NoSecondSend && is_third(&self.sent) {
            return Ok(());
        }
        self.inner.send(task, delay).await
    }
}

struct BuggyJobs {
    inner: Arc<dyn Jobs>,
    bug: Bug,
}

#[async_trait]
impl Jobs for BuggyJobs {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        let mut job = self.inner.extract(job_id, within).await?;
        let is_final = job.error.as_ref().is_some_and(|error| !error.retryable);
        if self.bug == Bug::NoEnd && is_final {
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
        self.inner.parent(key, page, within).await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        self.inner.submit(request, within).await
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        if self.bug == Bug::NoLists {
            let jobs = Vec::new();
            return Ok(ListPage { jobs, unreadable: 0, page_count: Some(0), is_capped: false });
        }
        self.inner.list(kind, query, within).await
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.inner.probe(within).await
    }
}

struct BuggyResults {
    inner: Arc<dyn Results>,
    bug: Bug,
    puts: AtomicU64,
}

#[async_trait]
impl Results for BuggyResults {
    async fn put_new(&self, key: &str, content: &[u8]) -> Result<PutOutcome, PortError> {
        if self.bug == Bug::VolatileResults && is_third(&self.puts) {
            let bytes = domain::object::encode(key, content).unwrap_or_default();
            return Ok(PutOutcome::Now(domain::object::describe(key, &bytes)));
        }
        self.inner.put_new(key, content).await
    }

    async fn read(&self, key: &str) -> Result<Option<(StoredObject, Vec<u8>)>, PortError> {
        self.inner.read(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, PortError> {
        self.inner.list(prefix, after, limit).await
    }
}
