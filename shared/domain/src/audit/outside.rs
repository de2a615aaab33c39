//! The account's statistics, as an outside check.
//!
//! What they count is known in part only: see [`crate::ports::Statistics`]. Jobs beside those of the
//! period may be in them, so that a count which is larger than the books says nothing. One that is
//! smaller does, if every job that is held against it ended long ago, and within the time that the
//! statistics are known to reach back.

use std::time::Duration;

use super::books::Books;
use super::{Discrepancy, Outside, OutsideVerdict, Period, Sheet};
use crate::job::{JobStatus, Kind};
use crate::ports::{Counted, Statistics};
use crate::subscribe::Account;
use crate::time::{Timestamp, before, start_of, utc_date};

/// Longest time that the count may lag behind a job's end: its figures are of whole days.
const LAG: Duration = Duration::from_hours(24);
/// How far back the count reaches for sure: 30 days are its default, less one for its edge.
const REACH: Duration = Duration::from_hours(29 * 24);
/// How much earlier the count begins: whole days may be counted, and not those of UTC.
const EARLIER: Duration = Duration::from_hours(24);

/// Whether a job that was created and has ended then is in the count for sure.
pub(super) fn is_counted(created_at: Timestamp, ended_at: Timestamp, now: Timestamp) -> bool {
    created_at >= before(now, REACH) && ended_at <= before(now, LAG)
}

/// Asks for the count and holds the books against it. The lists were read before: whatever they hold
/// had ended by then.
pub(super) async fn check(
    account: Account<'_>,
    statistics: &dyn Statistics,
    books: &Books,
    sheet: &mut Sheet,
) {
    let from = counted_from(books.period, account.clock.now());
    let finished = finished(sheet);
    let counted = account.patiently(|| statistics.counted_since(from, account.within)).await;
    let outside = match counted {
        Ok(counted) => {
            let verdict = judge(&counted, books.counted, finished);
            Outside { from, counted: Some(counted), finished, verdict }
        }
        Err(error) => {
            let verdict = OutsideVerdict::NotJudged(format!("they cannot be read: {error}"));
            Outside { from, counted: None, finished, verdict }
        }
    };
    if let (Some(counted), OutsideVerdict::Short) = (outside.counted, &outside.verdict) {
        let facts = format!(
            "the platform counts {} requests since {from:.0}, and lists {} finished jobs since then \
             that are stored for more than a day",
            counted.most(),
            books.counted
        );
        sheet.find(Discrepancy::StatisticsDiffer, None, facts);
    }
    sheet.outside = Some(outside);
}

/// The beginning of the time that is counted.
fn counted_from(period: Period, now: Timestamp) -> Timestamp {
    start_of(utc_date(before(period.from.max(before(now, REACH)), EARLIER)))
}

/// Extract jobs that the platform lists as completed. The pages of batches and crawls may be
/// counted or not, and so may failures that were tried again.
fn finished(sheet: &Sheet) -> u64 {
    let statuses = sheet.kinds.get(&Kind::Extract).map(|kind| &kind.statuses);
    let completed = statuses.and_then(|statuses| statuses.get(JobStatus::Completed.as_str()));
    completed.copied().unwrap_or(0)
}

/// Holds a count against the jobs that must be in it, and against all that may be.
fn judge(counted: &Counted, due: u64, finished: u64) -> OutsideVerdict {
    let most = counted.most();
    if most < due && counted.unreadable == 0 {
        return OutsideVerdict::Short;
    }
    if finished == 0 {
        return OutsideVerdict::NotJudged("no extract job of the period has completed".to_owned());
    }
    if most >= finished {
        return OutsideVerdict::Agrees;
    }
    let missing = finished - most;
    let reason = match counted.unreadable {
        0 => {
            "jobs of the last day, or from before the time that they reach back to, may be missing"
        }
        _ => "days among them cannot be read",
    };
    OutsideVerdict::NotJudged(format!("they are {missing} short: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(succeeded: u64, failed: u64, extractions: Option<u64>) -> Counted {
        Counted { succeeded, failed, extractions, unreadable: 0 }
    }

    #[test]
    fn a_count_is_short_only_of_jobs_that_must_be_in_it() {
        for (counted, due, finished, wanted) in [
            (counted(10, 0, None), 10, 10, OutsideVerdict::Agrees),
            // Jobs of others, and what is counted beside jobs.
            (counted(500, 20, Some(520)), 10, 10, OutsideVerdict::Agrees),
            // Whichever count is the largest: some of them may leave something out.
            (counted(0, 0, Some(10)), 10, 10, OutsideVerdict::Agrees),
            (counted(4, 6, Some(4)), 10, 10, OutsideVerdict::Agrees),
            (counted(8, 1, Some(9)), 10, 10, OutsideVerdict::Short),
            (counted(0, 0, None), 1, 1, OutsideVerdict::Short),
        ] {
            assert_eq!(judge(&counted, due, finished), wanted, "{counted:?}");
        }
    }

    #[test]
    fn what_cannot_be_judged_says_why() {
        for (counted, due, finished, wanted) in [
            (counted(0, 0, None), 0, 0, "no extract job"),
            (counted(7, 0, None), 7, 9, "they are 2 short: jobs of the last day"),
            (Counted { unreadable: 1, ..counted(7, 0, None) }, 9, 9, "days among them"),
        ] {
            let OutsideVerdict::NotJudged(reason) = judge(&counted, due, finished) else {
                panic!("{counted:?}")
            };
            assert!(reason.contains(wanted), "{reason}");
        }
    }
}
