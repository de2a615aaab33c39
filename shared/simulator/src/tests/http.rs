//! The platform behind a real socket, with a real receiver.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::signature::sign;
use crate::{Config, Detail, Running, SignatureEncoding, SystemClock, serve, start};

/// Longest wait for anything in these tests.
const PATIENCE: Duration = Duration::from_secs(20);

async fn simulator(change: impl FnOnce(&mut Config)) -> Running {
    let mut config = Config { speed: 1_000.0, ..Config::default() };
    change(&mut config);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    start(listener, config, Arc::new(SystemClock)).unwrap()
}

fn client() -> reqwest::Client {
    tls::client().no_proxy().timeout(PATIENCE).build().unwrap()
}

fn request(running: &Running, method: &str, target: &str) -> reqwest::RequestBuilder {
    let url = format!("{}{target}", running.base_url());
    client().request(method.parse().unwrap(), url).header("X-Api-Key", "simulated-key")
}

async fn submit(running: &Running, url: &str) -> reqwest::Result<reqwest::Response> {
    let body = json!({ "url": url, "processing_mode": "async" });
    request(running, "POST", "/v1/extract").json(&body).send().await
}

fn books(running: &Running) -> Value {
    running.with_platform(|platform, now| {
        platform.roll(now);
        platform.books(Detail::Jobs)
    })
}

/// Accepts connections one after another, hands out what it read and answers with a status line.
async fn receiver(
    mut status_lines: Vec<&'static str>,
) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while !status_lines.is_empty() {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = read_request(&mut stream).await;
            let answer = format!(
                "HTTP/1.1 {}\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                status_lines.remove(0)
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            tell.send(request).unwrap();
        }
    });
    (addr, told)
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        let mut buffer = [0; 4_096];
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the request ended early");
        bytes.extend_from_slice(&buffer[..count]);
    }
}

#[tokio::test]
async fn a_job_is_submitted_read_and_announced_over_sockets() {
    let running = simulator(|_| {}).await;
    let (addr, mut told) = receiver(vec!["302 Found", "200 OK"]).await;
    let webhook: Value = request(&running, "POST", "/v1/webhooks")
        .json(
            &json!({ "url": format!("http://{addr}/hook?a=b"), "event_type": "extract_completed" }),
        )
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let answer = submit(&running, "https://a.example/").await.unwrap();
    assert_eq!(answer.status(), 202);
    assert_eq!(answer.headers()["content-type"], "application/json");
    let accepted: Value = answer.json().await.unwrap();
    for _ in 0..2 {
        // The redirect is not followed: it is a refusal, and the same URL is tried again.
        let sent = tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap();
        let (head, body) = sent.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /hook?a=b HTTP/1.1\r\n"), "{head}");
        let key = webhook["secret"].as_str().unwrap().as_bytes();
        let signature = sign(SignatureEncoding::Sha256Hex, key, body.as_bytes());
        assert!(head.contains(&format!("X-Webhook-Signature: {signature}")), "{head}");
        let envelope: Value = serde_json::from_str(body).unwrap();
        assert_eq!(envelope["data"]["job_id"], accepted["job_id"]);
    }
    let target = accepted["status_url"].as_str().unwrap().to_owned();
    let job: Value = request(&running, "GET", &target).send().await.unwrap().json().await.unwrap();
    assert_eq!(job["status"], "completed");
    running.stop.stop().await;
}

#[tokio::test]
async fn a_lost_answer_closes_the_connection_after_accepting_the_job() {
    let running = simulator(|config| config.faults.api.lost_answers = 1.0).await;
    let error = submit(&running, "https://a.example/").await.unwrap_err();
    assert!(!error.is_timeout() && !error.is_connect(), "{error:?}");
    assert_eq!(books(&running)["jobs"][0]["answer_lost"], true);
    running.stop.stop().await;
}

#[tokio::test]
async fn cut_bodies_are_noticed_and_slow_ones_arrive() {
    let running = simulator(|config| config.faults.api.cut_bodies = 1.0).await;
    let answer = request(&running, "GET", "/v1/extract/jobs").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.bytes().await.is_err());
    running.with_platform(|platform, _| {
        let mut faults = platform.faults().clone();
        faults.api.cut_bodies = 0.0;
        faults.api.slow_bodies = 1.0;
        platform.set_faults(faults);
    });
    let answer = request(&running, "GET", "/v1/extract/jobs").send().await.unwrap();
    let list: Value = answer.json().await.unwrap();
    assert_eq!(list["jobs"], json!([]));
    running.stop.stop().await;
}

