//! All ports in memory over one clock, and a platform that does what it is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::announce::{AnnounceOutcome, announce};
use crate::entry::{Cause, DeadReason, Entry, Link, State, StoredObject};
use crate::intent::Submission;
use crate::job::{JobId, JobKey, JobStatus, Kind};
use crate::limits::Limits;
use crate::looks::LookRate;
use crate::pause::Pauses;
use crate::ports::{ApiError, ApiErrorKind, Clock, ExtractJob, Item, RawJson, TaskSource};
use crate::request::{FetchOptions, JobRequest};
use crate::steps::Ports;
use crate::sweep::sweep;
use crate::task::Task;
use crate::testing::{
    ManualClock, MemoryLedger, MemoryQueue, MemoryResults, ScriptedJobs, SeededRandom,
    extract_answer,
};
use crate::time::{Timestamp, after};
use crate::work::{Worked, work};

pub(crate) const MINUTE: Duration = Duration::from_mins(1);
pub(crate) const HOUR: Duration = Duration::from_hours(1);
/// Rounds of [`Rig::settle`] before something is called endless.
const ROUNDS_MAX: u32 = 4_000;

pub(crate) struct Rig {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ledger: MemoryLedger,
    pub(crate) queue: MemoryQueue,
    pub(crate) jobs: ScriptedJobs,
    pub(crate) results: MemoryResults,
    pub(crate) random: SeededRandom,
    pub(crate) limits: Limits,
    pub(crate) pauses: Pauses,
    pub(crate) looks: LookRate,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        Self {
            ledger: MemoryLedger::new(),
            queue: MemoryQueue::new(clock.clone()),
            jobs: ScriptedJobs::new(clock.clone()),
            results: MemoryResults::new(),
            random: SeededRandom::new(7),
            limits: Limits::default(),
            pauses: Pauses::default(),
            looks: LookRate::default(),
            clock,
        }
    }

    pub(crate) fn ports(&self) -> Ports<'_> {
        Ports {
            ledger: &self.ledger,
            queue: &self.queue,
            jobs: &self.jobs,
            results: &self.results,
            clock: &*self.clock,
            random: &self.random,
            limits: &self.limits,
            pauses: &self.pauses,
            looks: &self.looks,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn entry(&self, key: &JobKey) -> Entry {
        self.ledger.entry(key).expect("the row is there")
    }

    /// How a row stands, in one word or two.
    pub(crate) fn stands(&self, key: &JobKey) -> String {
        standing(&self.entry(key))
    }

    pub(crate) async fn announce(&self, key: &JobKey) -> AnnounceOutcome {
        let ports = self.ports().announcing();
        announce(ports, key, Cause::Delivery, Some("d-1")).await.unwrap()
    }

    /// Lays down a received row that belongs to a submission.
    pub(crate) fn receive_linked(&self, key: &JobKey) {
        let mut row = Entry::expected(
            key.clone(),
            Some(link_of(key, "s-1")),
            Cause::Submit,
            self.now(),
            &self.limits,
        );
        row.state = State::Received;
        self.ledger.place(&row);
    }

    pub(crate) async fn work(&self, key: &JobKey) -> Worked {
        work(self.ports(), &Task { key: key.clone() }).await.unwrap()
    }

    /// Moves the clock to when a task may work the row, and works it.
    pub(crate) async fn work_when_due(&self, key: &JobKey) -> Worked {
        if let Some(not_before) = self.entry(key).not_before {
            self.clock.advance_to(not_before);
        }
        self.work(key).await
    }

    /// Works all tasks that are visible now; how many there were.
    pub(crate) async fn work_queue(&self) -> usize {
        let held = self.queue.receive(1_000, MINUTE).await.unwrap();
        for held in &held {
            work(self.ports(), &held.task).await.unwrap();
            self.queue.acknowledge(held).await.unwrap();
        }
        held.len()
    }

    /// Runs tasks, sweeps and the clock until every row is terminal and every intent closed.
    pub(crate) async fn settle(&self) {
        for _ in 0..ROUNDS_MAX {
            self.work_queue().await;
            let open = self.ledger.entries().iter().any(|entry| !entry.state.is_terminal());
            let asked = self.ledger.intents().iter().any(|intent| intent.state.is_open());
            if !open && !asked && self.queue.depth() == 0 {
                return;
            }
            self.clock.advance(MINUTE);
            self.clock.advance_to(self.next_due());
            sweep(self.ports(), 1_000).await.unwrap();
        }
        let rows: Vec<_> = self.ledger.entries().iter().map(standing).collect();
        panic!("never quiet: {rows:?}");
    }

    /// When somebody has to look at something again.
    fn next_due(&self) -> Timestamp {
        let entries = self.ledger.entries().into_iter();
        let entries = entries.filter_map(|entry| entry.not_before.max(entry.due_at));
        let intents = self.ledger.intents().into_iter().filter_map(|intent| intent.due_at);
        entries.chain(intents).min().unwrap_or_else(|| self.now())
    }

    /// The keys of all objects with the bytes that lie there.
    pub(crate) fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        let keys = self.results.keys();
        keys.into_iter().map(|key| (key.clone(), self.results.bytes(&key).unwrap())).collect()
    }

    /// An object's plain content as JSON.
    pub(crate) fn json(&self, key: &str) -> serde_json::Value {
        let bytes = self.results.bytes(key).expect("the object is there");
        serde_json::from_slice(&crate::object::decode(key, &bytes).unwrap()).unwrap()
    }
}

