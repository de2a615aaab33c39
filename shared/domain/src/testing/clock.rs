use std::future::poll_fn;
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;

use super::lock;
use crate::ports::Clock;
use crate::time::{Timestamp, after};

/// A clock that stands still until a test moves it, or until somebody sleeps by it.
///
/// [`Clock::sleep`] moves the clock by the duration and returns, so that loops with back-off run
/// at once; what was slept is recorded.
///
/// A sleep takes one turn of the executor, whatever its length. A deadline made of it is therefore
/// over before anything that needs more turns: use it with ports that answer at once, not with
/// ones that hand their work to another thread.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    now: Timestamp,
    sleeps: Vec<Duration>,
}

impl ManualClock {
    /// A clock that shows this instant.
    pub const fn at(now: Timestamp) -> Self {
        Self { state: Mutex::new(State { now, sleeps: Vec::new() }) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        let mut state = lock(&self.state);
        state.now = after(state.now, duration);
    }

    /// Moves the clock forward to an instant; `false`, and nothing happens, if that lies behind.
    pub fn advance_to(&self, at: Timestamp) -> bool {
        let mut state = lock(&self.state);
        let is_ahead = at >= state.now;
        if is_ahead {
            state.now = at;
        }
        is_ahead
    }

    /// What was slept by this clock, in order.
    pub fn sleeps(&self) -> Vec<Duration> {
        lock(&self.state).sleeps.clone()
    }
}

impl Default for ManualClock {
    /// A clock at 2026-11-30, noon in UTC.
    fn default() -> Self {
        Self::at(Timestamp::constant(1_796_040_000, 0))
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        lock(&self.state).now
    }

    async fn sleep(&self, duration: Duration) {
        {
            let mut state = lock(&self.state);
            state.now = after(state.now, duration);
            state.sleeps.push(duration);
        }
        // Other tasks get their turn, as they would during a true wait.
        let mut has_yielded = false;
        poll_fn(|context| {
            if has_yielded {
                return Poll::Ready(());
            }
            has_yielded = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_moves_forward_only_and_records_sleeps() {
        let clock = ManualClock::default();
        let noon: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        assert_eq!(clock.now(), noon);
        clock.advance(Duration::from_secs(1));
        assert!(!clock.advance_to(noon));
        assert_eq!(clock.now(), after(noon, Duration::from_secs(1)));
        clock.sleep(Duration::from_secs(59)).await;
        assert!(clock.advance_to(after(noon, Duration::from_mins(1))));
        assert_eq!(clock.now(), after(noon, Duration::from_mins(1)));
        assert_eq!(clock.sleeps(), [Duration::from_secs(59)]);
    }
}
