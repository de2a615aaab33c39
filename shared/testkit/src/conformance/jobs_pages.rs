//! [`domain::ports::Jobs`]: pages of results of batches and crawls.

use std::collections::BTreeSet;

use domain::job::{JobKey, JobStatus, Kind};
use domain::limits::RESULT_PAGE_MAX;
use domain::ports::{ApiErrorKind, Item, PageRequest};
use domain::request::JobRequest;
use serde_json::Value;

use super::jobs::{PAGES_MAX, WITHIN, accept, batch_request, crawl_request, page};
use super::jobs_subject::{Fate, JobsSubject};

fn parents(parts: u32) -> [JobRequest; 2] {
    [batch_request(parts), crawl_request(parts)]
}

/// All parts, page by page, until one is empty.
async fn walk(subject: &JobsSubject, key: &JobKey, page_size: u32) -> Vec<Item> {
    let mut items = Vec::new();
    for number in 1..=PAGES_MAX {
        let found = page(subject, key, number, page_size).await.unwrap();
        let found = found.items.expect("a finished job has results");
        assert!(found.len() <= usize::try_from(page_size).unwrap());
        if found.is_empty() {
            return items;
        }
        items.extend(found);
    }
    panic!("{key} has no end")
}

/// Pages of every size hold each part once, also where the last page is exactly full.
pub async fn pages_hold_each_part_once(subject: &JobsSubject) {
    for (parts, sizes) in [
        (1, &[1, RESULT_PAGE_MAX] as &[u32]),
        (12, &[1, 5, 6, 11, 12, 13]),
        (RESULT_PAGE_MAX, &[RESULT_PAGE_MAX, RESULT_PAGE_MAX - 1]),
        (RESULT_PAGE_MAX + 1, &[RESULT_PAGE_MAX]),
        (120, &[7, 40, RESULT_PAGE_MAX]),
    ] {
        for request in parents(parts) {
            let key = accept(subject, &request, Fate::Completed).await;
            for size in sizes {
                let items = walk(subject, &key, *size).await;
                let keys: BTreeSet<_> = items.iter().map(|item| item.key.as_str()).collect();
                assert_eq!(keys.len(), items.len(), "{key}: a part twice in pages of {size}");
                assert_eq!(items.len(), usize::try_from(parts).unwrap(), "{key}, {size}");
            }
        }
    }
}

/// The counters agree with the parts, on every page alike.
pub async fn counters_agree_with_the_parts(subject: &JobsSubject) {
    for request in parents(12) {
        let key = accept(subject, &request, Fate::Completed).await;
        for number in [1, 2, 3] {
            let page = page(subject, &key, number, 10).await.unwrap();
            assert_eq!(page.status, JobStatus::Completed, "{key}");
            assert_eq!((page.total, page.ran, page.pending), (Some(12), 12, 0), "{key}");
            assert_eq!(page.tokens_reserved, 0, "{key}");
        }
    }
}

/// A page beyond the end is empty, not an error and not null.
pub async fn a_page_beyond_the_end_is_empty(subject: &JobsSubject) {
    for request in parents(3) {
        let key = accept(subject, &request, Fate::Completed).await;
        for number in [2, 3, 1_000, 1_000_000] {
            let page = page(subject, &key, number, RESULT_PAGE_MAX).await.unwrap();
            assert_eq!(page.items.as_deref(), Some(&[] as &[Item]), "{key}, page {number}");
            assert_eq!(page.total, Some(3), "{key}, page {number}");
        }
    }
}

/// A part carries its whole answer, by which its key is known.
pub async fn a_part_is_verbatim(subject: &JobsSubject) {
    for request in parents(12) {
        let key = accept(subject, &request, Fate::Completed).await;
        for item in walk(subject, &key, 5).await {
            let raw: Value = serde_json::from_str(&item.raw.0).unwrap();
            assert_eq!(raw["url"], item.url.as_str(), "{key}");
            assert_eq!((item.status.as_str(), &item.error), ("completed", &None), "{key}");
            assert!(!format!("{item:?}").contains("input_index"), "{key}");
            match &request {
                JobRequest::Batch { urls, .. } => {
                    assert_eq!(raw["input_index"].to_string(), item.key, "{key}");
                    let place: usize = item.key.parse().unwrap();
                    assert_eq!(urls[place], item.url, "{key}");
                }
                JobRequest::Crawl { .. } => assert_eq!(item.key, item.url, "{key}"),
                JobRequest::Extract { .. } => unreachable!("parents only"),
            }
        }
    }
}

/// Parts that failed are parts, and say why.
pub async fn failed_parts_say_why(subject: &JobsSubject) {
    for fate in [Fate::FailedRetryable, Fate::FailedFinal] {
        let key = accept(subject, &batch_request(3), fate).await;
        let page = page(subject, &key, 1, 10).await.unwrap();
        assert_eq!(page.status, JobStatus::Failed);
        assert_eq!((page.total, page.ran, page.pending), (Some(3), 3, 0));
        let items = page.items.unwrap();
        assert_eq!(items.len(), 3);
        for item in items {
            assert_eq!(item.status, "failed");
            assert_eq!(item.error.unwrap().retryable, fate == Fate::FailedRetryable);
        }
    }
}

/// A batch or crawl that vanished is missing on every page.
pub async fn a_vanished_parent_is_missing(subject: &JobsSubject) {
    if !subject.caps.fates.contains(&Fate::Vanished) {
        return;
    }
    for request in parents(3) {
        let key = accept(subject, &request, Fate::Vanished).await;
        assert!(matches!(key.kind, Kind::Batch | Kind::Crawl));
        for number in [1, 2] {
            let error = page(subject, &key, number, 10).await.unwrap_err();
            assert_eq!(error.kind, ApiErrorKind::Missing, "{key}");
        }
    }
}

/// A batch or crawl that does not end is never called ended, whatever its parts do.
pub async fn an_unfinished_parent_is_not_terminal(subject: &JobsSubject) {
    if !subject.caps.fates.contains(&Fate::Unfinished) {
        return;
    }
    for request in parents(3) {
        let key = accept(subject, &request, Fate::Unfinished).await;
        let page = page(subject, &key, 1, 10).await.unwrap();
        assert!(!page.status.is_terminal(), "{key}: {:?}", page.status);
    }
}

/// A page that exceeds the limit on answers asks for a smaller one, which holds what it must.
pub async fn a_page_that_is_too_large_is_read_in_smaller_ones(subject: &JobsSubject) {
    let Some(jobs) = subject.platform.limited() else { return };
    for request in parents(40) {
        let key = accept(subject, &request, Fate::Completed).await;
        let whole = PageRequest { page: 1, page_size: 40 };
        let error = jobs.parent(&key, whole, WITHIN).await.unwrap_err();
        assert_eq!(error.kind, ApiErrorKind::TooLarge, "{key}");
        for page in [1, 40] {
            let single = PageRequest { page, page_size: 1 };
            let page = jobs.parent(&key, single, WITHIN).await.unwrap();
            assert_eq!(page.items.unwrap().len(), 1, "{key}");
        }
    }
}
