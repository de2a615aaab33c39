use std::time::Duration;

use domain::job::{JobError, JobId, JobStatus};
use domain::ports::{ApiErrorKind, Jobs as _, SubmitError};
use domain::request::{FetchOptions, Format, JobRequest};

use crate::loopback::{Loopback, WITHIN};

fn job() -> JobId {
    JobId::parse("job-1").unwrap()
}

/// WK-16: nulls, empty objects, absent and unknown fields, and fields of a wrong type.
#[tokio::test]
async fn optional_fields_may_be_anything() {
    let failed = |error: Option<JobError>| (JobStatus::Failed, error, false);
    let completed = |has_data| (JobStatus::Completed, None, has_data);
    let error = |code: &str, retryable| Some(JobError::new(code, "m", retryable));
    for (fields, expected) in [
        (r#""status":"failed","error":null"#, failed(None)),
        (r#""status":"failed""#, failed(None)),
        (r#""status":"failed","error":"text""#, failed(None)),
        (
            r#""status":"failed","error":{"code":"NEW","message":"m","retryable":true}"#,
            failed(error("NEW", true)),
        ),
        (
            r#""status":"failed","error":{"code":"X","message":"m","retryable":null,"new":[1]}"#,
            failed(error("X", false)),
        ),
        (r#""status":"completed","data":null"#, completed(false)),
        (r#""status":"completed","data":{}"#, completed(false)),
        (r#""status":"completed","data":[]"#, completed(false)),
        (r#""status":"completed","data":{"html":null,"markdown":""}"#, completed(false)),
        (r#""status":"completed","data":{"html":null,"markdown":"x"}"#, completed(true)),
        (r#""status":"completed","data":{"html":"x","links":null},"new":{}"#, completed(true)),
        (r#""status":"completed","metadata":null,"tokens_charged":"1""#, completed(false)),
        (r#""status":"expired","created_at":7"#, (JobStatus::from_api("expired"), None, false)),
    ] {
        let server = Loopback::json(200, &format!(r#"{{"job_id":"job-1",{fields}}}"#)).await;
        let read = server.api().extract(&job(), WITHIN).await.unwrap();
        assert_eq!((read.status, read.error, read.has_data), expected, "{fields}");
        assert_eq!(read.created_at, None);
    }
}

/// What is kept is what came, byte for byte: white space, order, spelling of numbers, escapes.
#[tokio::test]
async fn answer_is_kept_byte_for_byte() {
    let body = " {\n\"status\" : \"completed\", \"n\":1.0e+02, \"big\":12345678901234567890123,\t\
                \"job_id\":\"job-1\", \"data\":{\"html\":\"\\u00e4 ä \\/\"}, \"x\":{\"b\":1,\"a\":2}}\n";
    let server = Loopback::json(200, body).await;
    let read = server.api().extract(&job(), WITHIN).await.unwrap();
    assert_eq!(&*read.raw.0, body);
}

/// SC-12: a creation time in any spelling, and none at all.
#[tokio::test]
async fn creation_times_are_read_leniently() {
    for (text, expected) in [
        ("\"2026-01-01T00:00:00\"", Some("2026-01-01T00:00:00Z")),
        ("\"2026-01-01T00:00:00+0000\"", Some("2026-01-01T00:00:00Z")),
        ("\"2026-01-01 00:00:00.721z\"", Some("2026-01-01T00:00:00.721Z")),
        ("\"yesterday\"", None),
        ("1767225600", None),
        ("null", None),
    ] {
        let body = format!(r#"{{"job_id":"job-1","status":"queued","created_at":{text}}}"#);
        let server = Loopback::json(200, &body).await;
        let read = server.api().extract(&job(), WITHIN).await.unwrap();
        assert_eq!(read.created_at, expected.map(|text| text.parse().unwrap()), "{text}");
    }
}

#[tokio::test]
async fn submissions_say_what_is_asked_for() {
    let server = Loopback::json(202, r#"{"job_id":"job-1","status":"queued"}"#).await;
    let api = server.api();
    let options = FetchOptions {
        formats: vec![Format::Html, Format::Markdown],
        render_js: true,
        proxy_country: Some("DE".to_owned()),
    };
    let plain = FetchOptions::default;
    let urls = ["https://a.example/", "https://b.example/"];
    for request in [
        JobRequest::extract("https://a.example/?q=ä", options).unwrap(),
        JobRequest::batch(urls, plain()).unwrap(),
        JobRequest::crawl("https://a.example/", plain(), 2, 50).unwrap(),
    ] {
        assert_eq!(api.submit(&request, WITHIN).await, Ok(job()));
    }
    let seen = server.seen();
    let sent: Vec<_> = seen.iter().map(|seen| (seen.target.as_str(), seen.body.as_str())).collect();
    assert_eq!(
        sent,
        [
            (
                "/v1/extract",
                r#"{"url":"https://a.example/?q=ä","processing_mode":"async","formats":["html","markdown"],"render_js":true,"proxy":{"country":"DE"}}"#
            ),
            (
                "/v1/batch",
                r#"{"urls":["https://a.example/","https://b.example/"],"render_js":false}"#
            ),
            ("/v1/crawl", r#"{"url":"https://a.example/","depth":2,"limit":50,"render_js":false}"#),
        ]
    );
    assert!(seen.iter().all(|seen| seen.method == "POST"));
    assert!(seen[0].headers.to_lowercase().contains("content-type: application/json"));
}

#[tokio::test]
async fn page_is_extracted_at_once() {
    let body = r##"{"data":{"html":null,"markdown":"# \u00c4"},"metadata":{"a": 1.0},"tokens_charged":1}"##;
    let server = Loopback::json(200, body).await;
    let request = JobRequest::extract("https://a.example/", FetchOptions::default()).unwrap();
    let page = server.api().extract_now(&request, Duration::from_millis(1)).await.unwrap();
    assert_eq!((page.html, page.markdown.as_deref()), (None, Some("# Ä")));
    assert_eq!(&*page.metadata.unwrap().0, r#"{"a": 1.0}"#);
    assert_eq!((page.tokens_charged, &*page.raw.0), (Some(1), body));
    let sent = server.seen()[0].body.clone();
    assert!(sent.contains(r#""processing_mode":"sync""#), "{sent}");
    assert!(sent.contains(r#""timeout":1000"#), "the shortest that the platform takes: {sent}");
}

#[tokio::test]
async fn failed_extraction_says_why() {
    let body = r#"{"error":{"code":"CAPTCHA_CHALLENGE","message":"m","retryable":true},"tokens_charged":0}"#;
    let server = Loopback::json(422, body).await;
    let request = JobRequest::extract("https://a.example/", FetchOptions::default()).unwrap();
    let error = server.api().extract_now(&request, WITHIN).await.unwrap_err();
    let SubmitError::Refused(error) = error else { panic!("{error:?}") };
    assert_eq!(error.code.as_deref(), Some("CAPTCHA_CHALLENGE"));
    assert_eq!((error.kind, error.retryable), (ApiErrorKind::Refused, Some(true)));
}

#[tokio::test]
async fn only_single_urls_are_extracted_at_once() {
    let server = Loopback::json(200, "{}").await;
    let request = JobRequest::batch(["https://a.example/"], FetchOptions::default()).unwrap();
    let error = server.api().extract_now(&request, WITHIN).await.unwrap_err();
    assert!(matches!(error, SubmitError::Refused(_)), "{error:?}");
    assert_eq!(server.seen().len(), 0);
}
