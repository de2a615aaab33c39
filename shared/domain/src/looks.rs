//! The rate of 404s: one is a fact about a job, many are a fact about the account or the API.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Looks remembered.
const WINDOW: usize = 50;
/// Looks needed before the rate means anything.
const LOOKS_MIN: usize = 20;

/// Remembers whether the last looks at jobs found them.
#[derive(Debug, Default)]
pub struct LookRate {
    missing: Mutex<VecDeque<bool>>,
}

impl LookRate {
    /// Notes one look.
    pub fn note(&self, missing: bool) {
        let mut looks = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.len() >= WINDOW {
            looks.pop_front();
        }
        looks.push_back(missing);
    }

    /// Whether more than half of the last looks found nothing, so that no single job should be
    /// blamed.
    pub fn is_suspicious(&self) -> bool {
        let looks = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = looks.iter().filter(|missing| **missing).count();
        looks.len() >= LOOKS_MIN && missing * 2 > looks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WK-11: a few missing jobs are theirs; when most are missing, something else is wrong.
    #[test]
    fn only_a_high_rate_of_missing_jobs_is_suspicious() {
        let rate = LookRate::default();
        (0..19).for_each(|_| rate.note(true));
        assert!(!rate.is_suspicious());
        rate.note(true);
        assert!(rate.is_suspicious());
        (0..30).for_each(|_| rate.note(false));
        assert!(!rate.is_suspicious());
    }
}
