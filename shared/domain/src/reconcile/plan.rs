//! What is to be done about a listed job: decided from the list's entry and the ledger's row alone.

use crate::entry::{Entry, StateName};
use crate::job::{JobKey, JobStatus};
use crate::ports::Listed;
use crate::time::Timestamp;

/// A listed job, and what is to be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The job.
    pub key: JobKey,
    /// How the list says it stands.
    pub status: JobStatus,
    /// When it was created, as the list says.
    pub created_at: Option<Timestamp>,
    /// How the ledger's row stands; `None` if the ledger does not know the job.
    pub row: Option<StateName>,
    /// What is to be done.
    pub step: Step,
}

/// What is to be done about a job that the platform speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// It has finished and the ledger does not know that: it is announced.
    Announce,
    /// It is open and the ledger does not know it: it is expected from now on.
    Expect,
    /// The ledger has it: nothing.
    Known,
    /// It is older than what the ledger remembers: it may have been forgotten, and stays so.
    Forgotten,
    /// Its delivery is still under way: nothing yet.
    Wait,
}

impl Step {
    /// The step in tables and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Announce => "announce",
            Self::Expect => "expect",
            Self::Known => "known",
            Self::Forgotten => "forgotten",
            Self::Wait => "wait",
        }
    }
}

/// Decides about a job of which a list or log gives `status`. A job of unknown age is looked at.
pub(crate) fn judge(
    status: &JobStatus,
    created_at: Option<Timestamp>,
    row: Option<&Entry>,
    remembered_from: Timestamp,
    now: Timestamp,
) -> Step {
    let is_old = created_at.is_some_and(|created_at| created_at < remembered_from);
    match row.filter(|row| !row.is_expired(now)) {
        Some(row) if status.is_terminal() && row.is_moved_by_word() => Step::Announce,
        Some(_) => Step::Known,
        None if is_old => Step::Forgotten,
        None if status.is_terminal() => Step::Announce,
        // Also a status that this version does not know: the sweep looks, and loses nothing.
        None => Step::Expect,
    }
}

impl Found {
    pub(super) fn of(
        key: JobKey,
        listed: &Listed,
        row: Option<&Entry>,
        remembered_from: Timestamp,
        now: Timestamp,
    ) -> Self {
        Self {
            key,
            status: listed.status.clone(),
            created_at: listed.created_at,
            row: row.filter(|row| !row.is_expired(now)).map(|row| row.state.name()),
            step: judge(&listed.status, listed.created_at, row, remembered_from, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::entry::{Cause, Counters, DeadReason, State, StoredObject};
    use crate::limits::{Limits, REOPENS_MAX};
    use crate::post::Post;
    use crate::time::{after, before};
    use crate::work::tests::rig::extract;

    fn now() -> Timestamp {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    fn row(state: State) -> Entry {
        let limits = Limits::default();
        let row = Entry::expected(extract("a"), None, Cause::Submit, now(), &limits);
        if state.is_terminal() {
            return row.settled(state, Cause::Work, now(), &limits);
        }
        Entry { state, ..row }
    }

    fn dead(reason: DeadReason) -> State {
        State::Dead { reason, error: None, result: None }
    }

    fn stored() -> State {
        let (key, sha256) = ("k".to_owned(), "00".to_owned());
        State::Stored {
            result: StoredObject { key, bytes: 1, sha256, empty: false, unsettled: false },
        }
    }

    fn step(status: &str, age: Option<Duration>, row: Option<&Entry>) -> Step {
        let created_at = age.map(|age| before(now(), age));
        let from = before(now(), Duration::from_hours(24));
        judge(&JobStatus::from_api(status), created_at, row, from, now())
    }

    const YOUNG: Option<Duration> = Some(Duration::from_hours(1));
    const OLD: Option<Duration> = Some(Duration::from_hours(25));

    /// All five statuses and one that nobody knows; SC-12: a job of unknown age is old enough.
    #[test]
    fn a_job_that_nobody_knows_is_announced_or_expected_by_its_status() {
        for age in [YOUNG, None] {
            for status in ["completed", "failed", "cancelled"] {
                assert_eq!(step(status, age, None), Step::Announce, "{status}");
            }
            for status in ["queued", "processing", "brand-new"] {
                assert_eq!(step(status, age, None), Step::Expect, "{status}");
            }
        }
        assert_eq!(step("completed", OLD, None), Step::Forgotten);
        assert_eq!(step("queued", OLD, None), Step::Forgotten);
    }

    /// SC-01, SC-13: what the ledger has is left to whoever has it, but for a job that nobody has
    /// announced yet, and one that was thought not to exist.
    #[test]
    fn a_finished_job_is_news_to_some_rows_only() {
        let post = Post::first("t".to_owned(), now(), &Limits::default());
        for (state, expected) in [
            (State::Expected, Step::Announce),
            (State::Received, Step::Known),
            (State::Resubmitting { post }, Step::Known),
            (stored(), Step::Known),
            (State::Superseded { by: extract("b").job_id }, Step::Known),
            (dead(DeadReason::Gone), Step::Announce),
            (dead(DeadReason::NeverSettled), Step::Announce),
            (dead(DeadReason::Failed), Step::Known),
            (dead(DeadReason::Poison), Step::Known),
        ] {
            let row = row(state.clone());
            assert_eq!(step("completed", YOUNG, Some(&row)), expected, "{state:?}");
            assert_eq!(step("processing", YOUNG, Some(&row)), Step::Known, "{state:?}");
            // The row is there, so that the job was not forgotten, however old it is.
            assert_eq!(step("completed", OLD, Some(&row)), expected, "{state:?}");
        }
    }

    #[test]
    fn a_job_is_brought_back_a_few_times_only() {
        let mut row = row(dead(DeadReason::Gone));
        row.counters = Counters { reopens: REOPENS_MAX, ..Counters::default() };
        assert_eq!(step("completed", YOUNG, Some(&row)), Step::Known);
    }

    /// A row whose time has passed counts as absent: what is forgotten stays so by its age alone.
    #[test]
    fn an_expired_row_is_no_row() {
        let mut row = row(stored());
        row.expires_at = Some(now().as_second());
        assert_eq!(step("completed", YOUNG, Some(&row)), Step::Announce);
        assert_eq!(step("completed", OLD, Some(&row)), Step::Forgotten);
        row.expires_at = Some(after(now(), Duration::from_secs(1)).as_second());
        assert_eq!(step("completed", YOUNG, Some(&row)), Step::Known);
    }
}
