use super::*;
use crate::entry::StateName;
use crate::testing::Call;
use crate::time::before;
use crate::work::tests::rig::page;

fn listed(name: &str, status: JobStatus, created_at: Timestamp) -> crate::ports::Listed {
    crate::ports::Listed {
        job_id: id(name),
        status,
        created_at: Some(created_at),
        url: page().url().map(str::to_owned),
        accepted_urls: None,
        formats: None,
        render_js: None,
    }
}

/// Expected rows `j0`, `j1`, ... of extract jobs.
fn expect_jobs(rig: &Rig, count: u32) -> Vec<JobKey> {
    let keys: Vec<_> = (0..count).map(|number| extract(&format!("j{number}"))).collect();
    for key in &keys {
        let link = Some(link_of(key, "s"));
        let row = Entry::expected(key.clone(), link, Cause::Submit, rig.now(), &rig.limits);
        rig.ledger.place(&row);
    }
    keys
}

fn list_all(rig: &Rig, keys: &[JobKey], status: &JobStatus) {
    for key in keys {
        let job = listed(key.job_id.as_str(), status.clone(), rig.now());
        rig.jobs.list_job(Kind::Extract, job);
    }
}

fn count(rig: &Rig, name: StateName) -> usize {
    rig.ledger.entries().iter().filter(|entry| entry.state.name() == name).count()
}

/// One page answers for a hundred jobs.
#[tokio::test]
async fn one_page_answers_for_a_hundred_jobs() {
    let rig = Rig::new();
    let keys = expect_jobs(&rig, 100);
    list_all(&rig, &keys, &JobStatus::Completed);
    let polled = bulk_poll(rig.ports(), Asked::Open).await.unwrap();
    let expected = BulkPolled { pages: 1, asked: 100, announced: 100, ..BulkPolled::default() };
    assert_eq!(polled, expected);
    assert_eq!(rig.jobs.calls().len(), 1);
    assert_eq!((count(&rig, StateName::Received), rig.queue.depth()), (100, 100));
    let row = rig.entry(&keys[0]);
    assert_eq!(row.history.last().unwrap().cause, Cause::Poll);
}

/// Each job by its status: terminal ones are announced, open ones put off, unlisted ones left.
#[tokio::test]
async fn terminal_jobs_are_announced_and_open_ones_put_off() {
    let rig = Rig::new();
    let keys = expect_jobs(&rig, 6);
    rig.clock.advance(rig.limits.announce_grace);
    let statuses = ["completed", "failed", "cancelled", "processing", "brand-new"];
    for (key, status) in keys.iter().zip(statuses) {
        let at = before(rig.now(), rig.limits.announce_grace);
        let job = listed(key.job_id.as_str(), JobStatus::from_api(status), at);
        rig.jobs.list_job(Kind::Extract, job);
    }
    let due = rig.entry(&keys[5]).due_at;
    let polled = bulk_poll(rig.ports(), Asked::Due).await.unwrap();
    assert_eq!((polled.announced, polled.open, polled.unlisted), (3, 2, 1));
    let states: Vec<_> = keys.iter().map(|key| rig.stands(key)).collect();
    assert_eq!(states, ["received", "received", "received", "expected", "expected", "expected"]);
    for key in &keys[3..5] {
        assert!(rig.entry(key).due_at.unwrap() > rig.now());
    }
    assert_eq!(rig.entry(&keys[5]).due_at, due, "the sweep looks at it one by one");
    assert_eq!(rig.queue.depth(), 3);
}

/// `Due` asks only for what is overdue, and for a single job not at all: one look is as cheap.
#[tokio::test]
async fn due_asks_for_what_is_overdue_and_open_for_everything() {
    let rig = Rig::new();
    let keys = expect_jobs(&rig, 5);
    list_all(&rig, &keys, &JobStatus::Completed);
    assert_eq!(bulk_poll(rig.ports(), Asked::Due).await.unwrap(), BulkPolled::default());
    assert_eq!(rig.jobs.calls(), []);
    assert_eq!(bulk_poll(rig.ports(), Asked::Open).await.unwrap().announced, 5);
    let rig = Rig::new();
    let keys = expect_jobs(&rig, 1);
    list_all(&rig, &keys, &JobStatus::Completed);
    rig.clock.advance(HOUR);
    assert_eq!(bulk_poll(rig.ports(), Asked::Due).await.unwrap(), BulkPolled::default());
    assert_eq!(bulk_poll(rig.ports(), Asked::Open).await.unwrap().announced, 1);
}

/// A job that is too old is left to a worker, who gives it up: the list keeps nobody alive.
#[tokio::test]
async fn a_job_past_its_longest_age_is_not_put_off_again() {
    let rig = Rig::new();
    let keys = expect_jobs(&rig, 2);
    list_all(&rig, &keys, &JobStatus::Processing);
    for _ in 0..60 {
        rig.clock.advance(HOUR);
        bulk_poll(rig.ports(), Asked::Due).await.unwrap();
    }
    crate::sweep::sweep(rig.ports(), 100).await.unwrap();
    rig.work_queue().await;
    assert_eq!(rig.stands(&keys[0]), "dead never_settled");
}

/// While the account is paused nobody is asked; throttling of the list pauses the account.
#[tokio::test]
async fn a_pause_is_kept_and_made() {
    let rig = Rig::new();
    let keys = expect_jobs(&rig, 3);
    list_all(&rig, &keys, &JobStatus::Completed);
    let throttled = retry_after(error(ApiErrorKind::Throttled, Some(429)), 50_000 * SECOND);
    rig.jobs.fail_list(throttled.clone());
    let polled = bulk_poll(rig.ports(), Asked::Open).await.unwrap();
    assert_eq!((polled.pages, polled.announced, polled.trouble), (0, 0, Some(throttled)));
    assert_eq!(bulk_poll(rig.ports(), Asked::Open).await.unwrap(), BulkPolled::default());
    assert_eq!(rig.jobs.calls().len(), 1);
    rig.clock.advance(rig.limits.retry_after_clamp + SECOND);
    assert_eq!(bulk_poll(rig.ports(), Asked::Open).await.unwrap().announced, 3);
}

