//! Statuses and error shapes, call by call.

use serde_json::{Value, json};

use super::Stage;
use crate::{Call, Config, Platform};

const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

/// The contract's name for the shape of an error body.
fn shape(body: Option<&Value>) -> char {
    match body {
        None => 'D',
        Some(body) if body["error"]["code"].is_string() => 'C',
        Some(body) if body["code"].is_string() => 'A',
        Some(body) if body["detail"].is_array() => 'B',
        Some(body) if body["detail"].is_string() => 'E',
        Some(body) => panic!("no known shape: {body}"),
    }
}

#[test]
fn errors_have_the_documented_status_and_shape() {
    let mut stage = Stage::calm();
    let unknown = |path: &str| path.replace("ID", UNKNOWN);
    let long: Vec<String> = (0..1001).map(|i| format!("https://a.example/{i}")).collect();
    let cases: &[(&str, &str, Value, u16, char)] = &[
        ("GET", "/v1/extract/ID", Value::Null, 404, 'A'),
        ("GET", "/v1/extract/not-a-uuid", Value::Null, 404, 'A'),
        ("GET", "/v1/batch/ID", Value::Null, 404, 'D'),
        ("GET", "/v1/batch/not-a-uuid", Value::Null, 422, 'B'),
        ("DELETE", "/v1/batch/ID", Value::Null, 404, 'D'),
        ("GET", "/v1/crawl/ID", Value::Null, 404, 'D'),
        ("DELETE", "/v1/crawl/not-a-uuid", Value::Null, 422, 'B'),
        ("DELETE", "/v1/extract/ID", Value::Null, 405, 'E'),
        ("GET", "/v1/nothing", Value::Null, 404, 'E'),
        ("PUT", "/v1/webhooks", Value::Null, 405, 'E'),
        ("GET", "/v1/webhooks/ID", Value::Null, 404, 'A'),
        ("GET", "/v1/webhooks/nope", Value::Null, 422, 'B'),
        ("GET", "/v1/webhooks/ID/deliveries", Value::Null, 404, 'A'),
        ("POST", "/v1/webhooks/ID/rotate-secret", Value::Null, 404, 'A'),
        ("PATCH", "/v1/webhooks/ID", json!({}), 404, 'A'),
        ("DELETE", "/v1/webhooks/ID", Value::Null, 404, 'A'),
        ("POST", "/v1/webhooks", json!({}), 422, 'A'),
        (
            "POST",
            "/v1/webhooks",
            json!({ "url": "nope", "event_type": "extract_completed" }),
            422,
            'A',
        ),
        ("POST", "/v1/webhooks", json!({ "url": "http://a.example", "event_type": "x" }), 422, 'A'),
        ("GET", "/v1/extract/jobs?page=0", Value::Null, 422, 'B'),
        ("GET", "/v1/extract/jobs?page_size=101", Value::Null, 422, 'B'),
        ("GET", "/v1/extract/jobs?status=done", Value::Null, 422, 'B'),
        ("GET", "/v1/extract/jobs?output=pdf", Value::Null, 422, 'B'),
        ("GET", "/v1/batch/jobs?start_date=soon", Value::Null, 422, 'B'),
        ("GET", "/v1/statistics?end_date=soon", Value::Null, 422, 'B'),
        ("POST", "/v1/extract", json!([]), 422, 'B'),
        ("POST", "/v1/extract", json!({}), 422, 'B'),
        ("POST", "/v1/extract", json!({ "url": "" }), 422, 'B'),
        ("POST", "/v1/extract", json!({ "url": "ftp://a.example" }), 400, 'A'),
        (
            "POST",
            "/v1/extract",
            json!({ "url": "https://a.example", "formats": ["pdf"] }),
            422,
            'B',
        ),
        ("POST", "/v1/extract", json!({ "url": "https://a.example", "timeout": 999 }), 422, 'B'),
        (
            "POST",
            "/v1/extract",
            json!({ "url": "https://a.example", "proxy": { "country": "de" } }),
            422,
            'B',
        ),
        (
            "POST",
            "/v1/extract",
            json!({ "url": "https://a.example", "wait_config": { "wait_timeout": 30_001 } }),
            422,
            'B',
        ),
        (
            "POST",
            "/v1/extract",
            json!({ "url": "https://a.example", "headers": { "a": 1 } }),
            422,
            'B',
        ),
        ("POST", "/v1/batch", json!({ "urls": [] }), 422, 'D'),
        ("POST", "/v1/batch", json!({ "urls": long }), 422, 'D'),
        ("POST", "/v1/batch", json!({ "urls": ["nope"] }), 422, 'D'),
        (
            "POST",
            "/v1/batch",
            json!({ "urls": ["https://a.example", "nope"], "ignore_invalid_urls": false }),
            422,
            'D',
        ),
        ("POST", "/v1/crawl", json!({ "url": "https://a.example", "depth": 11 }), 422, 'D'),
        ("POST", "/v1/crawl", json!({ "url": "https://a.example", "limit": 10_001 }), 422, 'D'),
        ("POST", "/v1/crawl", json!({ "url": "nope" }), 422, 'D'),
        ("POST", "/sim/faults", json!("terrible"), 422, 'E'),
        ("POST", "/sim/faults", json!({ "api": { "errors": 2 } }), 422, 'E'),
        ("PATCH", "/sim/faults", json!({ "api": { "horrors": 1 } }), 422, 'E'),
    ];
    for (method, target, body, status, expected) in cases {
        let bytes = if body.is_null() { String::new() } else { body.to_string() };
        let answer = stage.call(method, &unknown(target), bytes.as_bytes());
        assert_eq!(answer.status, *status, "{method} {target} {body}");
        assert_eq!(shape(answer.body.as_ref()), *expected, "{method} {target} {body}");
    }
    assert_eq!(stage.books().len(), 0);
}

