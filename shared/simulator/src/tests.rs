//! The platform driven call by call, with a clock moved by hand.

mod config;
mod deliveries;
mod determinism;
mod faults;
mod http;
mod jobs;
mod lists;
mod scale;
mod shapes;
mod webhooks;

use std::time::Duration;

use serde_json::{Value, json};

use crate::deliveries::{Attempt, AttemptOutcome, WebhookRequest};
use crate::{Answer, Call, Config, Corpus, Faults, Moment, Platform};

/// 2026-06-01T00:00:00Z.
const START: Moment = Moment::from_millis(1_780_272_000_000);

/// A platform and the present moment.
struct Stage {
    platform: Platform,
    now: Moment,
}

impl Stage {
    fn new(config: Config) -> Self {
        Self { platform: Platform::new(config, Corpus::default()), now: START }
    }

    fn calm() -> Self {
        Self::new(Config::default())
    }

    fn with_faults(change: impl FnOnce(&mut Faults)) -> Self {
        let mut config = Config::default();
        change(&mut config.faults);
        Self::new(config)
    }

    fn pass(&mut self, secs: u64) -> Vec<Attempt> {
        self.now = self.now.plus(Duration::from_secs(secs));
        self.platform.advance(self.now)
    }

    fn call(&mut self, method: &str, target: &str, body: &[u8]) -> Answer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let api_key = Some("simulated-key");
        self.platform.call(&Call { method, path, query, api_key, body }, self.now)
    }

    fn get(&mut self, target: &str) -> Answer {
        self.call("GET", target, b"")
    }

    /// Reads a body that must come with 200.
    fn read(&mut self, target: &str) -> Value {
        let answer = self.get(target);
        assert_eq!(answer.status, 200, "{target}: {answer:?}");
        answer.body.unwrap()
    }

    fn post(&mut self, target: &str, body: &Value) -> Answer {
        self.call("POST", target, body.to_string().as_bytes())
    }

    /// Submits an extraction that must be accepted.
    fn extract(&mut self, url: &str) -> String {
        self.accepted("/v1/extract", &json!({ "url": url, "processing_mode": "async" }))
    }

    fn batch(&mut self, urls: u32) -> String {
        let urls: Vec<String> = (0..urls).map(|i| format!("https://b.example/{i}")).collect();
        self.accepted("/v1/batch", &json!({ "urls": urls }))
    }

    fn accepted(&mut self, target: &str, body: &Value) -> String {
        let answer = self.post(target, body);
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.body.unwrap()["job_id"].as_str().unwrap().to_owned()
    }

    fn webhook(&mut self, event_type: &str) -> Value {
        let body = json!({ "url": "http://127.0.0.1:9/hook", "event_type": event_type });
        let answer = self.post("/v1/webhooks", &body);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.body.unwrap()
    }

    /// Lets time pass second by second and answers each attempt; returns what was sent.
    fn deliver(
        &mut self,
        secs: u64,
        mut receiver: impl FnMut(&WebhookRequest) -> AttemptOutcome,
    ) -> Vec<WebhookRequest> {
        let mut sent = Vec::new();
        for _ in 0..secs {
            for attempt in self.pass(1) {
                let Some(request) = self.platform.render_attempt(attempt.id, self.now) else {
                    continue;
                };
                let outcome = receiver(&request);
                self.platform.report_attempt(attempt.id, self.now, outcome);
                sent.push(request);
            }
        }
        sent
    }

    fn log(&mut self, webhook: &Value) -> Vec<Value> {
        let id = webhook["id"].as_str().unwrap();
        let log = self.read(&format!("/v1/webhooks/{id}/deliveries"));
        log["items"].as_array().unwrap().clone()
    }

    fn books(&mut self) -> Vec<Value> {
        let books = self.read("/sim/books");
        assert_eq!(books["next"], Value::Null);
        books["jobs"].as_array().unwrap().clone()
    }
}

/// Accepts everything.
fn accept(_: &WebhookRequest) -> AttemptOutcome {
    AttemptOutcome::Answered(200)
}

fn header<'a>(request: &'a WebhookRequest, name: &str) -> &'a str {
    request.headers.iter().find(|(header, _)| *header == name).map(|(_, value)| value).unwrap()
}

fn envelope(request: &WebhookRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}
