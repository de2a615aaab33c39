//! The simulator's only door to real time.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

/// Tells the time and lets it pass.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Returns the present moment.
    fn now(&self) -> Timestamp;

    /// Returns after `duration` has passed on this clock.
    async fn sleep(&self, duration: Duration);
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the simulator's clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the simulator's clock")]
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
