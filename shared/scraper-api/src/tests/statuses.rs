use std::time::Duration;

use domain::job::JobId;
use domain::ports::{ApiErrorKind, Jobs as _, SubmitError};
use domain::request::{FetchOptions, JobRequest};

use crate::loopback::{Loopback, Reply, WITHIN, answer, json};

fn job() -> JobId {
    JobId::parse("job-1").unwrap()
}

fn request() -> JobRequest {
    JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap()
}

/// WK-12: each class of status, over HTTP, for a GET and for a POST.
#[tokio::test]
async fn statuses_are_classified() {
    use ApiErrorKind as Kind;
    for (status, kind, is_refused) in [
        (400, Kind::Refused, true),
        (401, Kind::Denied, true),
        (402, Kind::PaymentRequired, true),
        (403, Kind::Denied, true),
        (408, Kind::Unavailable, false),
        (409, Kind::Refused, true),
        (422, Kind::Refused, true),
        (425, Kind::Unavailable, true),
        (429, Kind::Throttled, true),
        (500, Kind::Unavailable, false),
        (502, Kind::Unavailable, false),
        (503, Kind::Unavailable, true),
        (504, Kind::Unavailable, false),
    ] {
        let server = Loopback::json(status, r#"{"code":"X","message":"m","retryable":true}"#).await;
        let api = server.api();
        let error = api.extract(&job(), WITHIN).await.unwrap_err();
        assert_eq!((error.kind, error.status), (kind, Some(status)));
        assert_eq!(error.code.as_deref(), Some("X"));
        assert_eq!((error.message.as_str(), error.retryable), ("m", Some(true)));
        let submitted = api.submit(&request(), WITHIN).await.unwrap_err();
        let was_refused = matches!(&submitted, SubmitError::Refused(refused) if *refused == error);
        let was_unanswered =
            matches!(&submitted, SubmitError::Unanswered(unanswered) if *unanswered == error);
        assert_eq!((was_refused, was_unanswered), (is_refused, !is_refused), "{status}");
        assert_eq!(server.seen().len(), 2, "{status} is not repeated here");
    }
}

/// WK-11: 404 and 410 are `Missing`, not an outage; a later 200 is read.
#[tokio::test]
async fn missing_jobs_are_missing() {
    let queued = r#"{"job_id":"job-1","status":"queued"}"#;
    let server =
        Loopback::start(vec![json(404, ""), json(404, ""), json(200, queued), json(410, "")]).await;
    let api = server.api();
    for expected in [Some(404), Some(404), None, Some(410)] {
        let error = api.extract(&job(), WITHIN).await.err();
        assert_eq!(error.as_ref().and_then(|error| error.status), expected);
        assert!(error.is_none_or(|error| error.kind == ApiErrorKind::Missing));
    }
}

/// CL-06: a final 429, a passing one and an empty account can be told apart.
#[tokio::test]
async fn quota_and_rate_limit_differ() {
    let body =
        |retryable| format!(r#"{{"code":"RATE_LIMITED","message":"m","retryable":{retryable}}}"#);
    let limited = answer(429, &[("retry-after", "7")], body(true).as_bytes());
    let replies = vec![json(429, &body(false)), Reply::Keep(limited), json(402, "")];
    let server = Loopback::start(replies).await;
    let api = server.api();
    let mut read = Vec::new();
    for _ in 0..3 {
        let error = api.extract(&job(), WITHIN).await.unwrap_err();
        read.push((error.kind, error.retryable, error.retry_after.map(|wait| wait.as_secs())));
    }
    assert_eq!(
        read,
        [
            (ApiErrorKind::Throttled, Some(false), None),
            (ApiErrorKind::Throttled, Some(true), Some(7)),
            (ApiErrorKind::PaymentRequired, None, None),
        ]
    );
}

/// WK-12: 503 with `Retry-After` as a date is measured by the clock that the client was given.
#[tokio::test]
async fn retry_after_dates_are_measured_by_the_given_clock() {
    for (text, wait) in [
        ("Thu, 01 Jan 2026 00:01:30 GMT", Some(90)),
        ("Thu, 01 Jan 2099 00:00:00 GMT", Some(3_600)),
        ("50 000", None),
    ] {
        let reply = Reply::Keep(answer(503, &[("retry-after", text)], b""));
        let server = Loopback::start(vec![reply]).await;
        let api = server.api();
        let error = api.extract(&job(), WITHIN).await.unwrap_err();
        assert_eq!(error.retry_after, wait.map(Duration::from_secs), "{text}");
    }
}

/// WK-12: HTML with 200, nothing, other JSON and bytes that are no text are no answers; a POST
/// that was answered so may have made a job.
#[tokio::test]
async fn unreadable_answers_say_so() {
    for (body, message) in [
        (&b"<!doctype html><p>secret"[..], "markup"),
        (b"", "empty"),
        (b"  ", "empty"),
        (b"[\"job-1\",\"completed\"]", "not an object"),
        (b"secret", "not the expected JSON"),
        (b"{\"job_id\":\"\xff\"}", "not UTF-8"),
    ] {
        let server = Loopback::start(vec![Reply::Keep(answer(200, &[], body))]).await;
        let api = server.api();
        let error = api.extract(&job(), WITHIN).await.unwrap_err();
        assert_eq!((error.kind, error.status), (ApiErrorKind::Unreadable, Some(200)));
        assert!(error.message.contains(message), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
        let error = api.submit(&request(), WITHIN).await.unwrap_err();
        assert!(matches!(error, SubmitError::Unanswered(_)), "{error:?}");
    }
}

/// WK-12: a 2xx answer without a usable job id is no acceptance that can be acted on.
#[tokio::test]
async fn acceptance_without_an_id_is_unanswered() {
    for body in ["{}", r#"{"job_id":null}"#, r#"{"job_id":""}"#, r#"{"job_id":".."}"#] {
        let server = Loopback::json(202, body).await;
        let error = server.api().submit(&request(), WITHIN).await.unwrap_err();
        let SubmitError::Unanswered(error) = error else { panic!("{error:?}") };
        assert_eq!(error.kind, ApiErrorKind::Unreadable);
    }
}
