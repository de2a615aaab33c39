//! One counter over all port calls: the k-th fails, or the process ends there, before or after
//! the call's effect.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;

use super::rig::Rig;
use crate::entry::{Entry, StoredObject};
use crate::intent::Intent;
use crate::job::{JobId, JobKey, Kind};
use crate::ports::{
    ApiError, ApiErrorKind, Control, ControlRow, Cursor, Due, Entries, EntryFilter, ErrorKind,
    Expected, ExtractJob, Inspection, IntentExpected, IntentWritten, Intents, Jobs, ListPage,
    ListQuery, Loaded, Page, PageRequest, Pairs, ParentPage, PortError, PutOutcome, Queue, Results,
    RowWrite, SubmitError, Written, WrittenBoth,
};
use crate::request::JobRequest;
use crate::steps::Ports;
use crate::task::Task;
use crate::time::Timestamp;

/// What happens at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails and has no effect.
    FailBefore,
    /// It has its effect, and the answer is lost.
    FailAfter,
    /// The process ends before the effect.
    CrashBefore,
    /// The process ends after the effect.
    CrashAfter,
}

impl Fault {
    pub(crate) const ALL: [Self; 4] =
        [Self::FailBefore, Self::FailAfter, Self::CrashBefore, Self::CrashAfter];
}

/// The ports of a rig, with faults at chosen calls.
pub(crate) struct Faulty<'a> {
    rig: &'a Rig,
    plan: BTreeMap<usize, Fault>,
    visitor: Option<(usize, Box<dyn Fn() + Send + Sync + 'a>)>,
    calls: Mutex<Vec<&'static str>>,
}

impl<'a> Faulty<'a> {
    pub(crate) fn new(rig: &'a Rig, plan: impl IntoIterator<Item = (usize, Fault)>) -> Self {
        Self { rig, plan: plan.into_iter().collect(), visitor: None, calls: Mutex::default() }
    }

    /// Ports without faults, with somebody else at work just before one call.
    pub(crate) fn with_visitor(
        rig: &'a Rig,
        before: usize,
        visitor: impl Fn() + Send + Sync + 'a,
    ) -> Self {
        Self { visitor: Some((before, Box::new(visitor))), ..Self::new(rig, []) }
    }

    pub(crate) fn ports(&self) -> Ports<'_> {
        Ports { ledger: self, queue: self, jobs: self, results: self, ..self.rig.ports() }
    }

    /// The same ports without faults, and uncounted.
    pub(crate) fn rig_ports(&self) -> Ports<'_> {
        self.rig.ports()
    }

    /// The names of the calls that were made.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.calls.lock().unwrap().clone()
    }

    async fn at<T, E>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, E>> + Send,
        lost: E,
    ) -> Result<T, E> {
        let number = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(name);
            calls.len() - 1
        };
        if let Some((before, visitor)) = &self.visitor
            && *before == number
        {
            visitor();
        }
        match self.plan.get(&number) {
            None => call.await,
            Some(Fault::FailBefore) => Err(lost),
            Some(Fault::FailAfter) => {
                let _ = call.await;
                Err(lost)
            }
            Some(Fault::CrashBefore) => pending().await,
            Some(Fault::CrashAfter) => {
                let _ = call.await;
                pending().await
            }
        }
    }
}

/// Runs a process over ports in memory to its end; `None` when it crashed on the way.
pub(crate) fn run<T>(process: impl Future<Output = T>) -> Option<T> {
    match pin!(process).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn down(operation: &'static str) -> PortError {
    PortError::new("faulty", operation, ErrorKind::Unavailable)
}

fn broken() -> ApiError {
    ApiError::new(ApiErrorKind::Unavailable, "connection reset")
}

#[async_trait]
impl Entries for Faulty<'_> {
    async fn load(&self, key: &JobKey) -> Result<Option<Entry>, PortError> {
        self.at("load", self.rig.ledger.load(key), down("load")).await
    }

    async fn load_many(&self, keys: &[JobKey]) -> Result<Loaded, PortError> {
        self.at("load_many", self.rig.ledger.load_many(keys), down("load_many")).await
    }

    async fn write(&self, entry: &Entry, expected: Expected) -> Result<Written, PortError> {
        self.at("write", self.rig.ledger.write(entry, expected), down("write")).await
    }
}

