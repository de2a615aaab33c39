//! The real clock and the real dice: the only place of the product that touches either.

use std::time::Duration;

use async_trait::async_trait;
use domain::ports::{Clock, Random};
use domain::time::Timestamp;

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// The system's source of randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn next_u64(&self) -> u64 {
        // Without randomness there are no unique tokens; the address of a fresh allocation and
        // the time would be a poor second, so the system's failure is fatal here.
        #[expect(clippy::expect_used, reason = "a system without randomness cannot run this")]
        getrandom::u64().expect("the system gives randomness")
    }

    /// Asks the system once: each delivery has a token.
    fn token(&self) -> String {
        let mut bytes = [0; 16];
        #[expect(clippy::expect_used, reason = "as above")]
        getrandom::fill(&mut bytes).expect("the system gives randomness");
        hex::encode(bytes)
    }
}