#[test]
fn a_missing_or_wrong_key_is_refused_everywhere_but_at_health() {
    let mut stage = Stage::calm();
    let cases = [
        ("/v1/extract/jobs", 401, 'A'),
        ("/v1/batch/jobs", 401, 'D'),
        ("/v1/crawl/jobs", 401, 'D'),
        ("/v1/webhooks", 401, 'A'),
        ("/v1/usage/concurrency", 401, 'A'),
        ("/sim/books", 401, 'A'),
        ("/sim/faults", 401, 'A'),
    ];
    for api_key in [None, Some(""), Some("Simulated-Key")] {
        let call = |platform: &mut Platform, path| {
            let call = Call { method: "GET", path, query: "", api_key, body: b"" };
            platform.call(&call, super::START)
        };
        for (path, status, expected) in cases {
            let answer = call(&mut stage.platform, path);
            assert_eq!((answer.status, shape(answer.body.as_ref())), (status, expected), "{path}");
        }
        assert_eq!(call(&mut stage.platform, "/health").status, 200);
    }
}

#[test]
fn flat_errors_carry_a_trace_id_of_their_own() {
    let mut stage = Stage::calm();
    let mut trace = || {
        let body = stage.get("/v1/extract/nope").body.unwrap();
        body["correlation_id"].as_str().unwrap().to_owned()
    };
    assert_ne!(trace(), trace());
}

#[test]
fn a_synchronous_extraction_answers_after_its_duration_and_leaves_no_job() {
    let mut stage = Stage::calm();
    let answer = stage.post("/v1/extract", &json!({ "url": "https://a.example/" }));
    assert_eq!(answer.status, 200);
    let crate::Transport::After(took) = answer.transport else { panic!("{answer:?}") };
    assert!(took.as_millis() > 500);
    let body = answer.body.unwrap();
    assert!(body["data"]["html"].as_str().unwrap().contains("https://a.example/"));
    assert_eq!(body["data"]["markdown"], Value::Null);
    assert_eq!(body["tokens_charged"], 1);
    assert_eq!(body["metadata"]["processing_mode"], "sync");
    assert_eq!(stage.books().len(), 0);
    let late = stage.post("/v1/extract", &json!({ "url": "https://a.example/", "timeout": 1000 }));
    assert_eq!((late.status, shape(late.body.as_ref())), (422, 'C'));
    let body = late.body.unwrap();
    assert_eq!(body["error"]["code"], "TIMEOUT");
    assert_eq!(body["error"]["retryable"], true);
    assert_eq!(body["tokens_charged"], 0);
}

#[test]
fn a_synchronous_extraction_that_waits_too_long_answers_504() {
    let mut stage = Stage::new(Config { job_median_secs: 10_000.0, ..Config::default() });
    let answer = stage.post("/v1/extract", &json!({ "url": "https://a.example/" }));
    assert_eq!((answer.status, shape(answer.body.as_ref())), (504, 'A'));
    assert_eq!(answer.body.unwrap()["retryable"], true);
    assert_eq!(answer.transport, crate::Transport::After(std::time::Duration::from_mins(2)));
}

#[test]
fn options_come_back_as_they_were_sent() {
    let mut stage = Stage::calm();
    let options = json!({
        "url": "https://a.example/x", "processing_mode": "async", "formats": ["markdown"],
        "render_js": true, "headers": { "x-a": "b" }, "proxy": { "country": "DE" },
        "wait_config": { "wait_until": "load", "wait_timeout": 30_000 },
    });
    let id = stage.accepted("/v1/extract", &options);
    stage.pass(3_600);
    let job = stage.read(&format!("/v1/extract/{id}"));
    let metadata = &job["metadata"];
    assert_eq!(metadata["formats"], json!(["markdown"]));
    assert_eq!(metadata["render_js"], true);
    assert_eq!(metadata["headers"], json!({ "x-a": "b" }));
    assert_eq!(metadata["proxy"], json!({ "country": "DE", "type": "residential" }));
    assert_eq!(metadata["wait_config"]["wait_until"], "load");
    assert_eq!(job["data"]["html"], Value::Null);
    assert!(job["data"]["markdown"].as_str().unwrap().len() > 1_000);
}
