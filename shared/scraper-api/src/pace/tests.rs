use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{
    ApiError, ApiErrorKind, Clock, ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage,
    SubmitError,
};
use domain::request::{FetchOptions, JobRequest};
use domain::time::{Timestamp, after, between};

use super::*;
use crate::account::Concurrency;
use crate::loopback::HandClock;

const SECOND: Duration = Duration::from_secs(1);
const THROTTLED: Answered = Answered::Throttled { retry_after: None };

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn unspaced() -> PaceSettings {
    PaceSettings { spacing: Duration::ZERO, ..PaceSettings::default() }
}

/// Asks until a turn is refused; how many were given.
fn take_all(pace: &mut Pace, now: Timestamp) -> u32 {
    (0..1_000).take_while(|_| pace.ask(now) == Turn::Go).count().try_into().unwrap()
}

#[test]
fn window_bounds_the_posts_in_flight() {
    let mut pace = Pace::new(unspaced());
    assert_eq!(take_all(&mut pace, start()), 4);
    assert_eq!(pace.ask(start()), Turn::Wait(SLOT_PAUSE));
    pace.record(start(), Answered::Other);
    assert_eq!(take_all(&mut pace, start()), 1);
}

#[test]
fn window_grows_by_one_for_each_round_up_to_the_ceiling() {
    let mut pace = Pace::new(PaceSettings { start: 1, ceiling: 3, ..unspaced() });
    let mut rounds = Vec::new();
    for _ in 0..6 {
        let round = take_all(&mut pace, start());
        rounds.push(round);
        (0..round).for_each(|_| pace.record(start(), Answered::Accepted));
    }
    assert_eq!((rounds[0], rounds[1], rounds[5]), (1, 2, 3));
    assert!(rounds.is_sorted(), "{rounds:?}");
}

/// WK-12: 429 halves the window and closes it for a time that grows; `Retry-After` goes first.
#[test]
fn throttling_halves_the_window_once_for_posts_in_flight_together() {
    let mut pace = Pace::new(PaceSettings { start: 8, ..unspaced() });
    assert_eq!(take_all(&mut pace, start()), 8);
    (0..8).for_each(|_| pace.record(start(), THROTTLED));
    assert_eq!(pace.posts_in_flight_max(), 4, "halved once, not eight times");
    assert_eq!(pace.ask(start()), Turn::Wait(SECOND));

    let later = after(start(), SECOND);
    assert_eq!(pace.ask(later), Turn::Go);
    pace.record(later, THROTTLED);
    assert_eq!((pace.posts_in_flight_max(), pace.ask(later)), (2, Turn::Wait(2 * SECOND)));

    let later = after(later, 2 * SECOND);
    assert_eq!(pace.ask(later), Turn::Go);
    pace.record(later, Answered::Throttled { retry_after: Some(300 * SECOND) });
    assert_eq!(pace.ask(later), Turn::Wait(300 * SECOND));
}

#[test]
fn pauses_are_bounded_and_the_window_stays_open_by_one() {
    let mut pace = Pace::new(unspaced());
    let mut now = start();
    for _ in 0..100 {
        assert_eq!(pace.ask(now), Turn::Go);
        pace.record(now, Answered::Throttled { retry_after: None });
        let Turn::Wait(pause) = pace.ask(now) else { panic!("closed after 429") };
        assert!((SECOND..=30 * SECOND).contains(&pause), "{pause:?}");
        now = after(now, pause);
    }
    assert_eq!(pace.posts_in_flight_max(), 1);
    assert_eq!(pace.ask(now), Turn::Go);
    pace.record(now, Answered::Accepted);
    assert_eq!(pace.ask(now), Turn::Go);
    pace.record(now, THROTTLED);
    assert_eq!(pace.ask(now), Turn::Wait(SECOND), "an accepted POST ends the row of pauses");
}

