//! Rows and listed jobs of a period, side by side.

use std::collections::{BTreeMap, BTreeSet};

use super::{Discrepancy, Period, Sheet, is_overdue};
use crate::entry::{DeadReason, Entry, State, StateName, StoredObject};
use crate::job::{JobKey, JobStatus, Kind};
use crate::limits::Limits;
use crate::time::Timestamp;

/// What an audit keeps of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    state: StateName,
    reason: Option<DeadReason>,
    due_at: Option<Timestamp>,
    pub(super) object: Option<StoredObject>,
    /// Whether it is no job of the platform's: it asks for failed items of one.
    is_follow_up: bool,
    /// Whether the job is in the platform's own count for sure, if it lists it as completed.
    is_counted: bool,
    /// Keys that the row's result may have.
    pub(super) keys: Vec<String>,
}

impl Row {
    pub(super) fn of(entry: &Entry, now: Timestamp) -> Self {
        let (reason, object) = match &entry.state {
            State::Stored { result } => (None, Some(result.clone())),
            State::Dead { reason, result, .. } => (Some(*reason), result.clone()),
            _ => (None, None),
        };
        let keys = match &object {
            Some(object) => vec![object.key.clone()],
            None => super::objects::keys_of(entry),
        };
        Self {
            state: entry.state.name(),
            reason,
            due_at: entry.due_at,
            object,
            is_follow_up: entry.follow_up.is_some(),
            is_counted: is_counted(entry, now),
            keys,
        }
    }

    fn described(&self) -> String {
        match self.reason {
            Some(reason) => format!("{} ({reason})", self.state),
            None => self.state.to_string(),
        }
    }
}

/// Something that looks wrong, until it is read once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Suspicion {
    pub(super) key: JobKey,
    pub(super) discrepancy: Discrepancy,
}

pub(super) struct Books {
    pub(super) period: Period,
    rows: BTreeMap<JobKey, Row>,
    listed: BTreeMap<JobKey, JobStatus>,
    /// Jobs that a delivery log says have settled.
    logged: BTreeSet<JobKey>,
    /// Listed extract jobs that are in the platform's own count for sure.
    pub(super) counted: u64,
}

impl Books {
    pub(super) const fn new(period: Period) -> Self {
        Self {
            period,
            rows: BTreeMap::new(),
            listed: BTreeMap::new(),
            logged: BTreeSet::new(),
            counted: 0,
        }
    }

    /// Notes a row as it was last read; `None` if there is none.
    pub(super) fn row(&mut self, key: &JobKey, row: Option<Row>) {
        match row {
            Some(row) => self.rows.insert(key.clone(), row),
            None => self.rows.remove(key),
        };
    }

    /// Notes a listed job; whether it is new.
    pub(super) fn list(&mut self, key: JobKey, status: JobStatus) -> bool {
        self.listed.insert(key, status).is_none()
    }

    pub(super) fn log(&mut self, key: JobKey) {
        self.logged.insert(key);
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (&JobKey, &Row)> {
        self.rows.iter()
    }

    /// Whatever looks wrong.
    pub(super) fn suspicions(&self, now: Timestamp, limits: &Limits) -> Vec<Suspicion> {
        let keys: BTreeSet<_> =
            self.rows.keys().chain(self.listed.keys()).chain(&self.logged).collect();
        let suspect = |key: &&JobKey| {
            let discrepancy = self.judge(key, now, limits)?;
            Some(Suspicion { key: (*key).clone(), discrepancy })
        };
        keys.iter().filter_map(suspect).collect()
    }

    /// How the sources disagree about a job.
    pub(super) fn judge(
        &self,
        key: &JobKey,
        now: Timestamp,
        limits: &Limits,
    ) -> Option<Discrepancy> {
        let status = self.listed.get(key);
        let Some(row) = self.rows.get(key) else {
            // An unfinished job is owed to nobody yet.
            let has_settled = status.is_none_or(JobStatus::is_terminal);
            return has_settled.then_some(Discrepancy::UnknownJob);
        };
        if row.due_at.is_some_and(|due_at| is_overdue(due_at, now, limits)) {
            return Some(Discrepancy::Overdue);
        }
        let differs = match (row.state, status?) {
            (StateName::Stored, status) => {
                matches!(
                    status,
                    JobStatus::Failed
                        | JobStatus::Cancelled
                        | JobStatus::Queued
                        | JobStatus::Processing
                )
            }
            (StateName::Superseded, JobStatus::Completed) => true,
            (StateName::Dead, JobStatus::Completed) => row.reason.is_some_and(has_no_result),
            _ => false,
        };
        differs.then_some(Discrepancy::StateDiffers)
    }

    /// What disagrees about a job, in words.
    pub(super) fn facts(&self, key: &JobKey) -> String {
        let ledger = self.rows.get(key).map_or_else(
            || "the ledger does not know it".to_owned(),
            |row| match row.due_at {
                Some(due_at) => {
                    format!("the ledger has it as {}, due {due_at:.0}", row.described())
                }
                None => format!("the ledger has it as {}", row.described()),
            },
        );
        let platform = match self.listed.get(key) {
            Some(status) => format!("the platform lists it as {}", status.as_str()),
            None if self.logged.contains(key) => "a delivery log names it".to_owned(),
            None => "the platform does not list it".to_owned(),
        };
        format!("{platform}; {ledger}")
    }

    /// Writes the sums.
    pub(super) fn close(&mut self, sheet: &mut Sheet) {
        for (key, status) in &self.listed {
            let row = self.rows.get(key);
            let is_counted = row.is_some_and(|row| row.is_counted);
            self.counted += u64::from(*status == JobStatus::Completed && is_counted);
            let row = row.map(|row| row.state);
            let kind = sheet.kind(key.kind);
            kind.listed += 1;
            *kind.statuses.entry(status.as_str().to_owned()).or_default() += 1;
            match row {
                Some(state) => *kind.ledger.entry(state).or_default() += 1,
                None => kind.unknown += 1,
            }
        }
        let is_missed =
            |key: &JobKey, row: &Row| !row.is_follow_up && !self.listed.contains_key(key);
        for (key, _) in self.rows.iter().filter(|(key, row)| is_missed(key, row)) {
            sheet.kind(key.kind).unlisted += 1;
        }
    }
}

/// Whether a row's job is in the platform's own count for sure.
fn is_counted(entry: &Entry, now: Timestamp) -> bool {
    let created_at = entry.job_created_at.unwrap_or(entry.first_seen);
    let is_stored = entry.state.name() == StateName::Stored && entry.key.kind == Kind::Extract;
    let stored_at = entry.history.last().map(|last| last.at);
    is_stored && stored_at.is_some_and(|at| super::outside::is_counted(created_at, at, now))
}

/// Whether an entry that died for this reason says that the platform has no result. The others say
/// why a result that exists is not stored, and were reported when they were written.
const fn has_no_result(reason: DeadReason) -> bool {
    match reason {
        DeadReason::Failed
        | DeadReason::ResubmitsExhausted
        | DeadReason::UnlinkedFailure
        | DeadReason::ResubmitRefused
        | DeadReason::Ambiguous
        | DeadReason::Cancelled
        | DeadReason::Gone
        | DeadReason::NeverSettled
        | DeadReason::Poison
        | DeadReason::Denied => true,
        DeadReason::TooLarge
        | DeadReason::CorruptObject
        | DeadReason::Inconsistent
        | DeadReason::Discarded => false,
    }
}
