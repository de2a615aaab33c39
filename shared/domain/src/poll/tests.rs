mod bulk;
mod deadline;
mod jitter;
mod unlisted;

use std::sync::Mutex;

use async_trait::async_trait;
use proptest::prelude::*;

use super::*;
use crate::job::{JobError, JobId, Kind};
use crate::ports::{
    Clock, ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage, SubmitError,
};
use crate::request::JobRequest;
use crate::testing::{ManualClock, SeededRandom, parent_answer};
use crate::time::after;
use crate::work::tests::faults::{Fault, Faulty};
use crate::work::tests::rig::{
    HOUR, MINUTE, Rig, answer, batch, error, extract, id, items, link_of, retry_after,
};

const SECOND: Duration = Duration::from_secs(1);

fn patience(rig: &Rig, longest: Duration) -> Patience {
    Patience { deadline: after(rig.now(), longest), base: SECOND, cap: 30 * SECOND }
}

async fn poll_a(rig: &Rig, longest: Duration) -> Polled {
    poll(rig.ports(), &extract("a"), patience(rig, longest)).await.unwrap()
}

fn standing(polled: &Polled) -> String {
    match polled {
        Polled::Settled(entry) => crate::work::tests::rig::standing(entry),
        other => panic!("{other:?}"),
    }
}

type Answer = Result<ExtractJob, ApiError>;

/// Makes the ledger owe a job, if it does not know it.
fn owe(rig: &Rig, key: &JobKey) {
    if !rig.ledger.entries().iter().any(|entry| entry.key == *key) {
        rig.ledger.place(&Entry::expected(key.clone(), None, Cause::Poll, rig.now(), &rig.limits));
    }
}

/// Makes the ledger owe job `a`, and the platform give these answers for it.
fn say(rig: &Rig, answers: impl IntoIterator<Item = Answer>) {
    owe(rig, &extract("a"));
    answers.into_iter().for_each(|answer| rig.jobs.answer_extract(&id("a"), answer));
}

fn stands(status: JobStatus) -> ExtractJob {
    answer(&extract("a"), status)
}

/// CL-01: 429 with `Retry-After: 0`, then 1, for ever; one second at most.
#[tokio::test]
async fn throttling_does_not_outlast_the_deadline() {
    for seconds in [0, 1] {
        let rig = Rig::new();
        let begun = rig.now();
        let throttled = error(ApiErrorKind::Throttled, Some(429));
        say(&rig, [Err(retry_after(throttled, seconds * SECOND))]);
        let short = Patience { base: Duration::ZERO, ..patience(&rig, SECOND) };
        let polled = poll(rig.ports(), &extract("a"), short).await.unwrap();
        assert!(matches!(polled, Polled::Timeout(Some(_))), "{polled:?}");
        assert_eq!(between(begun, rig.now()), SECOND);
        assert!(rig.jobs.calls().len() <= 10, "at least {PAUSE_MIN:?} between two looks");
    }
}

/// CL-02: two seconds at most, and a delay of thirty: the sleep is cut, and a late success is
/// not waited for.
#[tokio::test]
async fn a_sleep_never_passes_the_deadline() {
    let rig = Rig::new();
    let begun = rig.now();
    say(&rig, [Ok(stands(JobStatus::Processing))]);
    let long = Patience { base: 3_000 * SECOND, cap: 3_000 * SECOND, ..patience(&rig, 2 * SECOND) };
    let polled = poll(rig.ports(), &extract("a"), long).await.unwrap();
    let unfinished = PutOff::Unfinished(JobStatus::Processing);
    assert_eq!(polled, Polled::Timeout(Some(unfinished)));
    assert_eq!(between(begun, rig.now()), 2 * SECOND);
    assert_eq!(rig.clock.sleeps().iter().sum::<Duration>(), 2 * SECOND);
}