#[test]
fn posts_are_spaced_by_the_width_of_the_window() {
    let mut pace = Pace::new(PaceSettings { spacing: SECOND, ..PaceSettings::default() });
    assert_eq!(pace.ask(start()), Turn::Go);
    assert_eq!(pace.ask(start()), Turn::Wait(SECOND / 4));
    assert_eq!(pace.ask(after(start(), SECOND / 4)), Turn::Go);
}

#[test]
fn account_sets_the_ceiling() {
    for (limit, start_with) in [(0, 1), (1, 1), (3, 3), (1_000, 4), (u64::MAX, 4)] {
        let mut pace = Pace::new(unspaced());
        pace.set_ceiling(limit);
        assert_eq!(take_all(&mut pace, start()), start_with, "{limit}");
    }
}

#[test]
fn usage_is_read_at_the_start_and_now_and_then() {
    let mut pace = Pace::new(unspaced());
    let minute = Duration::from_mins(1);
    let asked = [Duration::ZERO, SECOND, minute, minute]
        .map(|after_start| pace.claim_usage_read(after(start(), after_start)));
    assert_eq!(asked, [true, false, true, false]);
}

/// Takes a submission if fewer than `slots` were taken; a call takes a tenth of a second.
struct Account {
    clock: Arc<HandClock>,
    slots: AtomicU32,
    taken: AtomicU32,
    posts: AtomicU32,
    refusal: Mutex<ApiError>,
    within: Mutex<Vec<Duration>>,
}

impl Account {
    fn new(clock: &Arc<HandClock>, slots: u32) -> Self {
        let refusal = ApiError::new(ApiErrorKind::Throttled, "WORK_CONCURRENCY_LIMITED");
        Self {
            clock: Arc::clone(clock),
            slots: AtomicU32::new(slots),
            taken: AtomicU32::new(0),
            posts: AtomicU32::new(0),
            refusal: Mutex::new(refusal),
            within: Mutex::new(Vec::new()),
        }
    }
}

#[async_trait]
impl Jobs for Account {
    async fn extract(&self, _: &JobId, _: Duration) -> Result<ExtractJob, ApiError> {
        Err(ApiError::new(ApiErrorKind::Missing, "extract"))
    }

    async fn parent(
        &self,
        _: &JobKey,
        _: PageRequest,
        _: Duration,
    ) -> Result<ParentPage, ApiError> {
        Err(ApiError::new(ApiErrorKind::Missing, "parent"))
    }

    async fn submit(&self, _: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        self.within.lock().unwrap().push(within);
        self.posts.fetch_add(1, Ordering::Relaxed);
        self.clock.sleep(SECOND / 10).await;
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        if taken < self.slots.load(Ordering::Relaxed) {
            return Ok(JobId::parse(&format!("job-{taken}")).unwrap());
        }
        self.taken.fetch_sub(1, Ordering::Relaxed);
        Err(SubmitError::Refused(self.refusal.lock().unwrap().clone()))
    }

    async fn list(&self, _: Kind, _: &ListQuery, _: Duration) -> Result<ListPage, ApiError> {
        Err(ApiError::new(ApiErrorKind::Missing, "list"))
    }

    async fn probe(&self, _: Duration) -> Result<(), ApiError> {
        Err(ApiError::new(ApiErrorKind::Missing, "probe"))
    }
}

/// An account whose concurrency is known, or not.
struct Known(Option<u64>);

#[async_trait]
impl Usage for Known {
    async fn concurrency(&self, _: Duration) -> Result<Concurrency, ApiError> {
        let unknown = ApiError::new(ApiErrorKind::Unavailable, "no answer");
        self.0.map(|limit| Concurrency { in_use: 0, limit }).ok_or(unknown)
    }
}

fn paced(slots: u32, limit: Option<u64>) -> (Paced<Account>, Arc<HandClock>) {
    let clock = Arc::new(HandClock::default());
    let account = Account::new(&clock, slots);
    let shared: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
    (Paced::new(account, Arc::new(Known(limit)), shared, unspaced()), clock)
}

fn request() -> JobRequest {
    JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap()
}

