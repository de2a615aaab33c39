//! Deliveries of every kind, and what the log says of them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::bench::Folder;
use crate::disk::holders;
use crate::http::{NAME, Request, exchange, signature};
use crate::markers::{BODY, KEY, OLD_SECRET, PAGE, QUERY, SECRET, assert_none};
use crate::scripted::{Reply, Scripted, error};
use crate::serving::Serving;
use crate::watched::{FORMS, command};

/// Jobs of the scripted platform, by what becomes of a look at them.
const LOOKS: [&str; 9] =
    ["good", "failed", "denied", "unpaid", "slow", "broken", "garbage", "strange", "reset"];

/// A platform that repeats the key in whatever it answers.
fn answer(line: &str) -> Reply {
    let echo = |status| {
        let body = format!(
            r#"{{"code":"{KEY}","message":"no: {KEY}","correlation_id":"{KEY}","page":"{PAGE}"}}"#
        );
        Reply::Answer(status, "", body)
    };
    let ok = |body: String| Reply::Answer(200, "", body);
    let path = line.split(' ').nth(1).unwrap();
    let name = path.rsplit('/').next().unwrap();
    match name {
        "good" => ok(format!(
            r#"{{"job_id":"good","status":"completed","created_at":"2026-11-30T00:00:00Z",
            "data":{{"html":"{PAGE}","markdown":null}},"error":null}}"#
        )),
        "failed" => ok(format!(
            r#"{{"job_id":"failed","status":"failed","created_at":"2026-11-30T00:00:00Z",
            "data":null,"error":{{"code":"PERMANENT_BLOCK","message":"no","retryable":false}},
            "metadata":{{"x":"{PAGE}"}}}}"#
        )),
        "denied" => echo(401),
        "unpaid" => echo(402),
        "slow" => echo(429),
        "broken" => Reply::Answer(500, "", format!("<html>{KEY} {PAGE}</html>")),
        "garbage" => ok(format!(r#"{{"job_id":["{PAGE}"],"status":{{"{KEY}":"{PAGE}"}}"#)),
        // The account's own page is as strange: pauses end by a look at it.
        "strange" | "concurrency" => ok(format!("\"{PAGE} {KEY}\"")),
        "reset" => Reply::Reset,
        _ => error(503, "", "SERVICE_UNAVAILABLE", true),
    }
}

/// A delivery's body, with a field that nobody needs.
pub(crate) fn body(job: &str) -> Vec<u8> {
    let body = serde_json::json!({
        "job_id": job, "event_type": "extract_completed", "id": "d1", "note": BODY,
        "url": format!("https://example.com/?token={QUERY}"),
    });
    serde_json::to_vec(&body).unwrap()
}

