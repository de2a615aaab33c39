//! Rows and listed jobs of a period, side by side.
//!
//! A period may hold millions of jobs. Of each, its hash and a few bytes are kept; its id is at hand
//! when a source names it, and whatever disagrees is written down then. Two jobs of one hash, of
//! which a million has one pair in forty million times, can only hide a discrepancy: each that is
//! found is read once more by its id.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::judge::{Listing, Row};
use super::{Period, Sheet};
use crate::job::{JobKey, Kind};

/// What is kept of a job.
#[derive(Debug, Clone, Copy)]
struct Job {
    kind: Kind,
    row: Option<Row>,
    listing: Option<Listing>,
    /// Whether it was asked already if it should have a row.
    is_judged: bool,
}

pub(super) struct Books {
    pub(super) period: Period,
    jobs: BTreeMap<u64, Job>,
    /// Listed extract jobs that are in the platform's own count for sure.
    pub(super) counted: u64,
    /// Whether a row is overdue.
    pub(super) has_overdue: bool,
}

impl Books {
    pub(super) const fn new(period: Period) -> Self {
        Self { period, jobs: BTreeMap::new(), counted: 0, has_overdue: false }
    }

    fn job(&mut self, key: &JobKey) -> &mut Job {
        let kind = key.kind;
        self.jobs.entry(hash(key)).or_insert(Job {
            kind,
            row: None,
            listing: None,
            is_judged: false,
        })
    }

    /// Notes a row of the period.
    pub(super) fn enter(&mut self, key: &JobKey, row: Row) {
        self.has_overdue |= row.is_overdue;
        self.job(key).row = Some(row);
    }

    /// Notes a listed job, with its row as it was last read; it may be left to its webhook.
    pub(super) fn list(&mut self, key: &JobKey, listing: Listing, row: Option<Row>, is_left: bool) {
        self.has_overdue |= row.is_some_and(|row| row.is_overdue);
        let is_counted = row.is_some_and(|row| row.is_counted);
        self.counted += u64::from(is_counted && listing == Listing::Completed);
        let job = self.job(key);
        (job.listing, job.row) = (Some(listing), row);
        job.is_judged = !is_left;
    }

    /// Notes a job that a delivery log names, and whether it is missed if it has no row; whether that
    /// is to be asked now, since nobody has.
    pub(super) fn log(&mut self, key: &JobKey, is_missed: bool) -> bool {
        let job = self.job(key);
        let is_asked = is_missed && !job.is_judged && job.row.is_none();
        job.is_judged |= is_asked;
        is_asked
    }

    pub(super) fn row(&self, key: &JobKey) -> Option<Row> {
        self.jobs.get(&hash(key))?.row
    }

    pub(super) fn listing(&self, key: &JobKey) -> Option<Listing> {
        self.jobs.get(&hash(key))?.listing
    }

    /// Counts the rows whose jobs the platform does not list.
    pub(super) fn close(&self, sheet: &mut Sheet) {
        for job in self.jobs.values() {
            let is_missed = job.row.is_some_and(|row| !row.is_follow_up) && job.listing.is_none();
            sheet.kind(job.kind).unlisted += u64::from(is_missed);
        }
    }
}

/// The same for the same job, in each process.
pub(super) fn hash(key: &JobKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an audit of a million jobs takes is a million times this, and the map's own.
    #[test]
    fn a_job_takes_eight_bytes_beside_its_hash() {
        assert!(size_of::<Job>() <= 8, "{}", size_of::<Job>());
    }
}
