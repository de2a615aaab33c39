use std::time::Duration;

use super::*;
use crate::entry::{Cause, State};
use crate::limits::Policies;

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn limits() -> Limits {
    let policies = Policies { resubmit_unlinked: false, resubmit_failed_items: true };
    Limits { policies, ..Limits::default() }
}

fn key(kind: Kind, id: &str) -> JobKey {
    JobKey::new(kind, JobId::parse(id).unwrap())
}

fn parent(attempt: u32) -> Entry {
    let key = key(Kind::Crawl, "b");
    let link = Link {
        submission: "s-1".to_owned(),
        lineage: JobId::parse("root").unwrap(),
        attempt,
        base: 0,
        request: None,
        reference: Some("my-ref".to_owned()),
    };
    Entry::expected(key, Some(link), Cause::Submit, now(), &limits())
}

fn failed(items: &[(&str, &str)]) -> Vec<FailedItem> {
    let item = |(url, code): &(&str, &str)| FailedItem {
        key: (*url).to_owned(),
        url: (*url).to_owned(),
        code: (*code).to_owned(),
        message: String::new(),
    };
    items.iter().map(item).collect()
}

fn asked(parent: &Entry, failed: &[FailedItem]) -> Option<(Entry, usize, usize)> {
    let options = FetchOptions { render_js: true, ..FetchOptions::default() };
    match plan(parent, failed, Some(&options), now(), &limits()) {
        Plan::Ask { row, items, left } => Some((*row, items, left)),
        Plan::Nothing | Plan::Capped { .. } => None,
    }
}

#[test]
fn items_that_may_succeed_are_asked_for_in_one_batch() {
    let items = failed(&[
        ("https://example.com/a", "TIMEOUT"),
        ("https://example.com/b", "PERMANENT_BLOCK"),
        ("https://example.com/a", "PROXY_ERROR"),
        ("https://example.com/c", "SOMETHING_NEW"),
        ("not a url", "TIMEOUT"),
    ]);
    let (row, items, left) = asked(&parent(1), &items).unwrap();
    assert_eq!((items, left), (2, 1), "what cannot be asked for is left");
    assert_eq!((&row.state, row.key.kind), (&State::Received, Kind::Batch));
    assert_eq!(row.follow_up, Some(key(Kind::Crawl, "b")));
    assert!(row.due_at.is_some() && row.expires_at.is_none());
    let link = row.link.unwrap();
    assert_eq!((link.submission.as_str(), link.lineage.as_str()), ("s-1", "root"));
    assert_eq!((link.attempt, link.reference.as_deref()), (1, Some("my-ref")));
    let Some(JobRequest::Batch { urls, options }) = link.request else { panic!() };
    assert_eq!(urls, ["https://example.com/a"; 2]);
    assert!(options.render_js);
}

#[test]
fn nothing_is_asked_for_where_nothing_may_succeed_or_be_known() {
    let final_ones = failed(&[("https://example.com/a", "PERMANENT_BLOCK")]);
    assert_eq!(asked(&parent(0), &final_ones), None);
    assert_eq!(asked(&parent(0), &[]), None);
    let items = failed(&[("https://example.com/a", "TIMEOUT")]);
    assert_eq!(plan(&parent(0), &items, None, now(), &limits()), Plan::Nothing);
}

/// WK-13: the lineage's attempts are counted, also after a redrive.
#[test]
fn a_lineage_is_followed_up_only_so_often() {
    let items = failed(&[("https://example.com/a", "TIMEOUT")]);
    let most = limits().resubmits_max;
    assert!(asked(&parent(most - 1), &items).is_some());
    let options = FetchOptions::default();
    let mut capped = parent(most);
    let planned = plan(&capped, &items, Some(&options), now(), &limits());
    assert_eq!(planned, Plan::Capped { items: 1 });
    capped.link.as_mut().unwrap().base = 1;
    assert!(asked(&capped, &items).is_some());
}

/// A parent that was not submitted from here is followed up only where the other policy says so, as
/// long as it is fresh.
#[test]
fn a_strangers_items_need_the_other_policy_and_freshness() {
    let items = failed(&[("https://example.com/a", "TIMEOUT")]);
    let options = FetchOptions::default();
    let mut limits = limits();
    let mut parent = Entry { link: None, ..parent(0) };
    for (policy, age, is_asked) in [
        (false, Some(0), false),
        (true, Some(0), true),
        (true, Some(47), true),
        (true, Some(48), false),
        (true, None, false),
    ] {
        limits.policies.resubmit_unlinked = policy;
        parent.job_created_at =
            age.map(|hours| crate::time::before(now(), Duration::from_hours(hours)));
        let planned = plan(&parent, &items, Some(&options), now(), &limits);
        assert_eq!(matches!(planned, Plan::Ask { .. }), is_asked, "{policy} {age:?}");
        if let Plan::Ask { row, .. } = planned {
            let link = row.link.unwrap();
            assert_eq!((link.lineage, link.attempt), (parent.key.job_id.clone(), 0));
        }
    }
}

/// As many as a batch may hold, by number and by bytes; the others are told.
#[test]
fn a_batch_is_filled_to_its_bounds() {
    let count = |count: usize, length: usize| {
        let urls: Vec<_> = (0..count)
            .map(|number| format!("https://example.com/{number:05}{}", "x".repeat(length)))
            .collect();
        let items: Vec<_> = urls.iter().map(|url| (url.as_str(), "TIMEOUT")).collect();
        let (row, items, left) = asked(&parent(0), &failed(&items)).unwrap();
        assert!(serde_json::to_string(&row).unwrap().len() < 400_000);
        (items, left)
    };
    assert_eq!(count(1_000, 0), (1_000, 0));
    assert_eq!(count(1_001, 0), (1_000, 1));
    let (items, left) = count(1_000, 500);
    assert_eq!(items, BATCH_BYTES_MAX / 528);
    assert_eq!(items + left, 1_000);
}

/// The key is the same each time, and no id is too long for it.
#[test]
fn a_parent_has_one_follow_up() {
    let of = |kind, id: &str| key_of(&key(kind, id));
    assert_eq!(of(Kind::Batch, "b"), of(Kind::Batch, "b"));
    assert_ne!(of(Kind::Batch, "b"), of(Kind::Crawl, "b"));
    assert_ne!(of(Kind::Batch, "b"), of(Kind::Batch, "c"));
    let longest = of(Kind::Crawl, &"\"".repeat(128));
    assert!(longest.job_id.as_str().starts_with("follow-up-"));
    assert_eq!(longest.job_id.as_str().len(), 42);
    let own = own_link(&key(Kind::Extract, &"\"".repeat(128)), None);
    assert!(own.submission.len() <= 256 && own.submission.starts_with("unlinked-extract-"));
}
