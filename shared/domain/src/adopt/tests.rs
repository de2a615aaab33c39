use std::time::Duration;

use async_trait::async_trait;

use super::*;
use crate::job::JobStatus;
use crate::ports::{ApiError, ApiErrorKind, ExtractJob, Jobs, ListPage, ParentPage, SubmitError};
use crate::request::{FetchOptions, Format};
use crate::testing::parent_answer;
use crate::time::{Timestamp, after, before};
use crate::work::tests::rig::{
    HOUR, MINUTE, Rig, batch, crawl, error, extract, id, items, link_of, page,
};

fn post(rig: &Rig) -> Post {
    Post::first("token".into(), rig.now(), &rig.limits)
}

fn listed(name: &str, created_at: Timestamp, url: &str) -> Listed {
    Listed {
        job_id: id(name),
        status: JobStatus::Queued,
        created_at: Some(created_at),
        url: Some(url.into()),
        accepted_urls: None,
        formats: None,
        render_js: None,
    }
}

async fn find(rig: &Rig, request: &JobRequest, post: &Post, submission: &str) -> Found {
    let kind = request.kind();
    let link = |job_id: &JobId| link_of(&JobKey::new(kind, job_id.clone()), submission);
    find_lost(rig.ports(), request, post, Look::Scheduled, link).await.unwrap()
}

#[tokio::test]
async fn a_job_is_claimed_by_one_link_for_ever() {
    let rig = Rig::new();
    let key = extract("a");
    let (ours, theirs) = (link_of(&key, "ours"), link_of(&key, "theirs"));
    let claim = async |link: &Link| claim(rig.ports(), &key, link, Cause::Adopt).await.unwrap();
    assert_eq!(claim(&ours).await, Claimed::Ours);
    assert_eq!(claim(&theirs).await, Claimed::Theirs);
    assert_eq!(claim(&ours).await, Claimed::Ours);
    let mut redriven = ours.clone();
    redriven.base = 3;
    assert_eq!(claim(&redriven).await, Claimed::Ours, "a redrive moves the base only");
    let next = Link { attempt: 1, ..ours.clone() };
    assert_eq!(claim(&next).await, Claimed::Theirs);
    let another = Link { lineage: id("b"), ..ours };
    assert_eq!(claim(&another).await, Claimed::Theirs);
}

/// WK-14: what a candidate must match: kind, address in normal form, options, time window.
#[tokio::test]
async fn only_a_job_that_fits_is_adopted() {
    let rig = Rig::new();
    let options = FetchOptions {
        formats: vec![Format::Markdown, Format::Html],
        render_js: true,
        ..FetchOptions::default()
    };
    let request = JobRequest::extract("https://Example.com", options).unwrap();
    let post = post(&rig);
    let now = rig.now();
    let right = listed("x", now, "https://example.com/#top");
    let far = post.recover_from(&rig.limits);
    let both = Some(vec![Format::Html, Format::Markdown]);
    let cases = [
        (right.clone(), true),
        (Listed { formats: both.clone(), render_js: Some(true), ..right.clone() }, true),
        (Listed { formats: Some(vec![Format::Html]), ..right.clone() }, false),
        (Listed { render_js: Some(false), ..right.clone() }, false),
        (Listed { url: Some("https://example.com/other".into()), ..right.clone() }, false),
        (Listed { formats: Some(Vec::new()), ..right.clone() }, true),
        (Listed { created_at: Some(before(now, 2 * MINUTE)), ..right.clone() }, true),
        (Listed { created_at: Some(before(now, 3 * MINUTE)), ..right.clone() }, false),
        (Listed { created_at: Some(far), ..right.clone() }, true),
        (Listed { created_at: Some(after(far, MINUTE)), ..right.clone() }, false),
    ];
    for (job, fits) in cases {
        let rig = Rig::new();
        rig.clock.advance(HOUR);
        rig.jobs.list_job(Kind::Extract, job.clone());
        let found = find(&rig, &request, &post, "s").await;
        let expected = if fits { Found::Job(id("x")) } else { Found::Nothing };
        assert_eq!(found, expected, "{job:?}");
        assert_eq!(rig.ledger.entry(&extract("x")).is_some(), fits);
    }
}