/// CL-02: an API that hangs: every call ends with the deadline, and none begins after it.
#[tokio::test]
async fn a_platform_that_hangs_costs_no_more_than_the_deadline() {
    let rig = Rig::new();
    let begun = rig.now();
    say(&rig, [Err(error(ApiErrorKind::Unavailable, None))]);
    let slow = Slow { rig: &rig, takes: HOUR, log: Mutex::default() };
    let ports = Ports { jobs: &slow, ..rig.ports() };
    let polled = poll(ports, &extract("a"), patience(&rig, 2 * SECOND)).await.unwrap();
    assert!(matches!(polled, Polled::Timeout(Some(PutOff::Trouble(_)))), "{polled:?}");
    assert_eq!(between(begun, rig.now()), 2 * SECOND);
}

/// CL-03: each way of ending is told apart, and names the row that explains it.
#[tokio::test]
async fn each_end_of_a_wait_is_told_apart() {
    for (given, expected) in [
        (Ok(stands(JobStatus::Completed)), "stored"),
        (Ok(stands(JobStatus::Failed)), "dead unlinked_failure"),
        (Ok(stands(JobStatus::Cancelled)), "dead cancelled"),
    ] {
        let rig = Rig::new();
        say(&rig, [given]);
        assert_eq!(standing(&poll_a(&rig, MINUTE).await), expected);
        assert_eq!(rig.jobs.calls().len(), 1);
        // Asked again, the ledger answers.
        assert_eq!(standing(&poll_a(&rig, MINUTE).await), expected);
        assert_eq!(rig.jobs.calls().len(), 1);
    }
    let rig = Rig::new();
    say(&rig, [Err(error(ApiErrorKind::Denied, Some(401)))]);
    rig.jobs.answer_probe(Err(error(ApiErrorKind::Denied, Some(401))));
    let denied =
        |polled: &Polled| matches!(polled, Polled::Failed(error) if error.status == Some(401));
    assert!(denied(&poll_a(&rig, MINUTE).await));
}

/// CL-04: states that this version does not know are reported after a few looks; they never end
/// the row.
#[tokio::test]
async fn an_unknown_status_is_reported_quickly() {
    for status in ["expired", "COMPLETED", ""] {
        let rig = Rig::new();
        let begun = rig.now();
        say(&rig, [Ok(stands(JobStatus::from_api(status)))]);
        let polled = poll_a(&rig, HOUR).await;
        assert_eq!(polled, Polled::UnknownStatus(JobStatus::Unknown(status.into())));
        assert_eq!(rig.jobs.calls().len(), 3);
        assert!(between(begun, rig.now()) < MINUTE);
        assert_eq!(rig.stands(&extract("a")), "expected");
    }
}

/// CL-05: no base, cap or deadline panics or spins.
#[tokio::test]
async fn odd_numbers_neither_panic_nor_spin() {
    let zero = Duration::ZERO;
    for (base, cap, longest) in [
        (zero, zero, 3 * SECOND),
        (SECOND, zero, 3 * SECOND),
        (Duration::from_nanos(1), SECOND, 3 * SECOND),
        (Duration::MAX, Duration::MAX, 3 * SECOND),
        (10 * SECOND, SECOND, 3 * SECOND),
        (SECOND, SECOND, zero),
        (SECOND, SECOND, Duration::from_nanos(1)),
    ] {
        let rig = Rig::new();
        let begun = rig.now();
        say(&rig, [Ok(stands(JobStatus::Queued))]);
        let odd = Patience { deadline: after(begun, longest), base, cap };
        let polled = poll(rig.ports(), &extract("a"), odd).await.unwrap();
        assert!(matches!(polled, Polled::Timeout(_)));
        assert_eq!(between(begun, rig.now()), longest);
        assert!(rig.jobs.calls().len() <= 30);
    }
    let rig = Rig::new();
    say(&rig, [Ok(stands(JobStatus::Completed))]);
    let past = Patience { deadline: Timestamp::MIN, ..patience(&rig, SECOND) };
    assert_eq!(poll(rig.ports(), &extract("a"), past).await.unwrap(), Polled::Timeout(None));
    assert_eq!(rig.jobs.calls(), []);
    let endless = Patience { deadline: Timestamp::MAX, ..past };
    let polled = poll(rig.ports(), &extract("a"), endless).await.unwrap();
    assert_eq!(standing(&polled), "stored");
}