/// Deliveries that are refused, each with the answer that it gets.
fn refused() -> Vec<(Request, u16)> {
    let body = body("good");
    let hex = signature(&body, SECRET);
    let hex = hex.trim_start_matches("sha256=");
    let under = |value: &str| Request::unsigned(&body).header(NAME, value);
    let coded =
        |coding: &str, body: &[u8]| Request::signed_with(body).header("content-encoding", coding);
    vec![
        (Request::unsigned(&body), 401),
        (under(""), 401),
        (under("sha256="), 401),
        (under(&hex[..40]), 401),
        (under(&format!("sha1={hex}")), 401),
        (under(SECRET), 401),
        (under(&format!("Bearer {KEY}")), 401),
        (under(&format!("sha256={hex}, sha256={SECRET}")), 401),
        (under(&SECRET.repeat(400)), 401),
        (under(&signature(b"1", SECRET)).header(NAME, "00".repeat(32)), 401),
        (under(&signature(&body, OLD_SECRET)), 401),
        (under(&signature(b"another body", SECRET)), 401),
        (under(&signature(&body, OLD_SECRET)).header("content-type", format!("a/b; x={KEY}")), 401),
        (under(&signature(&body, OLD_SECRET)).header("authorization", KEY), 401),
        (coded(BODY, &body), 415),
        (coded("gzip", BODY.as_bytes()), 400),
        (Request::signed_with(BODY.as_bytes()), 400),
        (Request::signed_with(format!(r#"{{"{BODY}":"{BODY}""#).as_bytes()), 400),
        (Request::signed_with(format!(r#"{{"job_id":["{BODY}"]}}"#).as_bytes()), 400),
        (Request::signed_with(format!(r#"{{"note":"{BODY}"}}"#).as_bytes()), 400),
        (Request::signed_with(&[BODY.as_bytes(), b"\xff"].concat()), 400),
        (Request::signed_with(BODY.repeat(200).as_bytes()), 413),
        (Request::unsigned(BODY.repeat(200).as_bytes()), 413),
    ]
}

impl Request {
    /// A delivery that is signed with the marked secret.
    pub(crate) fn signed_with(body: &[u8]) -> Self {
        Self::unsigned(body).header(NAME, signature(body, SECRET))
    }
}

/// Bytes that are no request, or none for us.
fn nonsense() -> Vec<Vec<u8>> {
    [
        format!("{BODY}\r\n\r\n"),
        format!("POST /webhook?token={QUERY} HTTP/9.9\r\n{SECRET}\r\n\r\n"),
        format!("POST /{QUERY}?token={QUERY} HTTP/1.1\r\nhost: a\r\nx-api-key: {KEY}\r\n\r\n"),
        format!("DELETE /webhook?token={QUERY} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"),
        format!("POST /webhook HTTP/1.1\r\nhost: a\r\ncontent-length: {BODY}\r\n\r\n{BODY}"),
        format!("POST /webhook HTTP/1.1\r\n{NAME}: {SECRET}\r\n{KEY}\u{1}: {SECRET}\r\n\r\n"),
        format!("POST /webhook HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{BODY}"),
    ]
    .map(String::into_bytes)
    .into()
}

/// A server whose secrets are marked, with small bounds.
pub(crate) fn serve(folder: &Folder, form: &[&str]) -> tokio::process::Command {
    let mut serve = command(folder, form, &["serve", "--listen", "127.0.0.1:0"]);
    serve
        .env("GLEANER_WEBHOOK_SECRET", SECRET)
        .env("GLEANER_RECEIVER_BODY_BYTES", "4KiB")
        .env("GLEANER_RECEIVER_HEAD_TIMEOUT", "1s")
        .env("GLEANER_RECEIVER_BODY_TIMEOUT", "1s")
        .env("GLEANER_LIMITS_SECRET_COOLDOWN", "100ms");
    serve
}

/// OB-01, OB-02: deliveries that are refused are told by reason, lengths and a short hash, and by
/// no value; so is what the platform answers when it is asked about the others.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_ob_02_deliveries_are_told_by_their_shape() {
    for form in FORMS {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let (asked, mut looks) = tokio::sync::mpsc::unbounded_channel();
        let platform = Scripted::start(move |_, line| {
            let name = line.split(' ').nth(1).unwrap().rsplit('/').next().unwrap().to_owned();
            if LOOKS.contains(&name.as_str()) && seen.lock().unwrap().insert(name) {
                let _ = asked.send(());
            }
            answer(line)
        })
        .await;
        let folder = Folder::new(&platform.url);
        let mut server = Serving::start(serve(&folder, form)).await;
        for (position, (request, status)) in refused().into_iter().enumerate() {
            let answer = request.answer(server.addr).await;
            assert_eq!(crate::http::status(&answer), status, "{position}: {answer}");
            assert_none(&answer, &[], "an answer");
        }
        for bytes in nonsense() {
            let answer = exchange(server.addr, &bytes).await;
            assert!(!answer.contains(" 202 "), "{answer}");
            assert_none(&answer, &[], "an answer");
        }
        let mut signatures = Vec::new();
        for job in LOOKS {
            let body = body(job);
            signatures.push(signature(&body, SECRET).trim_start_matches("sha256=").to_owned());
            let request = Request::signed_with(&body).at("/webhook");
            assert_eq!(request.send(server.addr).await, 202, "{job}");
        }
        for _ in LOOKS {
            let look = tokio::time::timeout(std::time::Duration::from_mins(1), looks.recv());
            look.await.expect("every job is looked at").unwrap();
        }
        server.wait_for("put off").await;
        server.wait_for("stored").await;
        server.wait_for("given up").await;
        let (code, talk) = server.stop("TERM").await;
        assert_eq!(code, Some(0), "{talk}");
        assert_none(&talk, &[], "the server");
        for signature in &signatures {
            assert!(!talk.contains(&signature[..16]), "{talk}");
        }
        assert!(!talk.contains("panicked"), "{talk}");
        assert_eq!(holders(folder.path(), &[KEY, SECRET, BODY]), Vec::<String>::new());
        for needed in ["signature_mismatch", "signature_missing", "body_hash", "secrets"] {
            assert!(talk.contains(needed), "{needed}: {talk}");
        }
    }
}

/// OB-02: each kind of mismatch is told with what is needed to find its cause.
#[tokio::test(flavor = "multi_thread")]
async fn ob_02_each_mismatch_is_told_by_code_and_lengths() {
    let folder = Folder::new("http://127.0.0.1:9");
    let mut server = Serving::start(serve(&folder, &["--json"])).await;
    let body = body("good");
    let hex = signature(&body, SECRET);
    let hex = hex.trim_start_matches("sha256=").to_owned();
    let other = signature(&body, OLD_SECRET);
    for (value, code) in [
        (None, "signature_missing"),
        (Some(String::new()), "signature_empty_digest"),
        (Some("sha256=".to_owned()), "signature_empty_digest"),
        (Some(hex[..40].to_owned()), "signature_wrong_length"),
        (Some(format!("sha1={hex}")), "signature_wrong_algorithm"),
        (Some(hex.repeat(200)), "signature_header_too_long"),
        (Some(other), "signature_mismatch"),
    ] {
        let request = Request::unsigned(&body).header("content-type", "application/json; a=b");
        let request = match &value {
            Some(value) => request.header(NAME, value),
            None => request,
        };
        assert_eq!(request.send(server.addr).await, 401, "{code}");
        server.wait_for(&format!("\"{code}\"")).await;
    }
    let (_, talk) = server.stop("TERM").await;
    assert_none(&talk, &[], "the server");
    assert!(!talk.contains(&hex[..16]), "{talk}");
    let told = talk.lines().filter_map(|line| serde_json::from_str(line).ok());
    let told = told.map(|line: Value| line["fields"].clone());
    let mut told = told.filter(|fields| fields["code"] == "signature_mismatch");
    let told = told.next().expect("the mismatch is told");
    for (name, fact) in [
        ("body_bytes", json!(body.len())),
        ("signature_bytes", json!("64")),
        ("content_type", json!("application/json")),
        ("encoded", json!(false)),
        ("secrets", json!("current")),
    ] {
        assert_eq!(told[name], fact, "{name}: {told}");
    }
    assert_eq!(told["body_hash"].as_str().unwrap().len(), 12, "{told}");
}