/// WK-14: two intents for one address, both unanswered and both accepted: each gets one job, in
/// whatever order they look, however often.
#[tokio::test]
async fn two_unanswered_submissions_of_one_address_share_out_the_jobs() {
    let rig = Rig::new();
    let post = post(&rig);
    for name in ["x", "y"] {
        rig.jobs.list_job(Kind::Extract, listed(name, rig.now(), "https://example.com/page"));
    }
    let first = find(&rig, &page(), &post, "one").await;
    let second = find(&rig, &page(), &post, "two").await;
    assert_ne!(first, second);
    assert_eq!(find(&rig, &page(), &post, "three").await, Found::Nothing);
    assert_eq!(find(&rig, &page(), &post, "one").await, first);
    assert_eq!(find(&rig, &page(), &post, "two").await, second);
}

/// WK-14: a job that was linked before the answer was lost is the one, also when a younger one of
/// the same address is nobody's yet: that one belongs to somebody else.
#[tokio::test]
async fn a_job_that_is_linked_already_goes_before_one_that_is_free() {
    let rig = Rig::new();
    let post = post(&rig);
    let key = extract("older");
    claim(rig.ports(), &key, &link_of(&key, "ours"), Cause::Submit).await.unwrap();
    for name in ["older", "younger"] {
        rig.jobs.list_job(Kind::Extract, listed(name, rig.now(), "https://example.com/page"));
    }
    assert_eq!(find(&rig, &page(), &post, "ours").await, Found::Job(id("older")));
    assert_eq!(find(&rig, &page(), &post, "theirs").await, Found::Job(id("younger")));
}

/// WK-14: two POSTs of one address whose windows overlap each find their own job, whoever looks
/// first: the younger job lies in both windows, the older one in the first only.
#[tokio::test]
async fn each_post_takes_the_job_that_was_made_nearest_to_it() {
    for first_looks_first in [true, false] {
        let rig = Rig::new();
        let first = post(&rig);
        rig.jobs.list_job(Kind::Extract, listed("older", rig.now(), "https://example.com/page"));
        rig.clock.advance(3 * MINUTE);
        let second = post(&rig);
        rig.jobs.list_job(Kind::Extract, listed("younger", rig.now(), "https://example.com/page"));
        let mut looks = [(&first, "one", "older"), (&second, "two", "younger")];
        if !first_looks_first {
            looks.reverse();
        }
        for (post, submission, job) in looks {
            let found = find(&rig, &page(), post, submission).await;
            assert_eq!(found, Found::Job(id(job)), "{first_looks_first}");
        }
    }
}

/// WK-14: two intents, one job: the other one is proved not accepted.
#[tokio::test]
async fn a_candidate_with_an_owner_keeps_nobody_waiting() {
    let rig = Rig::new();
    let post = post(&rig);
    let request = JobRequest::batch(["https://example.com/0"], FetchOptions::default()).unwrap();
    let mut job = listed("b", rig.now(), "");
    (job.url, job.accepted_urls) = (None, Some(1));
    rig.jobs.list_job(Kind::Batch, job);
    // Unclaimed and without items, it could be ours: nobody may pay again.
    assert_eq!(find(&rig, &request, &post, "ours").await, Found::Undecided);
    let key = batch("b");
    claim(rig.ports(), &key, &link_of(&key, "theirs"), Cause::Submit).await.unwrap();
    rig.jobs.clear_calls();
    assert_eq!(find(&rig, &request, &post, "ours").await, Found::Nothing);
    assert!(rig.jobs.calls().iter().all(|call| matches!(call, crate::testing::Call::List(..))));
}

/// A batch is known by all its addresses, not by the first page of them.
#[tokio::test]
async fn a_batch_is_adopted_by_its_addresses() {
    let urls: Vec<_> = (0..120).map(|index| format!("https://example.com/{index}")).collect();
    let request =
        JobRequest::batch(urls.iter().map(String::as_str), FetchOptions::default()).unwrap();
    let key = batch("b");
    let mut other = items(0..120);
    other[119].url = "https://example.com/other".into();
    let two = Some(120);
    for (accepted, status, items, expected) in [
        (two, JobStatus::Completed, items(0..120), Found::Job(id("b"))),
        (two, JobStatus::Processing, items(0..120), Found::Job(id("b"))),
        (None, JobStatus::Completed, items(0..120), Found::Job(id("b"))),
        (two, JobStatus::Completed, other, Found::Nothing),
        (Some(121), JobStatus::Completed, items(0..120), Found::Nothing),
        // Some items are there, all of them wanted: it may yet turn out to be another batch.
        (two, JobStatus::Processing, items(0..3), Found::Undecided),
        (two, JobStatus::Queued, Vec::new(), Found::Undecided),
        (two, JobStatus::Cancelled, items(0..3), Found::Job(id("b"))),
        // Cancelled before any item ran, or finished with its items not visible yet.
        (two, JobStatus::Cancelled, Vec::new(), Found::Undecided),
        (two, JobStatus::Completed, Vec::new(), Found::Undecided),
        // Fewer were accepted: invalid ones left out, or a smaller batch. Nobody can tell.
        (Some(3), JobStatus::Completed, items(0..3), Found::Undecided),
    ] {
        let rig = Rig::new();
        let mut job = listed("b", rig.now(), "");
        (job.url, job.accepted_urls) = (None, accepted);
        rig.jobs.list_job(Kind::Batch, job);
        let count = items.len();
        rig.jobs.answer_parent(&key, Ok(parent_answer(&key, status.clone(), items)));
        let found = find(&rig, &request, &post(&rig), "s").await;
        assert_eq!(found, expected, "{accepted:?} {status:?} {count}");
    }
}

