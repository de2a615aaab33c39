//! What a server counted since its start.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Counts by name. One lock, held for an addition.
#[derive(Debug, Default)]
pub struct Tally {
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

/// The counts at one moment.
pub type Tallied = BTreeMap<&'static str, u64>;

impl Tally {
    /// Adds one.
    pub fn count(&self, name: &'static str) {
        self.add(name, 1);
    }

    /// Adds some.
    pub fn add(&self, name: &'static str, more: u64) {
        if more > 0 {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry(name).or_default() += more;
        }
    }

    /// The counts as they are.
    pub fn read(&self) -> Tallied {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The sum of all counts whose name begins so.
pub fn total(tallied: &Tallied, prefix: &str) -> u64 {
    tallied.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, count)| count).sum()
}
