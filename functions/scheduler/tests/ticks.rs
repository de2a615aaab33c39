//! The scheduler over ports in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::announce::announce;
use domain::claim;
use domain::entry::Cause;
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::pause::Scope;
use domain::ports::Clock as _;
use domain::steps::Pipeline;
use domain::testing::{
    ManualClock, MemoryLedger, MemoryQueue, MemoryResults, MemoryWebhooks, ScriptedJobs,
    SeededRandom,
};
use domain::tick::{CLAIM, Ran, Rules};
use domain::time::{Timestamp, after};
use scheduler::{Report, Scheduler};
use serde_json::json;
use settings::Role;
use telemetry::{Emf, Metrics};

const MINUTE: Duration = Duration::from_mins(1);

struct Rig {
    scheduler: Scheduler,
    ledger: Arc<MemoryLedger>,
    queue: Arc<MemoryQueue>,
    clock: Arc<ManualClock>,
}

fn rig() -> Rig {
    let clock = Arc::new(ManualClock::default());
    let ledger = Arc::new(MemoryLedger::new());
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    let pipeline = Pipeline {
        ledger: ledger.clone(),
        queue: queue.clone(),
        jobs: Arc::new(ScriptedJobs::new(clock.clone())),
        results: Arc::new(MemoryResults::new()),
        clock: clock.clone(),
        random: Arc::new(SeededRandom::new(7)),
        limits: Limits::default(),
        pauses: Arc::default(),
        looks: Arc::default(),
    };
    let metrics = Arc::new(Metrics::for_flushes());
    let webhooks = Arc::new(MemoryWebhooks::new(clock.clone()));
    let (rules, first) = (Rules::default(), Mutex::default());
    let scheduler = Scheduler { pipeline, webhooks, metrics, rules, first };
    Rig { scheduler, ledger, queue, clock }
}

impl Rig {
    fn deadline(&self) -> Timestamp {
        after(self.clock.now(), 2 * MINUTE)
    }

    async fn tick(&self) -> Report {
        self.scheduler.tick(self.deadline()).await.unwrap()
    }

    /// A job whose task the queue has lost.
    async fn lost(&self, id: &str) {
        let key = JobKey::new(Kind::Extract, JobId::parse(id).unwrap());
        let ports = self.scheduler.pipeline.ports().announcing();
        announce(ports, &key, Cause::Delivery, None).await.unwrap();
        self.queue.lose_all();
    }
}

#[tokio::test]
async fn a_lost_task_is_sent_again() {
    let rig = rig();
    rig.lost("j1").await;
    // Its grace has not passed.
    let report = rig.tick().await;
    assert_eq!((report.ran(), report.metrics["ticks"]), (Ran::Whole, 1));
    assert_eq!(rig.queue.depth(), 0);
    rig.clock.advance(5 * MINUTE);
    let report = rig.tick().await;
    assert_eq!(report.ran(), Ran::Whole);
    assert_eq!(rig.queue.depth(), 1);
    assert_eq!((report.metrics["tasks_swept"], report.metrics["ticks"]), (1, 2));
    // Whoever invokes the function by hand reads what it found.
    let told = serde_json::to_value(&report).unwrap();
    assert_eq!((&told["ran"], &told["counted"]["tasks_swept"]), (&json!("whole"), &json!(1)));
    assert_eq!((&told["gap"], &told["subscriptions"]["crawl"]), (&json!(0), &json!("missing")));
}

/// Two runs at once: the second leaves the first alone, and after it there is another.
#[tokio::test]
async fn one_run_at_a_time_is_at_work() {
    let rig = rig();
    rig.lost("j1").await;
    rig.clock.advance(5 * MINUTE);
    let (now, until) = (rig.clock.now(), rig.deadline());
    let other = claim::take(&*rig.ledger, CLAIM, "other", now, until).await.unwrap().unwrap();
    let report = rig.tick().await;
    assert_eq!(report.ran(), Ran::Elsewhere);
    assert_eq!(rig.queue.depth(), 0);
    claim::release(&*rig.ledger, other).await.unwrap();
    assert_eq!(rig.tick().await.ran(), Ran::Whole);
    assert_eq!(rig.tick().await.ran(), Ran::Whole);
    assert_eq!(rig.queue.depth(), 1);
}

/// A run that was killed holds its claim no longer than Lambda would have let it live.
#[tokio::test]
async fn a_killed_run_holds_nobody_up_for_long() {
    let rig = rig();
    let (now, until) = (rig.clock.now(), rig.deadline());
    claim::take(&*rig.ledger, CLAIM, "killed", now, until).await.unwrap().unwrap();
    rig.clock.advance_to(until);
    assert_eq!(rig.tick().await.ran(), Ran::Whole);
}

#[tokio::test]
async fn a_paused_account_is_left_alone_and_what_waits_is_measured() {
    let rig = rig();
    rig.lost("j1").await;
    rig.clock.advance(10 * MINUTE);
    let until = after(rig.clock.now(), 10 * MINUTE);
    let pauses = &rig.scheduler.pipeline.pauses;
    pauses.extend(&*rig.ledger, Scope::All, until, "throttled").await.unwrap();
    assert_eq!(rig.tick().await.ran(), Ran::Paused);
    let told = rig.scheduler.metrics.clone();
    let documents = Emf::new(Role::Scheduler, "stack").documents(&told, rig.clock.now());
    let document = documents.first().unwrap();
    // Overdue since the grace of one minute had passed.
    assert_eq!((&document["overdue_age"], &document["paused"]), (&json!(9 * 60), &json!(1)));
    assert_eq!(rig.queue.depth(), 0);
}

/// Without time nothing is begun, and the next run finds everything as it was.
#[tokio::test]
async fn a_run_without_time_ends_in_order() {
    let rig = rig();
    rig.lost("j1").await;
    rig.clock.advance(5 * MINUTE);
    let report = rig.scheduler.tick(after(rig.clock.now(), Duration::from_secs(1))).await.unwrap();
    assert!(matches!(report.ran(), Ran::Whole | Ran::OutOfTime), "{report:?}");
    assert_eq!(rig.tick().await.ran(), Ran::Whole);
    assert_eq!(rig.queue.depth(), 1);
}
