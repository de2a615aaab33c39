use std::sync::Arc;
use std::time::Duration;

use domain::entry::{Cause, Entry};
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::looks::LookRate;
use domain::pause::Pauses;
use domain::ports::Clock;
use domain::testing::{
    ManualClock, MemoryLedger, MemoryQueue, MemoryResults, ScriptedJobs, SeededRandom,
};
use domain::time::after;

use super::*;

struct Bench {
    clock: Arc<ManualClock>,
    ledger: MemoryLedger,
    queue: MemoryQueue,
    jobs: ScriptedJobs,
    results: MemoryResults,
    random: SeededRandom,
    limits: Limits,
    pauses: Pauses,
    looks: LookRate,
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let shared = Arc::clone(&clock) as Arc<dyn Clock>;
        Self {
            ledger: MemoryLedger::new(),
            queue: MemoryQueue::new(Arc::clone(&shared)),
            jobs: ScriptedJobs::new(shared),
            results: MemoryResults::new(),
            random: SeededRandom::new(1),
            limits: Limits::default(),
            pauses: Pauses::default(),
            looks: LookRate::default(),
            clock,
        }
    }

    fn ports(&self) -> Ports<'_> {
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

    /// Lays down a row that becomes due after so many seconds.
    fn row(&self, id: &str, due_secs: u64) -> JobKey {
        let key = JobKey::new(Kind::Extract, JobId::parse(id).unwrap());
        let now = self.clock.now();
        let row = Entry::expected(key.clone(), None, Cause::Submit, now, &self.limits);
        let due_at = Some(after(now, Duration::from_secs(due_secs)));
        self.ledger.place(&Entry { due_at, ..row });
        key
    }

    async fn measured(&self) -> [Option<u64>; 2] {
        let metrics = Metrics::for_flushes();
        measure(&metrics, self.ports()).await;
        [metrics.gauge(Gauge::OverdueAge), metrics.gauge(Gauge::Paused)]
    }
}

#[tokio::test]
async fn the_age_is_that_of_the_most_overdue_entry() {
    let bench = Bench::new();
    assert_eq!(bench.measured().await, [Some(0), Some(0)]);
    bench.row("j1", 100);
    bench.row("j2", 60);
    assert_eq!(bench.measured().await, [Some(0), Some(0)], "nothing is due yet");
    bench.clock.advance(Duration::from_secs(95));
    assert_eq!(bench.measured().await, [Some(35), Some(0)]);
}

#[tokio::test]
async fn a_pause_of_paying_counts_too() {
    for scope in [Scope::Paying, Scope::All] {
        let bench = Bench::new();
        let until = after(bench.clock.now(), Duration::from_mins(1));
        bench.pauses.extend(&bench.ledger, scope, until, "payment_required").await.unwrap();
        assert_eq!(bench.measured().await, [Some(0), Some(1)]);
        bench.clock.advance(Duration::from_mins(2));
        assert_eq!(bench.measured().await, [Some(0), Some(0)]);
    }
}

#[tokio::test]
async fn rows_that_do_not_decode_are_not_no_rows() {
    let bench = Bench::new();
    let key = bench.row("j1", 0);
    assert!(bench.ledger.corrupt(&key));
    bench.clock.advance(Duration::from_secs(5));
    assert_eq!(bench.measured().await, [None, Some(0)]);
    bench.row("j2", 0);
    bench.clock.advance(Duration::from_secs(5));
    assert_eq!(bench.measured().await, [Some(5), Some(0)]);
}
