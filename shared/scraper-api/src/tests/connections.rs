use std::sync::Arc;
use std::time::Duration;

use domain::job::JobId;
use domain::ports::{ApiErrorKind, Jobs as _, SubmitError};
use domain::request::{FetchOptions, JobRequest};
use tokio::net::TcpListener;

use crate::client::ScraperApi;
use crate::loopback::{HandClock, Loopback, Reply, WITHIN, answer, api_at, config_at, json};

const QUEUED: &str = r#"{"job_id":"job-1","status":"queued"}"#;

fn job() -> JobId {
    JobId::parse("job-1").unwrap()
}

fn request() -> JobRequest {
    JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap()
}

/// WK-18: a GET that meets a connection which the server closed is made again on a fresh one.
#[tokio::test]
async fn get_is_repeated_once_when_the_pooled_connection_was_closed() {
    // The second request is read and then the connection is closed without a word, as when the
    // request crosses the server's close on its way.
    let replies = vec![json(200, QUEUED), Reply::Close(Vec::new()), json(200, QUEUED)];
    let server = Loopback::start(replies).await;
    let api = server.api();
    api.extract(&job(), WITHIN).await.unwrap();
    api.extract(&job(), WITHIN).await.unwrap();
    let connections: Vec<_> = server.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [0, 0, 1], "pooled, pooled and closed, fresh");
}

/// WK-18: once only; a server that closes every connection is unavailable.
#[tokio::test]
async fn get_is_not_repeated_twice() {
    let server = Loopback::start(vec![Reply::Close(Vec::new())]).await;
    let error = server.api().extract(&job(), WITHIN).await.unwrap_err();
    assert_eq!((error.kind, error.status), (ApiErrorKind::Unavailable, None));
    assert_eq!(server.seen().len(), 2);
}

/// WK-18: the second try has no time of its own.
#[tokio::test]
async fn second_try_ends_with_the_same_deadline() {
    let replies = vec![Reply::Close(Vec::new()), Reply::Stall(Vec::new())];
    let server = Loopback::start(replies).await;
    let error = server.api().extract(&job(), Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(error.message, "no answer came in time");
}

/// WK-18: a POST is never repeated; its job may exist.
#[tokio::test]
async fn post_is_not_repeated_when_the_connection_was_closed() {
    let replies = vec![json(200, QUEUED), Reply::Close(Vec::new()), json(202, QUEUED)];
    let server = Loopback::start(replies).await;
    let api = server.api();
    api.extract(&job(), WITHIN).await.unwrap();
    let error = api.submit(&request(), WITHIN).await.unwrap_err();
    assert!(matches!(error, SubmitError::Unanswered(_)), "{error:?}");
    assert_eq!(server.seen().len(), 2);
}

/// WK-18: a server that closes each connection after its answer costs no answer.
#[tokio::test]
async fn idle_closes_cost_no_answer() {
    let close = Reply::Close(answer(200, &[], QUEUED.as_bytes()));
    let server = Loopback::start(vec![close]).await;
    let api = server.api();
    for _ in 0..5 {
        api.extract(&job(), WITHIN).await.unwrap();
    }
}

/// WK-18: a connection that was idle for too long is not used again, not even by a POST.
#[tokio::test]
async fn connections_are_not_used_past_their_idle_time() {
    let server = Loopback::json(202, QUEUED).await;
    let mut config = config_at(&server.base_url);
    config.pool_idle_timeout = Duration::from_nanos(1);
    let api = ScraperApi::new(config, Arc::new(HandClock::default())).unwrap();
    api.extract(&job(), WITHIN).await.unwrap();
    api.submit(&request(), WITHIN).await.unwrap();
    let connections: Vec<_> = server.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [0, 1]);
}

/// WK-12: without a connection nothing was sent, so nothing can have been paid.
#[tokio::test]
async fn refused_connection_is_a_refusal() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = api_at(&base_url).submit(&request(), WITHIN).await.unwrap_err();
    let SubmitError::Refused(error) = error else { panic!("{error:?}") };
    assert_eq!((error.kind, error.status), (ApiErrorKind::Unavailable, None));
    assert!(error.message.to_lowercase().contains("refused"), "{error}");
}

/// WK-12: a redirect is not followed, and the error says so.
#[tokio::test]
async fn redirects_are_errors() {
    for status in [301, 302, 307, 308] {
        let elsewhere = Loopback::json(202, QUEUED).await;
        let target = format!("{}/elsewhere", elsewhere.base_url);
        let reply = answer(status, &[("location", &target)], b"");
        let server = Loopback::start(vec![Reply::Keep(reply)]).await;
        let error = server.api().extract(&job(), WITHIN).await.unwrap_err();
        assert_eq!((error.kind, error.status), (ApiErrorKind::Refused, Some(status)));
        assert!(error.message.contains("redirects are not followed"), "{error}");
        let error = server.api().submit(&request(), WITHIN).await.unwrap_err();
        assert!(matches!(error, SubmitError::Refused(_)), "{error:?}");
        assert_eq!(elsewhere.seen().len(), 0, "the key went nowhere else");
    }
}

/// The client for the platform itself is built with the system's root certificates; without any,
/// the error says what is missing.
#[test]
fn https_needs_root_certificates() {
    let config = config_at("https://scraper.geonode.io");
    if let Err(error) = ScraperApi::new(config, Arc::new(HandClock::default())) {
        assert!(error.to_string().contains("root certificates"), "{error}");
    }
}