pub(crate) fn standing(entry: &Entry) -> String {
    match &entry.state {
        State::Dead { reason, .. } => format!("dead {reason}"),
        State::Superseded { by } => format!("superseded {by}"),
        state => state.name().to_string(),
    }
}

pub(crate) fn stored_object(entry: &Entry) -> StoredObject {
    match &entry.state {
        State::Stored { result } | State::Dead { result: Some(result), .. } => result.clone(),
        other => panic!("{other:?} has no object"),
    }
}

pub(crate) fn dead(reason: DeadReason) -> Worked {
    Worked::Dead(reason)
}

pub(crate) fn id(text: &str) -> JobId {
    JobId::parse(text).unwrap()
}

pub(crate) fn extract(text: &str) -> JobKey {
    JobKey::new(Kind::Extract, id(text))
}

pub(crate) fn batch(text: &str) -> JobKey {
    JobKey::new(Kind::Batch, id(text))
}

pub(crate) fn crawl(text: &str) -> JobKey {
    JobKey::new(Kind::Crawl, id(text))
}

pub(crate) fn page() -> JobRequest {
    JobRequest::extract("https://example.com/page", FetchOptions::default()).unwrap()
}

pub(crate) fn link_of(key: &JobKey, submission: &str) -> Link {
    Link {
        submission: submission.into(),
        lineage: key.job_id.clone(),
        attempt: 0,
        base: 0,
        request: (key.kind == Kind::Extract).then(page),
        reference: Some("my-ref".into()),
    }
}

pub(crate) fn submission(request: JobRequest) -> Submission {
    Submission { run: "run".into(), position: 0, request, reference: None }
}

pub(crate) fn answer(key: &JobKey, status: JobStatus) -> ExtractJob {
    let mut answer = extract_answer(&key.job_id, status);
    answer.created_at = Some("2026-11-29T23:59:59Z".parse().unwrap());
    answer
}

pub(crate) fn error(kind: ApiErrorKind, status: Option<u16>) -> ApiError {
    ApiError { status, ..ApiError::new(kind, "said the platform") }
}

pub(crate) fn retry_after(mut error: ApiError, wait: Duration) -> ApiError {
    error.retry_after = Some(wait);
    error
}

/// Items of a batch with these input indices.
pub(crate) fn items(indices: std::ops::Range<u32>) -> Vec<Item> {
    indices
        .map(|index| Item {
            key: index.to_string(),
            url: format!("https://example.com/{index}"),
            status: "completed".into(),
            error: None,
            raw: RawJson(
                format!(
                    r#"{{"input_index":{index},"url":"https://example.com/{index}","status":"completed"}}"#
                )
                .into(),
            ),
        })
        .collect()
}

/// When a POST that is intended now can be looked for.
pub(crate) fn recoverable_at(rig: &Rig) -> Timestamp {
    let limits = &rig.limits;
    after(rig.now(), limits.post_begin + limits.post_timeout + limits.adoption_margin)
}
