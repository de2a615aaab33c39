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

/// The clock by which faulty ports hang: whoever does so has been killed.
pub(super) struct Killer {
    clock: Arc<ManualClock>,
    killed: AtomicBool,
}

impl Killer {
    pub(super) fn new(clock: Arc<ManualClock>) -> Arc<Self> {
        Arc::new(Self { clock, killed: AtomicBool::new(false) })
    }

    /// Runs a process to its end, or to where it is killed.
    pub(super) async fn run<T>(&self, process: impl Future<Output = T>) -> Ended<T> {
        let mut process = pin!(process);
        poll_fn(|context| match process.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Ended::With(value)),
            Poll::Pending if self.killed.load(Ordering::Relaxed) => Poll::Ready(Ended::Killed),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
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