/// CL-06: a quota that says of itself that it stays ends the wait at once; a rate limit is
/// waited out; an empty account ends it.
#[tokio::test]
async fn a_quota_ends_the_wait_and_a_rate_limit_does_not() {
    let throttled = || error(ApiErrorKind::Throttled, Some(429));
    let quota = ApiError { retryable: Some(false), ..throttled() };
    for last in [quota, error(ApiErrorKind::PaymentRequired, Some(402))] {
        let rig = Rig::new();
        say(&rig, [Err(last.clone())]);
        assert_eq!(poll_a(&rig, HOUR).await, Polled::Failed(last));
        assert_eq!((rig.jobs.calls().len(), rig.clock.sleeps()), (1, vec![]));
    }
    let rig = Rig::new();
    let begun = rig.now();
    let rate = ApiError { retryable: Some(true), ..retry_after(throttled(), 20 * SECOND) };
    say(&rig, [Err(rate), Ok(stands(JobStatus::Completed))]);
    assert_eq!(standing(&poll_a(&rig, HOUR).await), "stored");
    let lasted = between(begun, rig.now());
    assert!(lasted >= 20 * SECOND && lasted < 5 * MINUTE, "{lasted:?}");
}

/// CL-07: 502, reset, no such host, then completed; only a long row of failures ends the wait.
#[tokio::test]
async fn hiccups_are_tolerated_and_counted() {
    let rig = Rig::new();
    let hiccup = |status| Err(error(ApiErrorKind::Unavailable, status));
    say(&rig, [hiccup(Some(502)), hiccup(None), hiccup(None), Ok(stands(JobStatus::Completed))]);
    assert_eq!(standing(&poll_a(&rig, HOUR).await), "stored");
    let rig = Rig::new();
    say(&rig, [hiccup(Some(502))]);
    assert!(matches!(poll_a(&rig, 10 * HOUR).await, Polled::Failed(_)));
    assert_eq!(rig.jobs.calls().len(), usize::try_from(FAILURES_MAX).unwrap());
    // A job that is seen in between begins the count anew.
    let rig = Rig::new();
    for _ in 0..3 {
        say(&rig, (1..FAILURES_MAX).map(|_| hiccup(Some(502))));
        say(&rig, [Ok(stands(JobStatus::Processing))]);
    }
    say(&rig, [Ok(stands(JobStatus::Completed))]);
    assert_eq!(standing(&poll_a(&rig, 10 * HOUR).await), "stored");
}

/// CL-07: a ledger, queue or store that fails once ends no wait either; one that keeps failing
/// does.
#[tokio::test]
async fn a_port_that_fails_once_does_not_end_the_wait() {
    let calls = {
        let rig = Rig::new();
        say(&rig, [Ok(stands(JobStatus::Completed))]);
        let dry = Faulty::new(&rig, []);
        poll(dry.ports(), &extract("a"), patience(&rig, HOUR)).await.unwrap();
        dry.calls()
    };
    // The first one asks whether the row is there; who waits may well see it fail.
    for (k, call) in calls.iter().enumerate().skip(1) {
        for fault in [Fault::FailBefore, Fault::FailAfter] {
            let rig = Rig::new();
            say(&rig, [Ok(stands(JobStatus::Completed))]);
            let faulty = Faulty::new(&rig, [(k, fault)]);
            let polled = poll(faulty.ports(), &extract("a"), patience(&rig, HOUR)).await.unwrap();
            assert_eq!(standing(&polled), "stored", "{call} {fault:?}");
        }
    }
    let rig = Rig::new();
    say(&rig, [Ok(stands(JobStatus::Completed))]);
    let faulty = Faulty::new(&rig, (1..10_000).map(|k| (k, Fault::FailBefore)));
    let given_up = poll(faulty.ports(), &extract("a"), patience(&rig, HOUR)).await.unwrap_err();
    assert!(given_up.is_transient());
    assert!(faulty.calls().len() < 100);
}