#[tokio::test]
async fn trouble_with_a_batch_decides_nothing() {
    for kind in [
        ApiErrorKind::Unavailable,
        ApiErrorKind::Throttled,
        ApiErrorKind::Unreadable,
        // It is listed, so that it is the read that lags.
        ApiErrorKind::Missing,
    ] {
        let rig = Rig::new();
        let request =
            JobRequest::batch(["https://example.com/0"], FetchOptions::default()).unwrap();
        let mut job = listed("b", rig.now(), "");
        (job.url, job.accepted_urls) = (None, Some(1));
        rig.jobs.list_job(Kind::Batch, job);
        rig.jobs.answer_parent(&batch("b"), Err(error(kind, None)));
        let found = find(&rig, &request, &post(&rig), "s").await;
        assert_eq!(found, Found::Undecided, "{kind:?}");
    }
}

/// A job whose address the list leaves out may be the one: nobody pays again.
#[tokio::test]
async fn a_job_that_is_listed_without_its_address_keeps_the_search_undecided() {
    let rig = Rig::new();
    rig.jobs.list_job(Kind::Extract, Listed { url: None, ..listed("x", rig.now(), "") });
    assert_eq!(find(&rig, &page(), &post(&rig), "s").await, Found::Undecided);
    let key = extract("x");
    assert_eq!(rig.entry(&key).link, None);
    claim(rig.ports(), &key, &link_of(&key, "theirs"), Cause::Submit).await.unwrap();
    assert_eq!(find(&rig, &page(), &post(&rig), "s").await, Found::Nothing);
}

/// Without webhooks, too, a job that may be ours ends with a result, whosever it is.
#[tokio::test]
async fn a_batch_that_cannot_be_told_apart_is_stored_without_a_link() {
    let rig = Rig::new();
    let urls = ["https://example.com/0", "https://example.com/1", "https://example.com/invalid"];
    let request = JobRequest::batch(urls, FetchOptions::default()).unwrap();
    let mut job = listed("b", rig.now(), "");
    (job.url, job.accepted_urls) = (None, Some(2));
    rig.jobs.list_job(Kind::Batch, job);
    let answer = parent_answer(&batch("b"), JobStatus::Completed, items(0..2));
    rig.jobs.answer_parent(&batch("b"), Ok(answer));
    assert_eq!(find(&rig, &request, &post(&rig), "s").await, Found::Undecided);
    rig.settle().await;
    assert_eq!((rig.stands(&batch("b")), rig.entry(&batch("b")).link), ("stored".into(), None));
}

#[tokio::test]
async fn a_crawl_is_adopted_by_its_seed() {
    let rig = Rig::new();
    let request =
        JobRequest::crawl("https://example.com/", FetchOptions::default(), 2, 10).unwrap();
    rig.jobs.list_job(Kind::Crawl, listed("other", rig.now(), "https://example.org/"));
    assert_eq!(find(&rig, &request, &post(&rig), "s").await, Found::Nothing);
    rig.jobs.list_job(Kind::Crawl, listed("c", rig.now(), "https://example.com"));
    assert_eq!(find(&rig, &request, &post(&rig), "s").await, Found::Job(id("c")));
    assert_eq!(rig.entry(&crawl("c")).link.unwrap().request, None);
}

/// A list whose pages come from a function of the page number.
struct Pages<'a> {
    rig: &'a Rig,
    page: fn(u32, Timestamp) -> Result<Vec<Listed>, ApiError>,
}

#[async_trait]
impl Jobs for Pages<'_> {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        self.rig.jobs.extract(job_id, within).await
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.rig.jobs.parent(key, page, within).await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        self.rig.jobs.submit(request, within).await
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        self.rig.jobs.list(kind, query, within).await?;
        let jobs = (self.page)(query.page, self.rig.now())?;
        // Counters that lie in every way at once.
        Ok(ListPage { jobs, unreadable: 0, page_count: Some(0), is_capped: true })
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.rig.jobs.probe(within).await
    }
}

