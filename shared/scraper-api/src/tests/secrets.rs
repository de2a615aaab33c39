use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock};

use domain::envelope::EventType;
use domain::job::{JobId, Kind};
use domain::ports::{ApiError, Jobs, ListQuery, NewWebhook, WebhookId, Webhooks as _};
use domain::request::{FetchOptions, JobRequest};
use tokio::net::TcpListener;

use crate::config::ApiKey;
use crate::loopback::{Loopback, MARKER_KEY, Reply, WITHIN, api_at, config_at, json};

const MARKER_SECRET: &str = "whsec_marker-77aa";
const MARKER_BODY: &str = "marker-body-91c0";

/// Keeps every line that any crate logs, at every level.
struct Kept(Mutex<Vec<String>>);

impl log::Log for Kept {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = format!("{} {}", record.target(), record.args());
        self.0.lock().unwrap().push(line);
    }

    fn flush(&self) {}
}

fn kept_log() -> &'static Kept {
    static KEPT: OnceLock<Kept> = OnceLock::new();
    let kept = KEPT.get_or_init(|| Kept(Mutex::new(Vec::new())));
    if log::set_logger(kept).is_ok() {
        log::set_max_level(log::LevelFilter::Trace);
    }
    kept
}

/// `Debug` and the whole `Display` chain of an error.
fn shown(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = format!("{error:?} {error:#?} {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(text, " {error:?} {error}").unwrap();
        cause = error.source();
    }
    text
}

fn assert_clean(text: &str) {
    for marker in [MARKER_KEY, MARKER_SECRET, MARKER_BODY] {
        assert!(!text.contains(marker), "{marker} is in {text}");
    }
}

/// Every call once; what came back, as text.
async fn run_all(server: &Loopback) -> Vec<String> {
    let api = server.api();
    let mut texts = vec![format!("{api:?}")];
    let id = JobId::parse("job-1").unwrap();
    let webhook = WebhookId::parse("webhook-1").unwrap();
    let request = JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap();
    let mut note =
        |outcome: Result<String, String>| texts.push(outcome.unwrap_or_else(|text| text));
    note(api.extract(&id, WITHIN).await.map(|job| format!("{job:?}")).map_err(|e| shown(&e)));
    note(api.submit(&request, WITHIN).await.map(|id| format!("{id:?}")).map_err(|e| shown(&e)));
    note(
        api.extract_now(&request, WITHIN)
            .await
            .map(|page| format!("{page:?}"))
            .map_err(|e| shown(&e)),
    );
    let query = ListQuery { page: 1, page_size: 1, created_from: None, created_to: None };
    note(
        Jobs::list(&api, Kind::Extract, &query, WITHIN)
            .await
            .map(|list| format!("{list:?}"))
            .map_err(|e| shown(&e)),
    );
    let new = NewWebhook {
        url: "https://example.com/".to_owned(),
        event_type: EventType::completed(Kind::Extract),
        description: None,
    };
    note(
        api.create(&new, WITHIN).await.map(|created| format!("{created:?}")).map_err(|e| shown(&e)),
    );
    note(
        api.rotate_secret(&webhook, WITHIN)
            .await
            .map(|secret| format!("{secret:?}"))
            .map_err(|e| shown(&e)),
    );
    note(api.health(WITHIN).await.map(|health| format!("{health:?}")).map_err(|e| shown(&e)));
    texts
}