/// A failed job is resubmitted while its owner waits, if there is time for the POST.
#[tokio::test]
async fn a_paid_post_is_begun_only_if_it_can_end_in_time() {
    for (longest, posts) in [(29 * SECOND, 0), (31 * SECOND, 1)] {
        let rig = Rig::new();
        let key = extract("a");
        rig.receive_linked(&key);
        let error = Some(JobError::new("TIMEOUT", "", true));
        say(&rig, [Ok(ExtractJob { error, ..answer(&key, JobStatus::Failed) })]);
        let polled = poll_a(&rig, longest).await;
        assert_eq!(rig.jobs.submits().len(), posts);
        if posts == 0 {
            assert_eq!(polled, Polled::Timeout(Some(PutOff::OutOfTime)));
            let worked = rig.work(&key).await;
            assert_eq!(worked, Worked::Superseded { by: id("job-1") });
        } else {
            assert_eq!(standing(&polled), "superseded job-1");
        }
    }
}

/// CL-02: a long run over pages stops at the deadline, and the next worker goes on from there.
#[tokio::test]
async fn a_run_over_pages_stops_at_the_deadline() {
    let rig = Rig::new();
    let key = batch("b");
    owe(&rig, &key);
    rig.jobs.answer_parent(&key, Ok(parent_answer(&key, JobStatus::Completed, items(0..500))));
    let slow = Slow { rig: &rig, takes: 3 * SECOND, log: Mutex::default() };
    let ports = Ports { jobs: &slow, ..rig.ports() };
    let polled = poll(ports, &key, patience(&rig, 10 * SECOND)).await.unwrap();
    assert!(matches!(polled, Polled::Timeout(Some(_))), "{polled:?}");
    assert_eq!(rig.entry(&key).run.unwrap().parts.len(), 3);
    rig.jobs.clear_calls();
    rig.settle().await;
    assert_eq!((rig.stands(&key).as_str(), rig.jobs.calls().len()), ("stored", 7));
}

/// A platform each of whose calls takes its time, or all the time that it is given.
struct Slow<'a> {
    rig: &'a Rig,
    takes: Duration,
    /// When each call began, and how long it was given.
    log: Mutex<Vec<(Timestamp, Duration)>>,
}

impl Slow<'_> {
    fn pass<T>(&self, within: Duration, answer: Result<T, ApiError>) -> Result<T, ApiError> {
        self.log.lock().unwrap().push((self.rig.now(), within));
        self.rig.clock.advance(self.takes.min(within));
        if self.takes > within {
            return Err(error(ApiErrorKind::Unavailable, None));
        }
        answer
    }
}

#[async_trait]
impl Jobs for Slow<'_> {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        self.pass(within, self.rig.jobs.extract(job_id, within).await)
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.pass(within, self.rig.jobs.parent(key, page, within).await)
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        let made = self.rig.jobs.submit(request, within).await;
        self.pass(within, Ok(())).map_err(SubmitError::Unanswered)?;
        made
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        self.pass(within, self.rig.jobs.list(kind, query, within).await)
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.pass(within, self.rig.jobs.probe(within).await)
    }
}