fn others(numbers: std::ops::Range<u32>, now: Timestamp) -> Vec<Listed> {
    numbers.map(|n| listed(&format!("o{n}"), now, "https://example.com/other")).collect()
}

/// SC-05, SC-06: a list is read to an empty page, whatever its counters say; a list that was not
/// read whole proves nothing; and every way of reading it ends.
#[tokio::test]
async fn only_a_list_that_was_read_whole_proves_that_nothing_was_accepted() {
    type Page = fn(u32, Timestamp) -> Result<Vec<Listed>, ApiError>;
    let short: Page = |page, now| Ok(if page == 1 { others(0..7, now) } else { vec![] });
    let late: Page = |page, now| {
        Ok(match page {
            1..=3 => others(100 * (page - 1)..100 * page, now),
            4 => vec![listed("x", now, "https://example.com/page")],
            _ => vec![],
        })
    };
    // The server ignores the page number: what comes after the first hundred is never seen.
    let repeats_full: Page = |_, now| Ok(others(0..100, now));
    let repeats_short: Page = |_, now| Ok(others(0..7, now));
    let small_pages: Page =
        |page, now| Ok(if page <= 30 { others(10 * (page - 1)..10 * page, now) } else { vec![] });
    let breaks: Page = |page, now| match page {
        1 => Ok(others(0..100, now)),
        _ => Err(error(ApiErrorKind::Unavailable, Some(502))),
    };
    // A candidate before the trouble is not taken either: an older one may fit better.
    let breaks_late: Page = |page, now| match page {
        1 => Ok(vec![listed("x", now, "https://example.com/page")]),
        _ => Err(error(ApiErrorKind::Throttled, Some(429))),
    };
    for (page_of, expected, calls) in [
        (short, Found::Nothing, 2),
        (late, Found::Job(id("x")), 5),
        (repeats_full, Found::Undecided, 2),
        (repeats_short, Found::Nothing, 2),
        (small_pages, Found::Nothing, 31),
        (breaks, Found::Undecided, 4),
        (breaks_late, Found::Undecided, 2),
    ] {
        let rig = Rig::new();
        let pages = Pages { rig: &rig, page: page_of };
        let ports = Ports { jobs: &pages, ..rig.ports() };
        let link = |job_id: &JobId| link_of(&JobKey::new(Kind::Extract, job_id.clone()), "s");
        let found = find_lost(ports, &page(), &post(&rig), Look::Scheduled, link).await.unwrap();
        assert_eq!((found, rig.jobs.calls().len()), (expected, calls));
    }
}

/// A page that came to grief on its way is asked for again at once; what asks for a pause, or may
/// have been cut by a time-out, is not.
#[tokio::test]
async fn a_list_is_read_whole_although_pages_break() {
    let broken = |kind, status| error(kind, status);
    for (trouble, expected, calls) in [
        (vec![broken(ApiErrorKind::Unavailable, Some(503)); 2], Found::Job(id("x")), 4),
        (vec![broken(ApiErrorKind::Unreadable, Some(200)); 2], Found::Job(id("x")), 4),
        (vec![broken(ApiErrorKind::Unavailable, Some(503)); 3], Found::Undecided, 3),
        (vec![broken(ApiErrorKind::Unavailable, None)], Found::Undecided, 1),
        (vec![broken(ApiErrorKind::Throttled, Some(429))], Found::Undecided, 1),
    ] {
        let rig = Rig::new();
        rig.jobs.list_job(Kind::Extract, listed("x", rig.now(), "https://example.com/page"));
        for error in &trouble {
            rig.jobs.fail_list(error.clone());
        }
        let found = find(&rig, &page(), &post(&rig), "s").await;
        assert_eq!((found, rig.jobs.calls().len()), (expected, calls), "{trouble:?}");
    }
}

/// CL-02: whoever waits until a deadline begins no call after it.
#[tokio::test]
async fn no_search_begins_after_a_deadline() {
    let rig = Rig::new();
    let link = |job_id: &JobId| link_of(&JobKey::new(Kind::Extract, job_id.clone()), "s");
    let look = Look::Until(rig.now());
    let found = find_lost(rig.ports(), &page(), &post(&rig), look, link).await.unwrap();
    assert_eq!((found, rig.jobs.calls()), (Found::Undecided, vec![]));
}
