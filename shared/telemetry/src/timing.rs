//! How long things took: in buckets for a scrape, or one by one for a flush.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the buckets, in milliseconds: from an answer out of memory to the longest call.
pub(crate) const BUCKETS_MS: [u64; 14] =
    [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 300_000];
/// Most values kept between two flushes; further ones are left out. One invocation works at most as
/// many records as a batch has, which are far fewer.
const VALUES_MAX: usize = 1_000;

/// One timing.
#[derive(Debug)]
pub(crate) enum Timed {
    /// For scrapes.
    Totals { buckets: [AtomicU64; BUCKETS_MS.len()], count: AtomicU64, sum_us: AtomicU64 },
    /// For flushes.
    Values(Mutex<Vec<Duration>>),
}

/// A timing since the start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Upper bound in milliseconds, and how many took no longer.
    pub(crate) up_to: Vec<(u64, u64)>,
    pub(crate) count: u64,
    pub(crate) sum: Duration,
}

impl Timed {
    pub(crate) fn totals() -> Self {
        let zero = || AtomicU64::new(0);
        let buckets = std::array::from_fn(|_| zero());
        Self::Totals { buckets, count: zero(), sum_us: zero() }
    }

    pub(crate) fn values() -> Self {
        Self::Values(Mutex::default())
    }

    pub(crate) fn note(&self, took: Duration) {
        match self {
            Self::Totals { buckets, count, sum_us } => {
                let bound =
                    BUCKETS_MS.iter().position(|bound| took <= Duration::from_millis(*bound));
                if let Some(bucket) = bound.and_then(|bound| buckets.get(bound)) {
                    bucket.fetch_add(1, Ordering::Relaxed);
                }
                sum_us.fetch_add(micros(took), Ordering::Relaxed);
                count.fetch_add(1, Ordering::Relaxed);
            }
            Self::Values(values) => {
                let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
                if values.len() < VALUES_MAX {
                    values.push(took);
                }
            }
        }
    }

    /// What is told at a scrape; `None` of a timing for flushes.
    pub(crate) fn read_totals(&self) -> Option<Totals> {
        let Self::Totals { buckets, count, sum_us } = self else { return None };
        // The count first: a value that comes meanwhile is in a bucket and not in the count, which
        // no bucket may exceed.
        let count = count.load(Ordering::Acquire);
        let mut up_to = Vec::with_capacity(BUCKETS_MS.len());
        let mut so_far = 0_u64;
        for (bound, bucket) in BUCKETS_MS.iter().zip(buckets) {
            so_far = so_far.saturating_add(bucket.load(Ordering::Relaxed)).min(count);
            up_to.push((*bound, so_far));
        }
        let sum = Duration::from_micros(sum_us.load(Ordering::Relaxed));
        Some(Totals { up_to, count, sum })
    }

    /// Takes what was noted since the last time; nothing of a timing for scrapes.
    pub(crate) fn take_values(&self) -> Vec<Duration> {
        match self {
            Self::Totals { .. } => Vec::new(),
            Self::Values(values) => {
                std::mem::take(&mut *values.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_what_took_no_longer() {
        let timed = Timed::totals();
        for ms in [0, 1, 7, 300_000, 300_001] {
            timed.note(Duration::from_millis(ms));
        }
        let totals = timed.read_totals().unwrap();
        assert_eq!((totals.count, totals.sum), (5, Duration::from_millis(600_009)));
        assert_eq!(totals.up_to[..3], [(1, 2), (5, 2), (10, 3)]);
        assert_eq!(totals.up_to.last(), Some(&(300_000, 4)));
        assert!(timed.take_values().is_empty());
    }

    #[test]
    fn values_between_two_flushes_are_bounded() {
        let timed = Timed::values();
        for _ in 0..VALUES_MAX + 5 {
            timed.note(Duration::from_millis(2));
        }
        assert_eq!(timed.take_values(), vec![Duration::from_millis(2); VALUES_MAX]);
        assert!(timed.take_values().is_empty());
        assert_eq!(timed.read_totals(), None);
    }
}
