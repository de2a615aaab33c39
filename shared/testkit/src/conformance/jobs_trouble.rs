//! [`domain::ports::Jobs`]: what trouble means, and that no call outlasts its deadline.

use std::fmt::Debug;
use std::time::Duration;

use domain::job::{JobId, JobKey, Kind};
use domain::ports::{ApiError, ApiErrorKind, PageRequest, SubmitError};
use domain::request::JobRequest;
use domain::time::between;

use super::jobs::{WITHIN, accept, extract, list_all, one_of_each_kind, page, query};
use super::jobs_subject::{CallOf, Fate, JobsSubject, Trouble};
use super::samples::extract_request;

/// Most calls until the trouble that was asked for must have come.
const TRIES: u32 = 200;
/// A deadline that is over long before a hang.
const SHORT: Duration = Duration::from_millis(250);
/// Longer than any list lags behind.
const LAG: Duration = Duration::from_mins(1);

/// Troubles that an answer's status tells.
const TOLD: [Trouble; 7] = [
    Trouble::Denied,
    Trouble::PaymentRequired,
    Trouble::Throttled,
    Trouble::ThrottledFor,
    Trouble::Unavailable,
    Trouble::BadGateway,
    Trouble::Unreadable,
];

/// What this trouble is told as: kind, status, whether with a wait.
fn told(trouble: Trouble) -> (ApiErrorKind, Option<u16>, bool) {
    match trouble {
        Trouble::Denied => (ApiErrorKind::Denied, Some(401), false),
        Trouble::PaymentRequired => (ApiErrorKind::PaymentRequired, Some(402), false),
        Trouble::Throttled => (ApiErrorKind::Throttled, Some(429), false),
        Trouble::ThrottledFor => (ApiErrorKind::Throttled, Some(429), true),
        Trouble::Unavailable => (ApiErrorKind::Unavailable, Some(503), false),
        Trouble::BadGateway => (ApiErrorKind::Unavailable, Some(502), false),
        Trouble::Unreadable => (ApiErrorKind::Unreadable, Some(200), false),
        Trouble::Cut | Trouble::Slow => (ApiErrorKind::Unavailable, Some(200), false),
        Trouble::LostAnswer | Trouble::Hang => (ApiErrorKind::Unavailable, None, false),
    }
}

/// Whether an error is consistent in itself, whatever trouble it tells.
fn check(error: &ApiError) {
    let expected = match error.status {
        Some(401 | 403) => ApiErrorKind::Denied,
        Some(402) => ApiErrorKind::PaymentRequired,
        Some(404 | 410) => ApiErrorKind::Missing,
        Some(429) => ApiErrorKind::Throttled,
        None | Some(408 | 425 | 500..=599) => ApiErrorKind::Unavailable,
        Some(300..=499) => ApiErrorKind::Refused,
        Some(200..=299) if error.kind == ApiErrorKind::Unavailable => error.kind,
        Some(_) => ApiErrorKind::Unreadable,
    };
    assert_eq!(error.kind, expected, "{error:?}");
    assert!(error.retry_after.is_none_or(|wait| wait <= Duration::from_hours(1)), "{error:?}");
    assert!(error.message.chars().count() <= 300, "{error:?}");
    assert!(error.code.as_ref().is_none_or(|code| code.chars().count() <= 64), "{error:?}");
}

/// Makes calls until one meets the trouble that was asked for.
async fn meet<T: Debug, E: Debug>(
    subject: &JobsSubject,
    call: &CallOf,
    trouble: Trouble,
    make: impl AsyncFn() -> Result<T, E>,
    look: impl Fn(&E) -> &ApiError,
) -> E {
    for _ in 0..TRIES {
        subject.platform.trouble(call, trouble);
        let outcome = make().await;
        subject.platform.heal();
        let failure = outcome.expect_err("the call was to meet trouble");
        let error = look(&failure);
        check(error);
        if (error.kind, error.status, error.retry_after.is_some()) == told(trouble) {
            return failure;
        }
    }
    panic!("{call:?} never met {trouble:?}")
}

const fn api_error(error: &SubmitError) -> &ApiError {
    match error {
        SubmitError::Refused(error) | SubmitError::Unanswered(error) => error,
    }
}

/// Lets each reading call meet this trouble once.
async fn read_in_trouble(subject: &JobsSubject, key: &JobKey, trouble: Trouble, within: Duration) {
    let jobs = subject.jobs();
    let first = PageRequest { page: 1, page_size: 10 };
    let started = subject.platform.clock().now();
    let call = match key.kind {
        Kind::Extract => CallOf::Extract(key.job_id.clone()),
        Kind::Batch | Kind::Crawl => CallOf::Parent(key.clone()),
    };
    match key.kind {
        Kind::Extract => {
            let make = async || jobs.extract(&key.job_id, within).await;
            meet(subject, &call, trouble, make, |error| error).await;
        }
        Kind::Batch | Kind::Crawl => {
            let make = async || jobs.parent(key, first, within).await;
            meet(subject, &call, trouble, make, |error| error).await;
        }
    }
    let make = async || jobs.list(key.kind, &query(10), within).await;
    meet(subject, &CallOf::List(key.kind), trouble, make, |error| error).await;
    let make = async || jobs.probe(within).await;
    meet(subject, &CallOf::Probe, trouble, make, |error| error).await;
    if trouble == Trouble::Hang {
        let took = between(started, subject.platform.clock().now());
        assert!(took <= 3 * (within + subject.caps.slack), "{key}: {took:?}");
    }
}

