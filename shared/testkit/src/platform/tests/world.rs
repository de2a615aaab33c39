//! The whole way of a job in one process: submissions, deliveries, tasks, sweeps, by one clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::entry::Entry;
use domain::envelope::EnvelopeFormat;
use domain::intent::{Intent, Submission};
use domain::keyring::Keyring;
use domain::limits::Limits;
use domain::looks::LookRate;
use domain::pause::Pauses;
use domain::ports::{
    Clock as _, Due as _, LoadedSecrets, PortError, SecretSource, TaskSource as _,
};
use domain::receive::{ReceivePorts, receive};
use domain::signature::preset::Preset;
use domain::signature::secret::Secret;
use domain::steps::Ports;
use domain::submit::{Submitted, submit};
use domain::sweep::sweep;
use domain::testing::{ManualClock, MemoryLedger, MemoryQueue, MemoryResults, SeededRandom};
use domain::time::{Timestamp, after};
use domain::work::work;
use serde_json::Value;
use simulator::{AttemptOutcome, Config};

use crate::platform::PlatformJobs;

/// Rounds after which a world that has not come to rest never will: each is a second at least.
const ROUNDS_MAX: u32 = 200_000;
/// Tasks taken at once.
const TASKS_MAX: u32 = 100;
/// How long a worker holds a task: longer than any look takes.
const HOLD: Duration = Duration::from_mins(10);
/// Rows that one sweep may move on.
const SWEEP_BUDGET: u32 = 1_000;
/// How far the clock goes on after a round in which something happened, and in which nothing did.
const BUSY_STEP: Duration = Duration::from_secs(1);
const IDLE_STEP: Duration = Duration::from_secs(20);

/// Gleaner's steps over memory, and the simulated platform.
pub(super) struct World {
    clock: Arc<ManualClock>,
    pub(super) jobs: PlatformJobs,
    pub(super) ledger: MemoryLedger,
    queue: MemoryQueue,
    pub(super) results: MemoryResults,
    random: SeededRandom,
    limits: Limits,
    pauses: Pauses,
    looks: LookRate,
    keyring: Keyring,
    format: EnvelopeFormat,
    pub(super) receptions: BTreeMap<u16, u32>,
}

/// What a world has come to: equal for equal seeds.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) entries: Vec<Entry>,
    pub(super) intents: Vec<Intent>,
    pub(super) objects: Vec<(String, Vec<u8>)>,
    pub(super) books: Value,
    pub(super) ended_at: Timestamp,
}

struct Fixed(Vec<Secret>);

#[async_trait]
impl SecretSource for Fixed {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        Ok(self.0.clone().into())
    }
}

impl World {
    /// A world in which nothing was submitted yet.
    pub(super) fn new(config: Config) -> Self {
        let clock = Arc::new(ManualClock::default());
        let seed = config.seed;
        let jobs = PlatformJobs::new(config, clock.clone()).unwrap();
        let secrets = jobs.subscribe("https://gleaner.example/webhook").unwrap();
        let limits = limits();
        let scheme = Preset::Geonode.scheme().unwrap();
        Self {
            ledger: MemoryLedger::new(),
            queue: MemoryQueue::new(clock.clone()),
            results: MemoryResults::new(),
            random: SeededRandom::new(seed),
            pauses: Pauses::default(),
            looks: LookRate::default(),
            keyring: Keyring::new(Arc::new(Fixed(secrets)), scheme, &limits),
            format: EnvelopeFormat::default(),
            receptions: BTreeMap::new(),
            limits,
            jobs,
            clock,
        }
    }

    fn ports(&self) -> Ports<'_> {
        Ports {
            ledger: &self.ledger,
            queue: &self.queue,
            jobs: &self.jobs,
            results: &self.results,
            clock: self.clock.as_ref(),
            random: &self.random,
            limits: &self.limits,
            pauses: &self.pauses,
            looks: &self.looks,
        }
    }

    /// Submits everything and lets the world run until nobody owes anybody anything.
    pub(super) async fn run(&mut self, submissions: &[Submission]) -> Outcome {
        let mut waiting: Vec<_> = submissions.iter().map(|it| (self.clock.now(), it)).collect();
        for _ in 0..ROUNDS_MAX {
            let mut happened = self.submit(&mut waiting).await;
            happened |= self.deliver().await;
            happened |= self.work().await;
            happened |= self.sweep().await;
            if !happened && waiting.is_empty() && self.is_at_rest().await {
                return self.outcome();
            }
            self.clock.advance(if happened { BUSY_STEP } else { IDLE_STEP });
        }
        panic!("the world does not come to rest");
    }

    /// Tries each submission whose time has come; those that are settled leave the list.
    async fn submit(&self, waiting: &mut Vec<(Timestamp, &Submission)>) -> bool {
        let mut happened = false;
        for (again_at, submission) in std::mem::take(waiting) {
            if self.clock.now() < again_at {
                waiting.push((again_at, submission));
                continue;
            }
            happened = true;
            match submit(self.ports(), submission).await.unwrap() {
                Submitted::Accepted { .. } | Submitted::Refused(_) | Submitted::Ambiguous => {}
                Submitted::Deferred { wait, .. } => {
                    waiting.push((after(self.clock.now(), wait), submission));
                }
                Submitted::Unanswered { look_at } => waiting.push((look_at, submission)),
            }
        }
        happened
    }

    async fn deliver(&mut self) -> bool {
        let due = self.jobs.due_deliveries();
        for delivery in &due {
            let ports = ReceivePorts {
                announcing: self.ports().announcing(),
                keyring: &self.keyring,
                format: &self.format,
            };
            let status = receive(ports, &delivery.headers, &delivery.body).await.status();
            self.jobs.report(delivery, AttemptOutcome::Answered(status));
            *self.receptions.entry(status).or_default() += 1;
        }
        !due.is_empty()
    }

    async fn work(&self) -> bool {
        let held = self.queue.receive(TASKS_MAX, HOLD).await.unwrap();
        for task in &held {
            work(self.ports(), &task.task).await.unwrap();
            self.queue.acknowledge(task).await.unwrap();
        }
        !held.is_empty()
    }

    async fn sweep(&self) -> bool {
        let swept = sweep(self.ports(), SWEEP_BUDGET).await.unwrap();
        assert_eq!(swept.unreadable, 0);
        swept.sent + swept.dead + swept.adopted + swept.ambiguous > 0
    }

    /// Whether no row, no intent and no delivery is open: whatever is open is due some day. A job
    /// that never settles stays open at the platform alone.
    async fn is_at_rest(&self) -> bool {
        let rows = self.ledger.list_due(Timestamp::MAX, None, 1).await.unwrap();
        let intents = self.ledger.list_due_intents(Timestamp::MAX, None, 1).await.unwrap();
        rows.items.is_empty() && intents.items.is_empty() && self.jobs.next_due().is_none()
    }

    fn outcome(&self) -> Outcome {
        let object = |key: String| {
            let bytes = self.results.bytes(&key).unwrap();
            (key, bytes)
        };
        Outcome {
            entries: self.ledger.entries(),
            intents: self.ledger.intents(),
            objects: self.results.keys().into_iter().map(object).collect(),
            books: self.jobs.books(),
            ended_at: self.clock.now(),
        }
    }
}

/// The documented limits, with the long waits of days cut to hours.
fn limits() -> Limits {
    Limits {
        announce_grace: Duration::from_mins(3),
        max_age: Duration::from_hours(3),
        ambiguous_after: Duration::from_hours(1),
        ..Limits::default()
    }
}