#[tokio::test]
async fn a_hang_ends_at_its_bound_or_when_the_simulator_stops() {
    let hanging = |secs: f64| {
        move |config: &mut Config| {
            config.faults.api.hangs = 1.0;
            config.hang_max_secs = secs;
        }
    };
    let running = simulator(hanging(0.05)).await;
    assert!(request(&running, "GET", "/v1/extract/jobs").send().await.is_err());
    running.stop.stop().await;
    let running = simulator(hanging(3_600.0)).await;
    let call = tokio::spawn(request(&running, "GET", "/v1/extract/jobs").send());
    while running.with_platform(|platform, _| platform.counters.transport.is_empty()) {
        tokio::task::yield_now().await;
    }
    running.stop.stop().await;
    assert!(call.await.unwrap().is_err());
}

#[tokio::test]
async fn errors_without_a_body_and_deletions_are_empty_on_the_wire() {
    let running = simulator(|_| {}).await;
    let target = "/v1/batch/00000000-0000-4000-8000-000000000000";
    let answer = request(&running, "GET", target).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.content_length()), (404, Some(0)));
    assert!(!answer.headers().contains_key("content-type"));
    running.stop.stop().await;
}

#[tokio::test]
async fn an_oversized_body_is_refused() {
    let running = simulator(|_| {}).await;
    let body = vec![b' '; 8 * 1024 * 1024 + 1];
    let answer = request(&running, "POST", "/v1/extract").body(body).send().await.unwrap();
    assert_eq!(answer.status(), 413);
    running.stop.stop().await;
}

#[tokio::test]
async fn serving_ends_with_its_signal_and_bad_settings_never_begin() {
    let listen = || async { TcpListener::bind("127.0.0.1:0").await.unwrap() };
    let clock = Arc::new(SystemClock);
    serve(listen().await, Config::default(), clock.clone(), async {}).await.unwrap();
    let config = Config { speed: 0.0, ..Config::default() };
    let error = serve(listen().await, config, clock, async {}).await.unwrap_err();
    assert_eq!(error.to_string(), "setting `speed` must be a number from 0.001 to 1000000");
}

#[tokio::test]
async fn a_corpus_is_served_byte_for_byte_and_named_in_the_books() {
    let folder = tempfile::tempdir().unwrap();
    let texts = ["<p>é\u{1F600}\r\n</p>", "<p>two</p>", "three\u{0}"];
    std::fs::write(folder.path().join("a.html"), texts[0]).unwrap();
    std::fs::write(folder.path().join("b.html"), texts[1]).unwrap();
    std::fs::write(folder.path().join("c.md"), texts[2]).unwrap();
    std::fs::write(folder.path().join("ignored.bin"), [0xff]).unwrap();
    let corpus = Some(folder.path().to_owned());
    let running = simulator(|config| {
        config.corpus = corpus;
        config.job_median_secs = 0.0;
    })
    .await;
    let mut served = std::collections::BTreeSet::new();
    for i in 0..20 {
        let body = json!({ "url": format!("https://a.example/{i}"), "processing_mode": "async",
                           "formats": ["html", "markdown"] });
        let accepted: Value = request(&running, "POST", "/v1/extract")
            .json(&body)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let target = accepted["status_url"].as_str().unwrap().to_owned();
        let job: Value =
            request(&running, "GET", &target).send().await.unwrap().json().await.unwrap();
        let html = job["data"]["html"].as_str().unwrap();
        assert!(texts[..2].contains(&html));
        assert_eq!(job["data"]["markdown"], texts[2]);
        let books = running.with_platform(|platform, _| platform.books(Detail::Parts));
        let part = &books["jobs"][i]["parts"][0];
        assert_eq!(part["markdown"]["file"], "c.md");
        assert_eq!(part["html"]["file"], if html == texts[0] { "a.html" } else { "b.html" });
        assert_eq!(part["html"]["bytes"], html.len());
        served.insert(html.to_owned());
    }
    assert_eq!(served.len(), 2);
    running.stop.stop().await;
}
