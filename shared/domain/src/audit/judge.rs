//! How the sources disagree about one job.

use super::Discrepancy;
use crate::entry::{DeadReason, Entry, State, StateName};
use crate::job::{JobStatus, Kind};
use crate::limits::Limits;
use crate::time::Timestamp;

/// What an audit keeps of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) state: StateName,
    reason: Option<DeadReason>,
    /// Whether nobody has looked at it when somebody should have.
    pub(super) is_overdue: bool,
    /// Whether it is no job of the platform's: it asks for failed items of one.
    pub(super) is_follow_up: bool,
    /// Whether the job is in the platform's own count for sure, if it lists it as completed.
    pub(super) is_counted: bool,
}

impl Row {
    pub(super) fn of(entry: &Entry, now: Timestamp, limits: &Limits) -> Self {
        Self {
            state: entry.state.name(),
            reason: reason_of(entry),
            is_overdue: is_overdue(entry, now, limits),
            is_follow_up: entry.follow_up.is_some(),
            is_counted: is_counted(entry, now),
        }
    }
}

/// What an audit keeps of the platform's word about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    Open,
    Completed,
    /// Failed or cancelled.
    Ended,
    /// Something that this version does not know.
    Unknown,
}

impl Listing {
    pub(super) const fn of(status: &JobStatus) -> Self {
        match status {
            JobStatus::Queued | JobStatus::Processing => Self::Open,
            JobStatus::Completed => Self::Completed,
            JobStatus::Failed | JobStatus::Cancelled => Self::Ended,
            JobStatus::Unknown(_) => Self::Unknown,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "unfinished",
            Self::Completed => "completed",
            Self::Ended => "failed or cancelled",
            Self::Unknown => "something unknown",
        }
    }
}

/// How a job's row and the platform's list disagree.
pub(super) fn judge(row: Option<Row>, listing: Listing) -> Option<Discrepancy> {
    let Some(row) = row else {
        // An unfinished job is owed to nobody yet.
        let has_ended = matches!(listing, Listing::Completed | Listing::Ended);
        return has_ended.then_some(Discrepancy::UnknownJob);
    };
    let differs = match (row.state, listing) {
        (StateName::Stored, Listing::Ended | Listing::Open)
        | (StateName::Superseded, Listing::Completed) => true,
        (StateName::Dead, Listing::Completed) => row.reason.is_some_and(has_no_result),
        _ => false,
    };
    differs.then_some(Discrepancy::StateDiffers)
}

/// Whether nobody has looked at a row when somebody should have.
pub(super) fn is_overdue(entry: &Entry, now: Timestamp, limits: &Limits) -> bool {
    entry.due_at.is_some_and(|due_at| super::is_overdue(due_at, now, limits))
}

/// Whether a row's job is in the platform's own count for sure.
fn is_counted(entry: &Entry, now: Timestamp) -> bool {
    let is_stored = entry.state.name() == StateName::Stored && entry.key.kind == Kind::Extract;
    let stored_at = entry.history.last().map(|last| last.at);
    let created_at = super::rows::created_at(entry);
    is_stored && stored_at.is_some_and(|at| super::outside::is_counted(created_at, at, now))
}

fn reason_of(entry: &Entry) -> Option<DeadReason> {
    match &entry.state {
        State::Dead { reason, .. } => Some(*reason),
        _ => None,
    }
}

/// Where the platform named a job.
#[derive(Debug, Clone, Copy)]
pub(super) enum Named<'a> {
    /// In its list, with this status.
    Listed(&'a str),
    /// In a delivery log.
    Logged,
    /// Nowhere.
    Nowhere,
}

impl From<Option<Listing>> for Named<'_> {
    fn from(listing: Option<Listing>) -> Self {
        listing.map_or(Self::Nowhere, |listing| Self::Listed(listing.as_str()))
    }
}

/// What disagrees about a job, in words.
pub(super) fn facts(named: Named<'_>, entry: Option<&Entry>) -> String {
    let platform = match named {
        Named::Listed(status) => format!("the platform lists it as {status}"),
        Named::Logged => "a delivery log names it".to_owned(),
        Named::Nowhere => "the platform does not list it".to_owned(),
    };
    let Some(entry) = entry else { return format!("{platform}; the ledger does not know it") };
    let state = entry.state.name();
    let reason = reason_of(entry).map(|reason| format!(" ({reason})")).unwrap_or_default();
    let due = entry.due_at.map(|due_at| format!(", due {due_at:.0}")).unwrap_or_default();
    format!("{platform}; the ledger has it as {state}{reason}{due}")
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
