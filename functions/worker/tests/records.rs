//! The worker fed with records, over ports in memory and a platform that does what it is told.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use domain::announce::announce;
use domain::entry::Cause;
use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::limits::Limits;
use domain::ports::{
    ApiError, Clock as _, ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage,
    SubmitError,
};
use domain::request::JobRequest;
use domain::steps::Pipeline;
use domain::task::Task;
use domain::testing::{
    Call, ManualClock, MemoryLedger, MemoryQueue, MemoryResults, ScriptedJobs, SeededRandom,
    extract_answer,
};
use domain::time::{Timestamp, after};
use serde_json::json;
use telemetry::{Counter, Metrics};
use worker::{EventError, Worker};

struct Rig {
    worker: Worker,
    jobs: Arc<Platform>,
    queue: Arc<MemoryQueue>,
    results: Arc<MemoryResults>,
    clock: Arc<ManualClock>,
}

/// The scripted platform; it panics about one job, and never answers about another.
struct Platform(ScriptedJobs);

/// The job about which the platform's client panics.
const PANICS: &str = "panics";
/// The job about which no answer comes.
const HANGS: &str = "hangs";

#[async_trait]
impl Jobs for Platform {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        match job_id.as_str() {
            #[expect(clippy::panic, reason = "what it is for")]
            PANICS => panic!("the client is broken"),
            HANGS => std::future::pending().await,
            _ => self.0.extract(job_id, within).await,
        }
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

fn rig() -> Rig {
    let clock = Arc::new(ManualClock::default());
    let jobs = Arc::new(Platform(ScriptedJobs::new(clock.clone())));
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    let results = Arc::new(MemoryResults::new());
    let pipeline = Pipeline {
        ledger: Arc::new(MemoryLedger::new()),
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
    Rig { worker, jobs, queue, results, clock }
}

fn key(id: &str) -> JobKey {
    JobKey::new(Kind::Extract, JobId::parse(id).unwrap())
}

impl Rig {
    /// Makes a job known, as a delivery does, and lets the queue lose its task: the event has it.
    async fn announce(&self, id: &str) -> String {
        let key = key(id);
        let ports = self.worker.pipeline.ports().announcing();
        announce(ports, &key, Cause::Delivery, None).await.unwrap();
        self.queue.lose_all();
        Task { key }.encode()
    }

    /// Makes a finished job known.
    async fn finished(&self, id: &str) -> String {
        let job_id = JobId::parse(id).unwrap();
        self.jobs.0.answer_extract(&job_id, Ok(extract_answer(&job_id, JobStatus::Completed)));
        self.announce(id).await
    }

    fn in_a_minute(&self) -> Timestamp {
        after(self.clock.now(), Duration::from_mins(1))
    }

    async fn work(&self, bodies: &[&str]) -> Vec<String> {
        self.work_until(bodies, self.in_a_minute()).await
    }

    async fn work_until(&self, bodies: &[&str], deadline: Timestamp) -> Vec<String> {
        failures(&self.worker.work(event(bodies), deadline).await.unwrap())
    }

    fn looks(&self) -> usize {
        self.jobs.0.calls().iter().filter(|call| matches!(call, Call::Extract(_))).count()
    }
}

/// Records with these bodies, whose ids are `m0`, `m1`, ...
fn event(bodies: &[&str]) -> SqsEvent {
    let records: Vec<_> = bodies
        .iter()
        .enumerate()
        .map(|(number, body)| json!({ "messageId": format!("m{number}"), "body": body }))
        .collect();
    serde_json::from_value(json!({ "Records": records })).unwrap()
}

fn failures(answer: &SqsBatchResponse) -> Vec<String> {
    let mut ids: Vec<_> =
        answer.batch_item_failures.iter().map(|failure| failure.item_identifier.clone()).collect();
    ids.sort();
    ids
}

/// Every file of events/worker gets the answer that events/README.md promises.
#[tokio::test]
async fn every_file_gets_the_answer_that_is_promised() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events");
    let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(folder.join("worker"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["foreign.json", "many.json", "mixed.json", "one.json"]);
    for name in names {
        let row = page.lines().find(|line| line.contains(&format!("](worker/{name})"))).unwrap();
        let text = std::fs::read_to_string(folder.join("worker").join(&name)).unwrap();
        let event: SqsEvent = serde_json::from_str(&text).unwrap();
        let ids: Vec<_> =
            event.records.iter().map(|record| record.message_id.clone().unwrap()).collect();
        let rig = rig();
        let answer = rig.worker.work(event, rig.in_a_minute()).await.unwrap();
        let wanted: &[usize] = match row.trim_end_matches(['|', ' ']).rsplit_once("| ").unwrap().1 {
            "no failures" => &[],
            "the second failed" => &[1],
            "the first two failed" => &[0, 1],
            other => panic!("{name}: {other}"),
        };
        let mut wanted: Vec<_> = wanted.iter().map(|at| ids.get(*at).unwrap().clone()).collect();
        wanted.sort();
        assert_eq!(failures(&answer), wanted, "{name}");
    }
}

/// WK-01: what is answered is what AWS reads: a list that is there although it is empty. Anything else
/// counts as a failure of all records.
#[tokio::test]
async fn an_answer_without_failures_says_so() {
    let rig = rig();
    let task = rig.finished("j1").await;
    let answer = rig.worker.work(event(&[&task]), rig.in_a_minute()).await.unwrap();
    assert_eq!(serde_json::to_string(&answer).unwrap(), r#"{"batchItemFailures":[]}"#);
    assert_eq!(rig.results.keys().len(), 1);
}

/// WK-03: a record's trouble is its own, a panic and a message that is no task included.
#[tokio::test]
async fn the_trouble_of_one_record_is_its_alone() {
    let rig = rig();
    let [first, last] = [rig.finished("j1").await, rig.finished("j2").await];
    let panics = rig.announce(PANICS).await;
    let failed = rig.work(&[&first, "{", &panics, "", &last]).await;
    assert_eq!(failed, ["m1", "m2", "m3"]);
    assert_eq!(rig.results.keys().len(), 2);
    let metrics = &rig.worker.metrics;
    assert_eq!(metrics.read(Counter::JobsStored), 2);
    assert_eq!(metrics.read(Counter::TasksPanicked), 1);
    assert_eq!(metrics.read(Counter::TasksFailed), 2);
}

#[tokio::test]
async fn equal_tasks_are_looked_at_once() {
    let rig = rig();
    let task = rig.finished("j1").await;
    assert!(rig.work(&[&task, &task, &task]).await.is_empty());
    assert_eq!((rig.looks(), rig.results.keys().len()), (1, 1));
}

/// A record without an id cannot be named, so that nothing may be called done.
#[tokio::test]
async fn a_record_without_an_id_fails_them_all() {
    let rig = rig();
    let task = rig.finished("j1").await;
    for id in [json!(null), json!("")] {
        let records = json!({ "Records": [{ "messageId": id, "body": task }] });
        let event: SqsEvent = serde_json::from_value(records).unwrap();
        let refused = rig.worker.work(event, rig.in_a_minute()).await;
        assert!(matches!(refused, Err(EventError::NoMessageId)));
    }
    assert_eq!(rig.looks(), 0);
}

/// What no time is left for goes on as a message of its own: the record is done, no receipt is
/// spent, and nothing was asked.
#[tokio::test]
async fn what_no_time_is_left_for_is_sent_on() {
    let rig = rig();
    let task = rig.finished("j1").await;
    assert!(rig.work_until(&[&task], rig.clock.now()).await.is_empty());
    assert_eq!((rig.looks(), rig.results.keys().len()), (0, 0));
    assert_eq!(rig.queue.tasks(), [Task { key: key("j1") }]);
    assert!(rig.work(&[&task]).await.is_empty());
    assert_eq!(rig.results.keys().len(), 1);
}

/// An answer that never comes ends before the function does, and keeps nobody up.
#[tokio::test]
async fn a_call_that_hangs_is_given_up_in_time() {
    let rig = rig();
    // This clock jumps over what is waited for, so that the other job has to be first.
    let [hangs, other] = [rig.announce(HANGS).await, rig.finished("a1").await];
    let deadline = rig.in_a_minute();
    assert_eq!(rig.work_until(&[&hangs, &other], deadline).await, ["m0"]);
    assert!(rig.clock.now() <= deadline);
    assert_eq!(rig.results.keys().len(), 1);
}
