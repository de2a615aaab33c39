use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use domain::job::JobId;
use domain::ports::{ApiErrorKind, Jobs as _, SubmitError};
use domain::request::{FetchOptions, JobRequest};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::client::ScraperApi;
use crate::loopback::{HandClock, Loopback, Reply, WITHIN, answer, config_at};

/// Enough for loopback, and all that a hang costs.
const SHORT: Duration = Duration::from_millis(100);

fn job() -> JobId {
    JobId::parse("job-1").unwrap()
}

fn request() -> JobRequest {
    JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn api_with_cap(server: &Loopback, body_bytes_max: usize) -> ScraperApi {
    let mut config = config_at(&server.base_url);
    config.body_bytes_max = body_bytes_max;
    ScraperApi::new(config, Arc::new(HandClock::default())).unwrap()
}

/// WK-17: silence before the head, after the head and in the middle of the body all end with the
/// deadline, for a GET and for a POST, whose job may exist.
#[tokio::test]
async fn silence_ends_with_the_deadline() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n".to_vec();
    let half = [&head[..], b"{\"job_id\":"].concat();
    for bytes in [Vec::new(), head, half] {
        let server = Loopback::start(vec![Reply::Stall(bytes)]).await;
        let api = server.api();
        let error = api.extract(&job(), SHORT).await.unwrap_err();
        assert_eq!(error.kind, ApiErrorKind::Unavailable, "{error}");
        assert!(error.message.contains("in time"), "{error}");

        let error = api.submit(&request(), SHORT).await.unwrap_err();
        assert!(matches!(error, SubmitError::Unanswered(_)), "{error:?}");
        assert!(server.seen().len() <= 2, "a call that hangs is not repeated");
    }
}

/// WK-17: an error's status is known before its body, so a body that hangs does not hide it.
#[tokio::test]
async fn silent_body_of_an_error_leaves_its_status() {
    let head = b"HTTP/1.1 402 Payment Required\r\ncontent-length: 100\r\n\r\n{".to_vec();
    let server = Loopback::start(vec![Reply::Stall(head)]).await;
    let mut config = config_at(&server.base_url);
    config.error_body_within = SHORT;
    let api = ScraperApi::new(config, Arc::new(HandClock::default())).unwrap();
    let error = api.submit(&request(), WITHIN).await.unwrap_err();
    let SubmitError::Refused(error) = error else { panic!("{error:?}") };
    assert_eq!((error.kind, error.status), (ApiErrorKind::PaymentRequired, Some(402)));
}

/// WK-17: a stream without end stops at the byte cap, with and without a declared length.
#[tokio::test]
async fn endless_body_stops_at_the_cap() {
    for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n"]
    {
        let reply = Reply::Endless(head.as_bytes().to_vec(), vec![0; 64 * 1024]);
        let server = Loopback::start(vec![reply]).await;
        let error = api_with_cap(&server, 1_000_000).extract(&job(), WITHIN).await.unwrap_err();
        assert_eq!(error.kind, ApiErrorKind::TooLarge, "{error}");
    }
}

/// WK-17: the cap counts bytes after decompression; just below it the answer is read.
#[tokio::test]
async fn cap_counts_decompressed_bytes() {
    let bomb = gzip(&vec![b' '; 50_000_000]);
    assert!(bomb.len() < 1_000_000, "the bomb is small on the wire");
    let gzipped = |body: &[u8]| Reply::Keep(answer(200, &[("content-encoding", "gzip")], body));
    let server = Loopback::start(vec![gzipped(&bomb)]).await;
    let error = api_with_cap(&server, 1_000_000).extract(&job(), WITHIN).await.unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::TooLarge, "{error}");

    let body = r#"{"job_id":"job-1","status":"queued"}"#;
    let server = Loopback::start(vec![gzipped(&gzip(body.as_bytes()))]).await;
    let job_read = api_with_cap(&server, body.len()).extract(&job(), WITHIN).await.unwrap();
    assert_eq!(&*job_read.raw.0, body);
    assert!(server.seen()[0].headers.to_lowercase().contains("accept-encoding: gzip"));
    let error = api_with_cap(&server, body.len() - 1).extract(&job(), WITHIN).await.unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::TooLarge, "{error}");
}

/// WK-17: a body shorter or longer than its `Content-Length`, a cut compressed stream and a body
/// cut at its close are transient; for a POST the job may exist.
#[tokio::test]
async fn cut_bodies_are_transient() {
    let body = r#"{"job_id":"job-1","status":"queued"}"#;
    let with_length =
        |length: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
    let zipped = gzip(body.as_bytes());
    let cut = &zipped[..zipped.len() - 9];
    for bytes in [
        with_length(body.len() + 1).into_bytes(),
        with_length(body.len() - 1).into_bytes(),
        answer(200, &[("content-encoding", "gzip")], cut),
        b"HTTP/1.1 200 OK\r\n\r\n{\"job_id\":\"job-1\",".to_vec(),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"job".to_vec(),
    ] {
        let server = Loopback::start(vec![Reply::Close(bytes.clone())]).await;
        let api = server.api();
        let error = api.extract(&job(), WITHIN).await.unwrap_err();
        let shown = String::from_utf8_lossy(&bytes);
        assert_eq!(error.kind, ApiErrorKind::Unavailable, "{error} for {shown}");
        let error = api.submit(&request(), WITHIN).await.unwrap_err();
        assert!(matches!(error, SubmitError::Unanswered(_)), "{error:?} for {shown}");
    }
}
