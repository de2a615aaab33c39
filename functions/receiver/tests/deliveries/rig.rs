//! A receiver over ports in memory, and events as Lambda hands them over.

use std::sync::Arc;

use domain::envelope::EnvelopeFormat;
use domain::keyring::Keyring;
use domain::limits::Limits;
use domain::signature::preset::Preset;
use domain::signature::secret::Secret;
use domain::testing::{ManualClock, MemoryLedger, MemoryQueue, MemorySecrets, SeededRandom};
use lambda_http::Request;
use lambda_http::request::LambdaRequest;
use receiver::Receiver;
use serde_json::{Value, json};
use telemetry::Metrics;

/// The secret under which the events are signed; events/README.md names it.
pub(crate) const SECRET: &str = "test-secret-1";

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
    let request: LambdaRequest = serde_json::from_str(&event.to_string())?;
    Ok(request.into())
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
