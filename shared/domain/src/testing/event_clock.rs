use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use async_trait::async_trait;

use super::lock;
use crate::ports::Clock;
use crate::time::{Timestamp, after};

/// A clock that many can sleep by: when all are asleep it goes on to the next who wakes.
///
/// Unlike with [`super::ManualClock`] a sleep takes its time beside whatever else goes on, so that
/// time-outs, races and several who wait are what they are by a true clock, only at once.
pub struct EventClock {
    state: Mutex<State>,
}

struct State {
    now: Timestamp,
    /// By time and order, so that one history follows from one seed.
    sleepers: BTreeMap<(Timestamp, u64), Waker>,
    sleeps: u64,
    last_end: Timestamp,
}

impl EventClock {
    /// The latest instant that a sleep was to end at.
    pub fn last_end(&self) -> Timestamp {
        lock(&self.state).last_end
    }

    /// Goes on to the first who wakes; `false` if nobody sleeps.
    fn advance(&self) -> bool {
        let first = {
            let mut state = lock(&self.state);
            let Some(((at, _), waker)) = state.sleepers.pop_first() else { return false };
            state.now = state.now.max(at);
            waker
        };
        first.wake();
        true
    }

    /// Runs work that waits for this clock alone; `None` if it waits for something else.
    pub fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut work = pin!(work);
        loop {
            while woken.0.swap(false, Ordering::Relaxed) {
                if let Poll::Ready(value) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return Some(value);
                }
            }
            if !self.advance() {
                return None;
            }
        }
    }
}

impl Default for EventClock {
    /// A clock at 2026-11-30, noon in UTC.
    fn default() -> Self {
        let now = Timestamp::constant(1_796_040_000, 0);
        let sleepers = BTreeMap::new();
        Self { state: Mutex::new(State { now, sleepers, sleeps: 0, last_end: now }) }
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for EventClock {
    fn now(&self) -> Timestamp {
        lock(&self.state).now
    }

    async fn sleep(&self, duration: Duration) {
        let until = after(self.now(), duration);
        {
            let mut state = lock(&self.state);
            state.last_end = state.last_end.max(until);
        }
        let mut bed = Bed { clock: self, place: None };
        poll_fn(|context| {
            let mut state = lock(&self.state);
            if state.now >= until {
                return Poll::Ready(());
            }
            // Whoever is polled in between stays where it lies.
            let place = bed.place.unwrap_or_else(|| {
                state.sleeps += 1;
                (until, state.sleeps)
            });
            bed.place = Some(place);
            state.sleepers.insert(place, context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// A sleeper's place, which is free again when the sleep has ended or is given up.
struct Bed<'a> {
    clock: &'a EventClock,
    place: Option<(Timestamp, u64)>,
}

impl Drop for Bed<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            lock(&self.clock.state).sleepers.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::between;
    use crate::within::within;

    #[test]
    fn it_goes_on_to_the_next_who_wakes() {
        let clock = EventClock::default();
        let begun = clock.now();
        let elapsed = || between(begun, clock.now()).as_secs();
        let nap = clock.sleep(Duration::from_secs(9));
        let cut = clock.run(within(&clock, Duration::from_secs(5), nap)).unwrap();
        assert_eq!((cut, elapsed()), (None, 5));
        let short = clock.sleep(Duration::from_secs(2));
        let whole = clock.run(within(&clock, Duration::from_secs(5), short)).unwrap();
        assert_eq!((whole, elapsed()), (Some(()), 7));
        assert_eq!(between(begun, clock.last_end()).as_secs(), 10);
        assert!(lock(&clock.state).sleepers.is_empty(), "nobody sleeps who was given up");
        clock.run(clock.sleep(Duration::ZERO)).unwrap();
        assert_eq!(elapsed(), 7);
        assert_eq!(clock.run(std::future::pending::<()>()), None);
    }
}