#[async_trait]
impl Pairs for Faulty<'_> {
    async fn write_both(&self, rows: [RowWrite<'_>; 2]) -> Result<WrittenBoth, PortError> {
        self.at("write_both", self.rig.ledger.write_both(rows), down("write_both")).await
    }
}

#[async_trait]
impl Due for Faulty<'_> {
    async fn list_due(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        let call = self.rig.ledger.list_due(now, after, limit);
        self.at("list_due", call, down("list_due")).await
    }

    async fn list_due_intents(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        let call = self.rig.ledger.list_due_intents(now, after, limit);
        self.at("list_due_intents", call, down("list_due_intents")).await
    }
}

#[async_trait]
impl Intents for Faulty<'_> {
    async fn load_intent(&self, id: &str) -> Result<Option<Intent>, PortError> {
        self.at("load_intent", self.rig.ledger.load_intent(id), down("load_intent")).await
    }

    async fn write_intent(
        &self,
        intent: &Intent,
        expected: IntentExpected,
    ) -> Result<IntentWritten, PortError> {
        let call = self.rig.ledger.write_intent(intent, expected);
        self.at("write_intent", call, down("write_intent")).await
    }

    async fn has_unresolved_post(&self, kind: Kind, until: Timestamp) -> Result<bool, PortError> {
        let call = self.rig.ledger.has_unresolved_post(kind, until);
        self.at("has_unresolved_post", call, down("has_unresolved_post")).await
    }
}

#[async_trait]
impl Control for Faulty<'_> {
    async fn load_control(&self, name: &str) -> Result<Option<ControlRow>, PortError> {
        self.at("load_control", self.rig.ledger.load_control(name), down("load_control")).await
    }

    async fn write_control(&self, row: &ControlRow) -> Result<bool, PortError> {
        self.at("write_control", self.rig.ledger.write_control(row), down("write_control")).await
    }
}

#[async_trait]
impl Inspection for Faulty<'_> {
    async fn list_entries(
        &self,
        filter: &EntryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        let call = self.rig.ledger.list_entries(filter, after, limit);
        self.at("list_entries", call, down("list_entries")).await
    }

    async fn count_entries(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.at("count_entries", self.rig.ledger.count_entries(), down("count_entries")).await
    }

    async fn count_intents(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.at("count_intents", self.rig.ledger.count_intents(), down("count_intents")).await
    }

    async fn list_intents(
        &self,
        run: Option<&str>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        let call = self.rig.ledger.list_intents(run, after, limit);
        self.at("list_intents", call, down("list_intents")).await
    }
}

#[async_trait]
impl Queue for Faulty<'_> {
    async fn send(&self, task: &Task, delay: Duration) -> Result<(), PortError> {
        self.at("send", self.rig.queue.send(task, delay), down("send")).await
    }
}

#[async_trait]
impl Results for Faulty<'_> {
    async fn put_new(&self, key: &str, content: &[u8]) -> Result<PutOutcome, PortError> {
        self.at("put_new", self.rig.results.put_new(key, content), down("put_new")).await
    }

    async fn read(&self, key: &str) -> Result<Option<(StoredObject, Vec<u8>)>, PortError> {
        self.at("read", self.rig.results.read(key), down("read")).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, PortError> {
        self.at("list", self.rig.results.list(prefix, after, limit), down("list")).await
    }
}

#[async_trait]
impl Jobs for Faulty<'_> {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        self.at("extract", self.rig.jobs.extract(job_id, within), broken()).await
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.at("parent", self.rig.jobs.parent(key, page, within), broken()).await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        let lost = SubmitError::Unanswered(broken());
        self.at("submit", self.rig.jobs.submit(request, within), lost).await
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        self.at("list_jobs", self.rig.jobs.list(kind, query, within), broken()).await
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.at("probe", self.rig.jobs.probe(within), broken()).await
    }
}
