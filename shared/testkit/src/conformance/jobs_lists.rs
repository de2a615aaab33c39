//! [`domain::ports::Jobs`]: job lists.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::job::{JobId, JobStatus, Kind};
use domain::limits::LIST_PAGE_MAX;
use domain::ports::ListQuery;
use domain::time::Timestamp;

use super::jobs::{WITHIN, accept, list, list_all, one_of_each_kind, query, submit};
use super::jobs_subject::{Fate, JobsSubject};
use super::samples::extract_request;

/// Longer than any list lags behind.
const LAG: Duration = Duration::from_mins(1);

async fn submit_many(subject: &JobsSubject, count: u32) -> BTreeSet<JobId> {
    let mut ids = BTreeSet::new();
    for number in 0..count {
        let request = extract_request(&format!("https://example.com/{number}"));
        assert!(ids.insert(submit(subject, &request).await.job_id), "an id twice");
    }
    subject.platform.pass(LAG);
    ids
}

async fn page_len(subject: &JobsSubject, page: u32) -> usize {
    let query = ListQuery { page, ..query(LIST_PAGE_MAX) };
    subject.jobs().list(Kind::Extract, &query, WITHIN).await.unwrap().jobs.len()
}

/// A list without jobs is an empty page, on every page.
pub async fn an_empty_list_is_an_empty_page(subject: &JobsSubject) {
    for kind in Kind::ALL {
        for page in [1, 2, 1_000] {
            let query = ListQuery { page, ..query(LIST_PAGE_MAX) };
            assert!(subject.jobs().list(kind, &query, WITHIN).await.unwrap().is_empty(), "{kind}");
        }
    }
}

/// A full page is followed by an empty one; one job more is on a page of its own.
pub async fn a_full_page_and_one_job_more(subject: &JobsSubject) {
    submit_many(subject, LIST_PAGE_MAX).await;
    assert_eq!((page_len(subject, 1).await, page_len(subject, 2).await), (100, 0));
    submit_many(subject, 1).await;
    assert_eq!((page_len(subject, 1).await, page_len(subject, 2).await), (100, 1));
    assert_eq!(page_len(subject, 3).await, 0);
}

/// Pages of every size hold each job once.
pub async fn pages_hold_each_job_once(subject: &JobsSubject) {
    let ids = submit_many(subject, 23).await;
    for size in [1, 2, 7, 22, 23, 24, LIST_PAGE_MAX] {
        let listed = list(subject, Kind::Extract, &query(size)).await;
        assert_eq!(listed.len(), ids.len(), "pages of {size}");
        let listed: BTreeSet<_> = listed.into_iter().map(|job| job.job_id).collect();
        assert_eq!(listed, ids, "pages of {size}");
    }
}

/// A window holds the jobs that were created at its ends, and none beyond.
pub async fn both_ends_of_a_window_are_in_it(subject: &JobsSubject) {
    let mut created = Vec::new();
    for number in 0..3 {
        let request = extract_request(&format!("https://example.com/{number}"));
        let key = submit(subject, &request).await;
        subject.platform.pass(LAG);
        let listed = list_all(subject, Kind::Extract).await;
        let job = listed.into_iter().find(|job| job.job_id == key.job_id).unwrap();
        created.push(job.created_at.unwrap());
    }
    let [first, second, third] = [created[0], created[1], created[2]];
    let millis =
        |at: Timestamp, by: i64| Timestamp::from_millisecond(at.as_millisecond() + by).unwrap();
    for (created_from, created_to, expected) in [
        (None, None, 3),
        (Some(first), Some(third), 3),
        (Some(first), Some(first), 1),
        (Some(second), None, 2),
        (None, Some(second), 2),
        (Some(millis(first, 1)), Some(millis(third, -1)), 1),
        (Some(millis(second, 1)), Some(millis(third, -1)), 0),
        (Some(millis(third, 1)), None, 0),
        (None, Some(millis(first, -1)), 0),
        (Some(third), Some(first), 0),
    ] {
        let query = ListQuery { created_from, created_to, ..query(2) };
        let found = list(subject, Kind::Extract, &query).await;
        assert_eq!(found.len(), expected, "{created_from:?} to {created_to:?}");
        for job in found {
            let at = job.created_at.unwrap();
            assert!(created_from.is_none_or(|from| from <= at));
            assert!(created_to.is_none_or(|to| at <= to));
        }
    }
}

/// Each kind has a list of its own.
pub async fn kinds_do_not_mix(subject: &JobsSubject) {
    for (request, number) in one_of_each_kind().iter().zip(1..) {
        let key = accept(subject, request, Fate::Completed).await;
        let mut total = 0;
        for kind in Kind::ALL {
            let listed = list_all(subject, kind).await;
            let is_there = listed.iter().any(|job| job.job_id == key.job_id);
            assert_eq!(is_there, kind == key.kind, "{key} in the list of {kind}");
            total += listed.len();
        }
        assert_eq!(total, number);
    }
}

/// A list tells the status of now.
pub async fn a_list_tells_how_a_job_ended(subject: &JobsSubject) {
    for (fate, status) in
        [(Fate::Completed, JobStatus::Completed), (Fate::FailedFinal, JobStatus::Failed)]
    {
        for request in one_of_each_kind() {
            let key = accept(subject, &request, fate).await;
            let listed = list_all(subject, key.kind).await;
            let job = listed.into_iter().find(|job| job.job_id == key.job_id).unwrap();
            assert_eq!(job.status, status, "{key}");
        }
    }
}
