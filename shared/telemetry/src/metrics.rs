//! The registry: a number for each metric of the catalogue.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::catalogue::{Counter, Family, Gauge, Timing};
use crate::timing::{Timed, Totals};

/// A gauge that was not measured.
const UNMEASURED: u64 = u64::MAX;

/// What one process counted. Adding is one atomic addition; nothing waits for anything.
#[derive(Debug)]
pub struct Metrics {
    counters: Vec<AtomicU64>,
    gauges: Vec<AtomicU64>,
    families: Vec<Vec<AtomicU64>>,
    timings: Vec<Timed>,
}

impl Metrics {
    /// For a process that is scraped: numbers grow until it ends.
    pub fn for_scrapes() -> Self {
        Self::with(Timed::totals)
    }

    /// For a process that writes what it counted again and again, as [`crate::Emf`] does.
    pub fn for_flushes() -> Self {
        Self::with(Timed::values)
    }

    fn with(timed: fn() -> Timed) -> Self {
        let cells =
            |count: usize, value| (0..count).map(|_| AtomicU64::new(value)).collect::<Vec<_>>();
        let family = |family: &Family| cells(family.values().len(), UNMEASURED);
        Self {
            counters: cells(Counter::ALL.len(), 0),
            gauges: cells(Gauge::ALL.len(), UNMEASURED),
            families: Family::ALL.iter().map(family).collect(),
            timings: Timing::ALL.iter().map(|_| timed()).collect(),
        }
    }

    /// Adds one.
    pub fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Adds some.
    pub fn add(&self, counter: Counter, more: u64) {
        if let Some(cell) = self.counters.get(counter as usize) {
            cell.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Sets a gauge.
    pub fn set(&self, gauge: Gauge, value: u64) {
        if let Some(cell) = self.gauges.get(gauge as usize) {
            cell.store(value.min(UNMEASURED - 1), Ordering::Relaxed);
        }
    }

    /// Sets the counts of entries, named as the ledger names them.
    pub fn set_entries(&self, counts: &BTreeMap<String, u64>) {
        for (family, cells) in Family::ALL.iter().zip(&self.families) {
            for (value, cell) in family.values().into_iter().zip(cells) {
                let count = counts.get(&family.counted_as(value)).copied().unwrap_or_default();
                cell.store(count, Ordering::Relaxed);
            }
        }
    }

    /// Forgets what was measured, so that what cannot be measured again is not told as it was.
    pub fn forget_measured(&self) {
        for cell in self.gauges.iter().chain(self.families.iter().flatten()) {
            cell.store(UNMEASURED, Ordering::Relaxed);
        }
    }

    /// Notes how long something took.
    pub fn time(&self, timing: Timing, took: Duration) {
        if let Some(timed) = self.timings.get(timing as usize) {
            timed.note(took);
        }
    }

    /// A counter as it is: since the start, or since the last flush.
    pub fn read(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// All counters that are not zero, by name.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let named = Counter::ALL.iter().map(|counter| (counter.metric().name, self.read(*counter)));
        named.filter(|(_, count)| *count > 0).collect()
    }

    /// Takes a counter: it begins again at zero.
    pub(crate) fn take(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).map_or(0, |cell| cell.swap(0, Ordering::Relaxed))
    }

    /// A gauge, if it was measured.
    pub(crate) fn gauge(&self, gauge: Gauge) -> Option<u64> {
        let value = self.gauges.get(gauge as usize)?.load(Ordering::Relaxed);
        (value != UNMEASURED).then_some(value)
    }

    /// Takes a gauge, if it was measured since the last time.
    pub(crate) fn take_gauge(&self, gauge: Gauge) -> Option<u64> {
        let value = self.gauges.get(gauge as usize)?.swap(UNMEASURED, Ordering::Relaxed);
        (value != UNMEASURED).then_some(value)
    }

    /// A family by the values of its label; empty if it was not measured.
    pub(crate) fn family(&self, family: Family) -> Vec<(&'static str, u64)> {
        let cells = self.families.get(family as usize).into_iter().flatten();
        let counts = cells.map(|cell| cell.load(Ordering::Relaxed));
        let by_value = family.values().into_iter().zip(counts);
        by_value.filter(|(_, count)| *count != UNMEASURED).collect()
    }

    pub(crate) fn totals(&self, timing: Timing) -> Option<Totals> {
        self.timings.get(timing as usize)?.read_totals()
    }

    pub(crate) fn take_values(&self, timing: Timing) -> Vec<Duration> {
        self.timings.get(timing as usize).map_or_else(Vec::new, Timed::take_values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_add_up_and_are_taken_once() {
        let metrics = Metrics::for_flushes();
        metrics.count(Counter::JobsStored);
        metrics.add(Counter::JobsStored, 2);
        metrics.add(Counter::JobsDead, 0);
        assert_eq!(metrics.read(Counter::JobsStored), 3);
        assert_eq!(metrics.counts(), [("jobs_stored", 3)].into());
        assert_eq!((metrics.take(Counter::JobsStored), metrics.take(Counter::JobsStored)), (3, 0));
    }

    #[test]
    fn a_gauge_is_nothing_until_it_is_measured() {
        let metrics = Metrics::for_scrapes();
        assert_eq!(metrics.gauge(Gauge::Paused), None);
        metrics.set(Gauge::Paused, 0);
        assert_eq!(metrics.gauge(Gauge::Paused), Some(0));
        metrics.set(Gauge::Paused, u64::MAX);
        assert!(metrics.gauge(Gauge::Paused).is_some());
        assert!(metrics.take_gauge(Gauge::Paused).is_some());
        assert_eq!(metrics.take_gauge(Gauge::Paused), None);
    }

    #[test]
    fn entries_are_counted_as_the_ledger_counts_them() {
        let metrics = Metrics::for_scrapes();
        let count = |name: &str, count| (name.to_owned(), count);
        let counts = [count("stored", 7), count("dead", 3), count("dead:gone", 2)].into();
        metrics.set_entries(&counts);
        let of = |family, value| {
            metrics.family(family).into_iter().find(|(name, _)| *name == value).unwrap().1
        };
        assert_eq!(of(Family::Entries, "stored"), 7);
        assert_eq!(of(Family::Entries, "dead"), 3);
        assert_eq!(of(Family::Entries, "expected"), 0);
        assert_eq!(of(Family::EntriesDead, "gone"), 2);
        // What is not counted any more is zero again.
        metrics.set_entries(&BTreeMap::new());
        assert_eq!(of(Family::Entries, "stored"), 0);
        metrics.set(Gauge::Paused, 1);
        metrics.forget_measured();
        assert_eq!((metrics.gauge(Gauge::Paused), metrics.family(Family::Entries)), (None, vec![]));
    }
}
