use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use domain::ports::Clock;
use domain::testing::ManualClock;
use domain::time::Timestamp;

use crate::faulty::{Fault, FaultPlan, Surroundings};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended<T> {
    /// By itself, with this.
    With(T),
    /// In the middle, at a call that the plan lets hang.
    Killed,
}

/// The clock of a process: deadlines do not pass, since the ports take real time and the clock
/// stands still meanwhile.
pub(super) struct Still(pub(super) Arc<ManualClock>);

#[async_trait]
impl Clock for Still {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn sleep(&self, _duration: Duration) {
        std::future::pending::<()>().await;
    }
}

/// The clock of a process that pauses: short pauses pass at once, and deadlines do not pass.
pub(super) struct Brief(pub(super) Arc<ManualClock>);

/// Longest pause that passes: longer than any that a step makes, shorter than its deadline.
const BRIEF: Duration = Duration::from_secs(30);

#[async_trait]
impl Clock for Brief {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn sleep(&self, duration: Duration) {
        if duration > BRIEF {
            std::future::pending::<()>().await;
        }
        self.0.sleep(duration).await;
    }
}

/// A process with faults among its calls, one of which may be where it is killed.
pub(super) struct Process {
    plan: Arc<FaultPlan>,
    killer: Arc<Killer>,
}

impl Process {
    pub(super) fn new(plan: &Arc<FaultPlan>, clock: &Arc<ManualClock>) -> Self {
        let killer = Killer { clock: clock.clone(), killed: AtomicBool::new(false) };
        Self { plan: plan.clone(), killer: Arc::new(killer) }
    }

    /// What its ports are surrounded by.
    pub(super) fn surroundings(&self) -> Surroundings {
        Surroundings::new(self.plan.clone(), self.killer.clone())
    }

    /// Runs it to its end, or to where it is killed.
    pub(super) async fn run<T>(&self, mut process: impl Future<Output = T> + Unpin) -> Ended<T> {
        poll_fn(|context| match pin!(&mut process).poll(context) {
            Poll::Ready(value) => Poll::Ready(Ended::With(value)),
            Poll::Pending if self.killer.killed.load(Ordering::Relaxed) => {
                Poll::Ready(Ended::Killed)
            }
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// The same, where no deadline passes: a call that hangs before its effect is the last one.
    pub(super) async fn run_to_the_kill<T>(
        &self,
        process: impl Future<Output = T> + Unpin,
    ) -> Ended<T> {
        let before = self.plan.happened().len();
        let ended = self.run(process).await;
        let hangs = self.plan.happened().into_iter().skip(before).any(|it| it == Fault::HangBefore);
        assert!(!hangs || matches!(ended, Ended::Killed), "{:?}", self.plan.calls());
        ended
    }
}

/// The clock by which faulty ports hang: whoever does so has been killed.
struct Killer {
    clock: Arc<ManualClock>,
    killed: AtomicBool,
}

#[async_trait]
impl Clock for Killer {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn sleep(&self, _duration: Duration) {
        self.killed.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
    }
}
