//! How often a job list is asked: when a page can be expected to pay for itself.
//!
//! How long jobs take is not known beforehand and differs by orders of magnitude, so the model has
//! no scale: a job of age *a* finishes in the next moment at the rate *k / a*. How large *k* is
//! just now is learned from what has finished, and forgotten as the jobs grow older. From it
//! follows when the next pages will show enough finished jobs.

use std::time::Duration;

use crate::time::{Timestamp, between};

/// Finished jobs that a list page is expected to show before it is asked for: half a page a job.
const YIELD_PER_PAGE: f64 = 2.0;
/// Longest pause, as a share of the open jobs' age: the last ones are late by no more than that,
/// and a job that takes a thousand times longer costs thirty pages more.
const AGE_SHARE: f64 = 0.25;
/// How much older the jobs become, as a natural logarithm, until what was seen counts for a third.
const MEMORY: f64 = 0.3;
/// What is believed before anything was seen: one job finished while two grew older by a factor
/// of e.
const PRIOR: (f64, f64) = (1.0, 2.0);
/// How far chance moves a pause either way, as a share of it, so that callers do not keep in step.
const SPREAD: f64 = 0.1;

/// What was learned from one list.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Pace {
    finished: f64,
    exposure: f64,
    asked_at: Option<Timestamp>,
}

/// The shortest and the longest pause between two looks at a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) min: Duration,
    pub(super) max: Duration,
}

/// What a look at a list showed.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    /// When the jobs that have finished since the last look were created.
    pub(super) finished: Vec<Timestamp>,
    /// When those that are still open were created.
    pub(super) open: Vec<Timestamp>,
    /// Pages that the next look will read.
    pub(super) pages: u32,
}

impl Pace {
    /// Learns from a look, and says how long to wait for the next one. `chance` is 64 uniform bits.
    pub(super) fn pause(
        &mut self,
        shown: &Shown,
        now: Timestamp,
        bounds: Bounds,
        chance: u64,
    ) -> Duration {
        let floor = bounds.min.as_secs_f64().max(f64::EPSILON);
        let age =
            |created: &Timestamp, at: Timestamp| between(*created, at).as_secs_f64().max(floor);
        let grown = |created: &Timestamp| {
            let before = self.asked_at.map_or(floor, |at| age(created, at));
            (age(created, now) / before).max(1.0).ln()
        };
        let finished = count(shown.finished.len());
        // Those that finished did so somewhere on the way, on average half of it.
        let exposure = shown.open.iter().map(grown).sum::<f64>()
            + shown.finished.iter().map(grown).sum::<f64>() / 2.0;
        let jobs = (count(shown.open.len()) + finished / 2.0).max(1.0);
        let kept = (-exposure / jobs / MEMORY).exp();
        self.finished = self.finished * kept + finished;
        self.exposure = self.exposure * kept + exposure;
        self.asked_at = Some(now);
        // Sum of 1 / age: what the open jobs' rates have in common.
        let urgency: f64 = shown.open.iter().map(|created| age(created, now).recip()).sum();
        let rate = (PRIOR.0 + self.finished) / (PRIOR.1 + self.exposure) * urgency;
        let paying = YIELD_PER_PAGE * f64::from(shown.pages.max(1)) / rate;
        let bearable = AGE_SHARE * count(shown.open.len()) / urgency;
        let spread = 1.0 + SPREAD * (2.0 * share(chance) - 1.0);
        Duration::try_from_secs_f64(paying.min(bearable) * spread)
            .unwrap_or(bounds.max)
            .clamp(bounds.min, bounds.max.max(bounds.min))
    }

    /// Whether a job was made since the last look.
    pub(super) fn is_news(&self, created: Timestamp) -> bool {
        self.asked_at.is_none_or(|at| created > at)
    }
}

/// A number of jobs, for arithmetic.
fn count(jobs: usize) -> f64 {
    f64::from(u32::try_from(jobs).unwrap_or(u32::MAX))
}

/// Chance as a share from 0 to 1.
fn share(chance: u64) -> f64 {
    let upper = u32::try_from(chance >> 32).unwrap_or(u32::MAX);
    f64::from(upper) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests;