/// A 429 for work concurrency is waited out and the POST made again, inside the call's time.
#[tokio::test]
async fn throttled_submission_is_made_again_later() {
    let (paced, clock) = paced(0, Some(8));
    let error = paced.submit(&request(), 30 * SECOND).await.unwrap_err();
    let SubmitError::Refused(error) = error else { panic!("{error:?}") };
    assert_eq!(error.message, "WORK_CONCURRENCY_LIMITED");
    let waited = between(start(), clock.now());
    assert!(waited <= 15 * SECOND, "given up in the first half of its time: {waited:?}");
    let posts = paced.inner().posts.load(Ordering::Relaxed);
    assert_eq!(posts, 4, "after 1, 2 and 4 s of pause");
    assert_eq!(error.retry_after, Some(8 * SECOND), "what is left of the last pause");
    let within = paced.inner().within.lock().unwrap().clone();
    assert!(within.iter().all(|within| *within >= 15 * SECOND), "{within:?}");
    assert!(within.is_sorted_by(|before, next| before > next), "{within:?}");
}

#[tokio::test]
async fn submission_succeeds_when_a_slot_becomes_free() {
    let (paced, _) = paced(1, None);
    assert!(paced.submit(&request(), 30 * SECOND).await.is_ok());
    assert!(paced.submit(&request(), SECOND).await.is_err());
    paced.inner().slots.store(2, Ordering::Relaxed);
    assert!(paced.submit(&request(), 30 * SECOND).await.is_ok());
}

/// CL-06: a final 429 ends at once.
#[tokio::test]
async fn final_refusals_are_not_made_again() {
    let (paced, _) = paced(0, None);
    let with = |kind, retryable| ApiError { retryable, ..ApiError::new(kind, "m") };
    for refusal in [
        with(ApiErrorKind::Throttled, Some(false)),
        with(ApiErrorKind::PaymentRequired, None),
        with(ApiErrorKind::Unavailable, Some(true)),
    ] {
        *paced.inner().refusal.lock().unwrap() = refusal.clone();
        let before = paced.inner().posts.load(Ordering::Relaxed);
        let error = paced.submit(&request(), 60 * SECOND).await.unwrap_err();
        assert_eq!(error, SubmitError::Refused(refusal));
        assert_eq!(paced.inner().posts.load(Ordering::Relaxed), before + 1);
    }
}

/// A submission that is dropped in the middle gives its place back.
#[tokio::test]
async fn dropped_submissions_give_their_place_back() {
    let (paced, _) = paced(100, Some(1));
    let request = request();
    for _ in 0..3 {
        // Polled once: the POST is in flight, then nobody wants it any more.
        let mut submission = Box::pin(paced.submit(&request, 30 * SECOND));
        assert!(poll_once(submission.as_mut()).await.is_none());
        drop(submission);
        assert_eq!(paced.pace().in_flight, 0);
    }
    assert!(paced.submit(&request, 30 * SECOND).await.is_ok());
}

async fn poll_once<T>(
    mut future: std::pin::Pin<&mut (dyn Future<Output = T> + Send)>,
) -> Option<T> {
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        std::task::Poll::Ready(value) => std::task::Poll::Ready(Some(value)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

#[tokio::test]
async fn other_calls_pass_through() {
    let (paced, _) = paced(0, None);
    let id = JobId::parse("a").unwrap();
    let key = JobKey::new(Kind::Batch, id.clone());
    let page = PageRequest { page: 1, page_size: 1 };
    let query = ListQuery { page: 1, page_size: 1, created_from: None, created_to: None };
    let messages = [
        paced.extract(&id, SECOND).await.unwrap_err().message,
        paced.parent(&key, page, SECOND).await.unwrap_err().message,
        paced.list(Kind::Batch, &query, SECOND).await.unwrap_err().message,
        paced.probe(SECOND).await.unwrap_err().message,
    ];
    assert_eq!(messages, ["extract", "parent", "list", "probe"]);
}