/// One answer of the platform, of any sort.
fn any_answer() -> impl Strategy<Value = Answer> {
    use ApiErrorKind as K;
    let kinds = [
        (K::Throttled, 429),
        (K::PaymentRequired, 402),
        (K::Denied, 401),
        (K::Denied, 403),
        (K::Missing, 404),
        (K::Refused, 400),
        (K::Unavailable, 502),
        (K::Unreadable, 200),
    ];
    let failed = {
        let error = Some(JobError::new("TIMEOUT", "", true));
        ExtractJob { error, ..answer(&extract("a"), JobStatus::Failed) }
    };
    let trouble = (prop::sample::select(kinds.to_vec()), prop::option::of(0_u32..100));
    prop_oneof![
        Just(Ok(stands(JobStatus::Queued))),
        Just(Ok(stands(JobStatus::Processing))),
        Just(Ok(stands(JobStatus::Completed))),
        Just(Ok(stands(JobStatus::from_api("new")))),
        Just(Ok(failed)),
        trouble.prop_map(|((kind, status), wait)| {
            let error = error(kind, Some(status));
            Err(match wait {
                Some(seconds) => retry_after(error, seconds * SECOND),
                None => error,
            })
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// CL-01, CL-02: whatever the platform answers and however long it takes: no call begins at
    /// or after the deadline or may last beyond it, and no sleep passes it.
    #[test]
    fn nothing_begins_or_lasts_beyond_the_deadline(
        answers in prop::collection::vec(any_answer(), 1..12),
        is_linked: bool,
        is_owed: bool,
        probe_fails: bool,
        takes_ms in 0_u64..40_000,
        longest_ms in 0_u64..120_000,
        base_ms in 0_u64..5_000,
        cap_ms in 0_u64..60_000,
    ) {
        let rig = Rig::new();
        let key = extract("a");
        if is_linked {
            rig.receive_linked(&key);
        }
        if is_owed {
            owe(&rig, &key);
        }
        for answer in answers {
            rig.jobs.answer_extract(&id("a"), answer);
        }
        if probe_fails {
            rig.jobs.answer_probe(Err(error(ApiErrorKind::Denied, Some(401))));
        }
        let takes = Duration::from_millis(takes_ms);
        let slow = Slow { rig: &rig, takes, log: Mutex::default() };
        let deadline = after(rig.now(), Duration::from_millis(longest_ms));
        let base = Duration::from_millis(base_ms);
        let patience = Patience { deadline, base, cap: Duration::from_millis(cap_ms) };
        let ports = Ports { jobs: &slow, ..rig.ports() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(poll(ports, &key, patience)).unwrap();
        prop_assert!(rig.now() <= deadline.max(ManualClock::default().now()));
        for (begun, within) in slow.log.into_inner().unwrap() {
            prop_assert!(begun < deadline && after(begun, within) <= deadline);
        }
        let slept: Duration = rig.clock.sleeps().into_iter().sum();
        prop_assert!(slept <= Duration::from_millis(longest_ms));
    }
}

/// Full jitter: pauses are spread evenly between nothing and the cap, which doubles.
#[tokio::test]
async fn the_pauses_are_spread_over_the_whole_of_each_step() {
    let mut first_four = vec![Vec::new(); 4];
    for seed in 0..400 {
        let mut rig = Rig::new();
        rig.random = SeededRandom::new(seed);
        say(&rig, [Ok(stands(JobStatus::Processing))]);
        poll_a(&rig, MINUTE).await;
        for (pauses, pause) in first_four.iter_mut().zip(rig.clock.sleeps()) {
            pauses.push(pause);
        }
    }
    for (step, pauses) in (0_u32..).zip(&first_four) {
        let longest = SECOND * (1 << step);
        assert!(pauses.iter().all(|pause| (PAUSE_MIN..=longest).contains(pause)));
        for quarter in 0..4_u32 {
            let here = pauses.iter().filter(|pause| {
                **pause > longest / 4 * quarter && **pause <= longest / 4 * (quarter + 1)
            });
            let here = here.count();
            assert!((60..=140).contains(&here), "step {step}, quarter {quarter}: {here} of 400");
        }
    }
}
