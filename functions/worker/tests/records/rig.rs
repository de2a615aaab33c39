//! A worker over ports in memory, and a platform that does what it is told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use domain::announce::announce;
use domain::entry::Cause;
use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::limits::Limits;
use domain::ports::{
    ApiError, ApiErrorKind, Clock, ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage,
    SubmitError,
};
use domain::request::JobRequest;
use domain::steps::Pipeline;
use domain::task::Task;
use domain::testing::{
    Call, ManualClock, MemoryLedger, MemoryQueue, MemoryResults, ScriptedJobs, SeededRandom,
    extract_answer,
};
use domain::time::{Timestamp, after, between};
use serde_json::json;
use telemetry::Metrics;
use worker::Worker;

pub(crate) struct Rig<C = ManualClock> {
    pub(crate) worker: Worker,
    pub(crate) jobs: Arc<Platform>,
    pub(crate) ledger: Arc<MemoryLedger>,
    pub(crate) queue: Arc<MemoryQueue>,
    pub(crate) results: Arc<MemoryResults>,
    pub(crate) clock: Arc<C>,
}

/// The scripted platform; it panics about one job, never answers about another, and may be slow.
pub(crate) struct Platform {
    pub(crate) script: ScriptedJobs,
    clock: Arc<dyn Clock>,
    pace: Pace,
    free_at: Mutex<Timestamp>,
}

/// How long the platform takes for an answer about an extract job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// No time.
    AtOnce,
    /// So long, however many ask.
    SideBySide(Duration),
    /// So long, one after the other.
    InTurn(Duration),
}

impl Platform {
    /// When the answer to a call that is made now is there.
    fn answers_at(&self) -> Timestamp {
        let now = self.clock.now();
        match self.pace {
            Pace::AtOnce => now,
            Pace::SideBySide(time) => after(now, time),
            Pace::InTurn(time) => {
                let mut free_at = self.free_at.lock().unwrap();
                *free_at = after(now.max(*free_at), time);
                *free_at
            }
        }
    }
}

/// The job about which the platform's client panics.
pub(crate) const PANICS: &str = "panics";
/// The job about which no answer comes.
pub(crate) const HANGS: &str = "hangs";

#[async_trait]
impl Jobs for Platform {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        match job_id.as_str() {
            #[expect(clippy::panic, reason = "what it is for")]
            PANICS => panic!("the client is broken"),
            HANGS => std::future::pending().await,
            _ => {}
        }
        let wait = between(self.clock.now(), self.answers_at());
        let is_in_time = wait.is_zero()
            || domain::within::within(&*self.clock, within, self.clock.sleep(wait)).await.is_some();
        // It was asked, whether it answers in time or not.
        let answer = self.script.extract(job_id, within).await;
        if is_in_time { answer } else { Err(error(ApiErrorKind::Unavailable)) }
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.script.parent(key, page, within).await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        self.script.submit(request, within).await
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        self.script.list(kind, query, within).await
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.script.probe(within).await
    }
}

/// Trouble of the platform.
pub(crate) fn error(kind: ApiErrorKind) -> ApiError {
    ApiError::new(kind, "said the platform")
}

pub(crate) fn rig() -> Rig {
    rig_by(Arc::default(), Pace::AtOnce)
}

/// A worker by another clock, and a platform of this pace.
pub(crate) fn rig_by<C: Clock + 'static>(clock: Arc<C>, pace: Pace) -> Rig<C> {
    let jobs = Arc::new(Platform {
        script: ScriptedJobs::new(clock.clone()),
        clock: clock.clone(),
        pace,
        free_at: Mutex::new(clock.now()),
    });
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    let results = Arc::new(MemoryResults::new());
    let ledger = Arc::new(MemoryLedger::new());
    let pipeline = Pipeline {
        ledger: ledger.clone(),
        queue: queue.clone(),
        jobs: jobs.clone(),
        results: results.clone(),
        clock: clock.clone(),
        random: Arc::new(SeededRandom::new(7)),
        limits: Limits::default(),
        pauses: Arc::default(),
        looks: Arc::default(),
    };
    let worker = Worker { pipeline, metrics: Arc::new(Metrics::for_flushes()) };
    Rig { worker, jobs, ledger, queue, results, clock }
}

pub(crate) fn key(id: &str) -> JobKey {
    JobKey::new(Kind::Extract, JobId::parse(id).unwrap())
}

impl<C: Clock> Rig<C> {
    /// Makes a job known, as a delivery does, and lets the queue lose its task: the event has it.
    pub(crate) async fn announce(&self, id: &str) -> String {
        let key = key(id);
        let ports = self.worker.pipeline.ports().announcing();
        announce(ports, &key, Cause::Delivery, None).await.unwrap();
        self.queue.lose_all();
        Task { key }.encode()
    }

    /// Makes a finished job known.
    pub(crate) async fn finished(&self, id: &str) -> String {
        let job_id = JobId::parse(id).unwrap();
        self.jobs.script.answer_extract(&job_id, Ok(extract_answer(&job_id, JobStatus::Completed)));
        self.announce(id).await
    }

    pub(crate) fn in_a_minute(&self) -> Timestamp {
        after(self.clock.now(), Duration::from_mins(1))
    }

    pub(crate) async fn work(&self, bodies: &[&str]) -> Vec<String> {
        self.work_until(bodies, self.in_a_minute()).await
    }

    pub(crate) async fn work_until(&self, bodies: &[&str], deadline: Timestamp) -> Vec<String> {
        failures(&self.worker.work(event(bodies), deadline).await.unwrap())
    }

    pub(crate) fn looks(&self) -> usize {
        self.jobs.script.calls().iter().filter(|call| matches!(call, Call::Extract(_))).count()
    }
}

/// Records with these bodies, whose ids are `m0`, `m1`, ...
pub(crate) fn event(bodies: &[&str]) -> SqsEvent {
    let records: Vec<_> = bodies
        .iter()
        .enumerate()
        .map(|(number, body)| json!({ "messageId": format!("m{number}"), "body": body }))
        .collect();
    serde_json::from_value(json!({ "Records": records })).unwrap()
}

pub(crate) fn failures(answer: &SqsBatchResponse) -> Vec<String> {
    let mut ids: Vec<_> =
        answer.batch_item_failures.iter().map(|failure| failure.item_identifier.clone()).collect();
    ids.sort();
    ids
}
