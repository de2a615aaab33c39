//! A receiver over ports in memory, and events as Lambda hands them over.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::entry::Entry;
use domain::envelope::EnvelopeFormat;
use domain::job::JobKey;
use domain::keyring::Keyring;
use domain::limits::Limits;
use domain::ports::{Entries, Expected, PortError, Written};
use domain::signature::preset::Preset;
use domain::signature::secret::Secret;
use domain::testing::{ManualClock, MemoryLedger, MemoryQueue, MemorySecrets, SeededRandom};
use lambda_http::Request;
use lambda_http::request::LambdaRequest;
use receiver::{Answer, Event, Receiver};
use serde_json::{Value, json};
use telemetry::Metrics;

/// The secret under which the events are signed; events/README.md names it.
pub(crate) const SECRET: &str = "test-secret-1";
/// A vector: a body, and its signature under that secret.
pub(crate) const V1: &[u8] = br#"{"job_id":"j1","event_type":"extract_completed","id":"d1"}"#;
pub(crate) const V1_SIGNATURE: &str =
    "ea826bf319909e18b85667f620fe669a612ab8a66c889d24005444e23c54baf7";

pub(crate) struct Rig {
    pub(crate) receiver: Receiver,
    pub(crate) ledger: Arc<MemoryLedger>,
    pub(crate) queue: Arc<MemoryQueue>,
    pub(crate) secrets: Arc<MemorySecrets>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) metrics: Arc<Metrics>,
}

pub(crate) fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

pub(crate) fn rig(secrets: Vec<Secret>) -> Rig {
    let (limits, clock) = (Limits::default(), Arc::new(ManualClock::default()));
    let ledger = Arc::new(MemoryLedger::new());
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    let metrics = Arc::new(Metrics::for_flushes());
    let secrets = Arc::new(MemorySecrets::new(secrets));
    let receiver = Receiver {
        entries: ledger.clone(),
        queue: queue.clone(),
        keyring: Keyring::new(secrets.clone(), Preset::Geonode.scheme().unwrap(), &limits),
        format: EnvelopeFormat::default(),
        limits,
        webhook_path: "/webhook".to_owned(),
        clock: clock.clone(),
        random: Arc::new(SeededRandom::new(1)),
        metrics: metrics.clone(),
    };
    Rig { receiver, ledger, queue, secrets, clock, metrics }
}

/// The request that an event is, as the runtime makes it.
pub(crate) fn request(event: &Value) -> Result<Request, serde_json::Error> {
    // By way of text: the runtime reads text, and its reader is stricter with it.
    let event: Event = serde_json::from_str(&event.to_string())?;
    Ok(LambdaRequest::from(event).into())
}

/// The status of the answer to an event.
pub(crate) async fn answer(rig: &Rig, event: Value) -> u16 {
    let Answer(response) = rig.receiver.answer(&request(&event).unwrap()).await;
    response.status().as_u16()
}

pub(crate) fn signed(signature: &str) -> Value {
    json!({ "x-webhook-signature": signature, "content-type": "application/json" })
}

pub(crate) fn plain(body: &[u8]) -> Value {
    Value::from(std::str::from_utf8(body).unwrap())
}

pub(crate) fn encoded(body: &[u8]) -> Value {
    Value::from(STANDARD.encode(body))
}

/// A ledger whose adapter is broken: whoever touches it panics.
pub(crate) struct Broken;

#[async_trait]
impl Entries for Broken {
    #[expect(clippy::panic, reason = "what it is for")]
    async fn load(&self, _key: &JobKey) -> Result<Option<Entry>, PortError> {
        panic!("the adapter is broken")
    }

    #[expect(clippy::panic, reason = "what it is for")]
    async fn write(&self, _entry: &Entry, _expected: Expected) -> Result<Written, PortError> {
        panic!("the adapter is broken")
    }
}

/// The folder of events, for people and for tests.
pub(crate) fn events() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events")
}

/// An event of events/receiver.
pub(crate) fn event(name: &str) -> Value {
    let text = std::fs::read_to_string(events().join("receiver").join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The event of this way in, with these headers in all the forms that it has, and this body.
pub(crate) fn through(door: &str, headers: &Value, body: &[u8]) -> Value {
    let mut event = event(&format!("{door}.json"));
    let several = headers.as_object().unwrap().iter();
    let several = several.map(|(name, value)| (name.clone(), json!([value]))).collect();
    for (member, value) in [("headers", headers.clone()), ("multiValueHeaders", several)] {
        if let Some(member) = event.get_mut(member) {
            *member = value;
        }
    }
    let sent = [("body", encoded(body)), ("isBase64Encoded", true.into())];
    event.as_object_mut().unwrap().extend(sent.map(|(name, value)| (name.to_owned(), value)));
    event
}

/// An event of an HTTP API (payload version 2.0) with these headers and this body.
pub(crate) fn http_api(headers: &Value, body: &Value, is_base64: bool) -> Value {
    json!({
        "version": "2.0",
        "routeKey": "POST /webhook",
        "rawPath": "/webhook",
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "a1b2c3d4e5",
            "domainName": "a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com",
            "http": {
                "method": "POST",
                "path": "/webhook",
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "test",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "POST /webhook",
            "stage": "$default",
            "time": "30/Nov/2026:12:00:00 +0000",
            "timeEpoch": 1_796_040_000_000_u64,
        },
        "body": body,
        "isBase64Encoded": is_base64,
    })
}