/// All reading calls work.
async fn reads_well(subject: &JobsSubject, key: &JobKey) {
    match key.kind {
        Kind::Extract => assert!(extract(subject, key).await.unwrap().has_data),
        Kind::Batch | Kind::Crawl => {
            assert_eq!(page(subject, key, 1, 10).await.unwrap().items.unwrap().len(), 3);
        }
    }
    assert_eq!(list_all(subject, key.kind).await.len(), 1);
    subject.jobs().probe(WITHIN).await.unwrap();
}

/// Trouble of a reading call is told by what to do about it, and passes.
pub async fn trouble_of_reading_is_classified(subject: &JobsSubject) {
    for request in one_of_each_kind() {
        let key = accept(subject, &request, Fate::Completed).await;
        for trouble in TOLD.into_iter().chain([Trouble::Cut]) {
            if subject.can_meet(trouble) && trouble != Trouble::PaymentRequired {
                read_in_trouble(subject, &key, trouble, WITHIN).await;
                reads_well(subject, &key).await;
            }
        }
    }
}

/// A submission that the platform did not take is refused and made no job; one that it may have
/// taken is unanswered.
pub async fn trouble_of_submitting_is_classified(subject: &JobsSubject) {
    let request = extract_request("https://example.com/");
    for trouble in TOLD {
        if !subject.can_meet(trouble) {
            continue;
        }
        let make = async || subject.jobs().submit(&request, WITHIN).await;
        let error = meet(subject, &CallOf::Submit, trouble, make, api_error).await;
        match (trouble, error) {
            (Trouble::BadGateway | Trouble::Unreadable, SubmitError::Unanswered(_)) => {}
            (Trouble::BadGateway | Trouble::Unreadable, refused) => panic!("{refused:?}"),
            (_, SubmitError::Refused(_)) => {
                subject.platform.pass(LAG);
                assert!(list_all(subject, Kind::Extract).await.is_empty(), "{trouble:?}");
            }
            (_, unanswered) => panic!("{trouble:?}: {unanswered:?}"),
        }
    }
}

/// The one job that a kind's list names.
async fn only_job(subject: &JobsSubject, request: &JobRequest) -> JobId {
    subject.platform.pass(LAG);
    let listed = list_all(subject, request.kind()).await;
    assert_eq!(listed.len(), 1, "{}", request.kind());
    assert_eq!(listed[0].url.as_deref(), request.url());
    listed[0].job_id.clone()
}

/// A submission whose answer was lost made one job: the list names it, and it can be read.
pub async fn an_unanswered_submission_is_listed(subject: &JobsSubject) {
    if !subject.can_meet(Trouble::LostAnswer) {
        return;
    }
    for request in one_of_each_kind() {
        subject.platform.decide(Fate::Completed);
        subject.platform.trouble(&CallOf::Submit, Trouble::LostAnswer);
        let answer = subject.jobs().submit(&request, WITHIN).await;
        subject.platform.heal();
        match answer {
            Err(SubmitError::Unanswered(error)) => check(&error),
            answer => panic!("{answer:?}"),
        }
        let key = JobKey::new(request.kind(), only_job(subject, &request).await);
        subject.platform.finish(&key, &request, Fate::Completed);
        reads_well(subject, &key).await;
    }
}

/// A call that hangs ends in time, a submission as unanswered.
pub async fn a_hanging_call_ends_in_time(subject: &JobsSubject) {
    if !subject.can_meet(Trouble::Hang) {
        return;
    }
    for request in one_of_each_kind() {
        subject.platform.decide(Fate::Completed);
        subject.platform.trouble(&CallOf::Submit, Trouble::Hang);
        let started = subject.platform.clock().now();
        let answer = subject.jobs().submit(&request, SHORT).await;
        let took = between(started, subject.platform.clock().now());
        subject.platform.heal();
        assert!(matches!(answer, Err(SubmitError::Unanswered(_))), "{answer:?}");
        assert!(took <= SHORT + subject.caps.slack, "{took:?}");
        let key = JobKey::new(request.kind(), only_job(subject, &request).await);
        subject.platform.finish(&key, &request, Fate::Completed);
        read_in_trouble(subject, &key, Trouble::Hang, SHORT).await;
        reads_well(subject, &key).await;
    }
}

/// A deadline counts for the body, too; a status that came before it stays known.
pub async fn a_slow_body_ends_in_time(subject: &JobsSubject) {
    if !subject.can_meet(Trouble::Slow) {
        return;
    }
    for request in one_of_each_kind() {
        let key = accept(subject, &request, Fate::Completed).await;
        read_in_trouble(subject, &key, Trouble::Slow, SHORT).await;
    }
    subject.platform.trouble(&CallOf::Probe, Trouble::Slow);
    subject.jobs().probe(WITHIN).await.unwrap();
    subject.platform.heal();
    let job_id = JobId::parse("nobody").unwrap();
    let call = CallOf::Extract(job_id.clone());
    for _ in 0..TRIES {
        subject.platform.trouble(&call, Trouble::Slow);
        let error = subject.jobs().extract(&job_id, SHORT).await.unwrap_err();
        subject.platform.heal();
        check(&error);
        if error.kind == ApiErrorKind::Missing {
            return;
        }
    }
    panic!("a slow 404 is still a 404");
}