/// A list whose pages come from a function of the page number.
struct Pages<'a> {
    rig: &'a Rig,
    page: fn(u32, Timestamp) -> Result<ListPage, ApiError>,
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
        (self.page)(query.page, self.rig.now())
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.rig.jobs.probe(within).await
    }
}

fn list_of(numbers: std::ops::Range<u32>, now: Timestamp) -> ListPage {
    let jobs = numbers.map(|n| listed(&format!("j{n}"), JobStatus::Completed, now)).collect();
    ListPage { jobs, unreadable: 0, page_count: None, is_capped: false }
}

/// SC-03, SC-05, SC-06: lists that lie about their pages, shift, repeat or break: what was seen
/// is announced, the rest is left due, and the walk ends.
#[tokio::test]
async fn every_list_is_walked_to_an_end() {
    type Page = fn(u32, Timestamp) -> Result<ListPage, ApiError>;
    let says_none: Page = |page, now| {
        let page =
            if page <= 3 { list_of(100 * (page - 1)..100 * page, now) } else { list_of(0..0, now) };
        Ok(ListPage { page_count: Some(0), ..page })
    };
    let is_capped: Page = |page, now| {
        let page =
            if page <= 3 { list_of(100 * (page - 1)..100 * page, now) } else { list_of(0..0, now) };
        Ok(ListPage { page_count: Some(2), is_capped: true, ..page })
    };
    let says_many: Page = |page, now| {
        let page =
            if page <= 2 { list_of(100 * (page - 1)..100 * page, now) } else { list_of(0..0, now) };
        Ok(ListPage { page_count: Some(9), ..page })
    };
    let repeats: Page = |_, now| Ok(list_of(0..100, now));
    let repeats_the_last: Page =
        |page, now| Ok(if page == 1 { list_of(0..100, now) } else { list_of(100..150, now) });
    // A job left the front between the pages, so that `j100` was skipped.
    let shifts: Page = |page, now| {
        Ok(match page {
            1 => list_of(0..100, now),
            2 => list_of(101..201, now),
            _ => list_of(0..0, now),
        })
    };
    let unreadable: Page = |page, now| {
        let page = if page == 1 { list_of(0..50, now) } else { list_of(0..0, now) };
        Ok(ListPage { unreadable: 50, ..page })
    };
    let breaks: Page = |page, now| match page {
        1 => Ok(list_of(0..100, now)),
        _ => Err(error(ApiErrorKind::Unavailable, Some(502))),
    };
    let forgets: Page = |_, _| Err(error(ApiErrorKind::Unreadable, Some(200)));
    for (name, page_of, announced, calls, whole) in [
        ("says none", says_none, 300, 3, true),
        ("is capped", is_capped, 300, 3, true),
        ("says many", says_many, 200, 3, true),
        ("repeats", repeats, 100, 2, true),
        ("repeats the last", repeats_the_last, 150, 3, true),
        ("shifts", shifts, 200, 3, true),
        ("unreadable", unreadable, 50, 2, true),
        ("breaks", breaks, 100, 2, false),
        ("forgets", forgets, 0, 1, false),
    ] {
        let rig = Rig::new();
        expect_jobs(&rig, 300);
        let pages = Pages { rig: &rig, page: page_of };
        let ports = Ports { jobs: &pages, ..rig.ports() };
        let polled = bulk_poll(ports, Asked::Open).await.unwrap();
        assert_eq!(polled.announced, announced, "{name}");
        assert_eq!(rig.jobs.calls().len(), calls, "{name}");
        assert_eq!(polled.trouble.is_none(), whole, "{name}");
        if whole {
            assert_eq!(polled.unlisted, 300 - announced, "{name}");
        }
        let left = usize::try_from(300 - announced).unwrap();
        assert_eq!(count(&rig, StateName::Expected), left, "{name}");
    }
}

/// The window is pinned: it begins before the oldest job that is asked for, and ends now.
#[tokio::test]
async fn the_window_reaches_back_to_the_oldest_job() {
    let rig = Rig::new();
    let keys = expect_jobs(&rig, 2);
    let oldest = rig.now();
    rig.clock.advance(HOUR);
    bulk_poll(rig.ports(), Asked::Due).await.unwrap();
    let calls = rig.jobs.calls();
    let Call::List(kind, query) = &calls[0] else { panic!("{calls:?}") };
    assert_eq!(*kind, keys[0].kind);
    assert_eq!(query.created_from, Some(before(oldest, rig.limits.adoption_margin)));
    assert_eq!(query.created_to, Some(rig.now()));
}

/// A row that does not decode is that row's trouble: the others are asked for.
#[tokio::test]
async fn a_row_that_does_not_decode_keeps_no_other_waiting() {
    for asked in [Asked::Open, Asked::Due] {
        let rig = Rig::new();
        let keys = expect_jobs(&rig, 4);
        list_all(&rig, &keys, &JobStatus::Completed);
        rig.clock.advance(rig.limits.announce_grace);
        rig.ledger.corrupt(&keys[1]);
        let polled = bulk_poll(rig.ports(), asked).await.unwrap();
        assert_eq!((polled.asked, polled.announced), (3, 3), "{asked:?}");
    }
}