/// OB-01: neither key nor secrets nor bodies are in logs at trace level, in errors or in `Debug`,
/// whether all goes well, the answers are wrong, or the platform repeats the key in its message.
#[tokio::test]
async fn markers_are_nowhere() {
    let kept = kept_log();
    let good = format!(
        r#"{{"job_id":"job-1","status":"completed","id":"webhook-1","url":"https://example.com/",
        "event_type":"extract_completed","is_active":true,"secret":"{MARKER_SECRET}",
        "data":{{"html":"{MARKER_BODY}"}},"metadata":{{"x":"{MARKER_BODY}"}},"jobs":[]}}"#
    );
    let wrong = format!(r#"{{"job_id":["{MARKER_BODY}"],"secret":{{"x":"{MARKER_SECRET}"}}"#);
    let echo = format!(r#"{{"code":"{MARKER_KEY}","message":"no such key: {MARKER_KEY}"}}"#);
    let html = format!("<html>{MARKER_BODY}</html>");
    for reply in [
        json(200, &good),
        json(200, &wrong),
        json(200, &format!("\"{MARKER_BODY}\"")),
        json(200, &html),
        json(401, &echo),
        json(500, &html),
        json(422, &format!(r#"{{"detail":[{{"loc":["x"],"msg":"m","input":"{MARKER_BODY}"}}]}}"#)),
        json(301, &echo),
        Reply::Close(MARKER_BODY.as_bytes().to_vec()),
        Reply::Close(Vec::new()),
    ] {
        let server = Loopback::start(vec![reply]).await;
        run_all(&server).await.iter().for_each(|text| assert_clean(text));
        assert!(server.seen().iter().any(|seen| seen.headers.contains(MARKER_KEY)));
    }
    let lines = kept.0.lock().unwrap().join("\n");
    assert!(lines.contains("reqwest"), "the log was kept: {lines}");
    assert_clean(&lines);
}

/// OB-01: a key that is cut by the message's length is not left there in part.
#[tokio::test]
async fn key_at_the_cut_is_blotted_out() {
    let message = format!("{}{MARKER_KEY}", "x".repeat(295));
    let server = Loopback::json(400, &format!(r#"{{"message":"{message}"}}"#)).await;
    let error = server.api().extract(&JobId::parse("a").unwrap(), WITHIN).await.unwrap_err();
    assert_eq!(error.message, format!("{}[reda", "x".repeat(295)));
}

/// OB-01: the parts that hold the key do not show it.
#[test]
fn key_and_config_do_not_show_the_key() {
    let config = config_at("http://127.0.0.1:1");
    let key = ApiKey::parse(MARKER_KEY).unwrap();
    assert_clean(&format!("{key:?} {config:?} {config:#?} {:?}", key.header()));
    assert_eq!(format!("{:?}", key.header()), "Some(Sensitive)");
}

/// A health check goes without the key; a replaced key is used from then on.
#[tokio::test]
async fn keys_are_sent_where_they_belong() {
    let server = Loopback::json(200, r#"{"status":"ok"}"#).await;
    let api = server.api();
    api.health(WITHIN).await.unwrap();
    let _: Result<(), ApiError> = api.probe(WITHIN).await;
    api.set_key(ApiKey::parse("another-key").unwrap());
    let _: Result<(), ApiError> = api.probe(WITHIN).await;
    let seen = server.seen();
    assert!(!seen[0].headers.contains("x-api-key"), "{}", seen[0].headers);
    assert!(seen[1].headers.contains(MARKER_KEY));
    assert!(seen[2].headers.contains("another-key") && !seen[2].headers.contains(MARKER_KEY));
}

/// OB-01: nor does trouble with the connection show where it was going.
#[tokio::test]
async fn connection_trouble_is_told_without_the_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let api = Arc::new(api_at(&base_url));
    let error = api.extract(&JobId::parse("a").unwrap(), WITHIN).await.unwrap_err();
    assert_clean(&shown(&error));
    assert!(!error.message.contains(&base_url), "{error}");
}

/// OB-01: what the platform says of a job is kept in the ledger and shown; the key is not in it,
/// not even where the text is cut.
#[tokio::test]
async fn a_jobs_own_error_shows_no_key() {
    let said = format!("{}{MARKER_KEY}", "x".repeat(295));
    let failed = format!(
        r#"{{"job_id":"job-1","status":"failed","error":{{"code":"E {MARKER_KEY}","message":"{said}","retryable":true}}}}"#
    );
    let server = Loopback::json(200, &failed).await;
    let id = JobId::parse("job-1").unwrap();
    let job = server.api().extract(&id, WITHIN).await.unwrap();
    let error = job.error.unwrap();
    let shown = format!("{} {}", error.code, error.message);
    assert!(shown.contains("E [redacted]") && !shown.contains(&MARKER_KEY[..3]), "{shown}");
}
