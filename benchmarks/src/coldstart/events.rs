//! Deliveries as an HTTP API hands them to a function, each about another job.

use anyhow::{Context as _, Result};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

/// The signing secret of all receivers.
pub(super) const SECRET: &str = "whsec_of-the-coldstart-benchmark";
/// An event of an HTTP API.
const HTTP_API: &str = include_str!("../../../events/receiver/http-api.json");
/// What a small result says.
const TEXT: &str = "All that is gold does not glitter. ";
/// How often it says so: the body has about 2 kB.
const TIMES: usize = 48;

/// Makes events.
pub(super) struct Events {
    keyed: Hmac<Sha256>,
    frame: Value,
    number: u64,
}

/// One event, and the job that it is about.
pub(super) struct Event {
    pub(super) job: String,
    pub(super) text: String,
}

impl Events {
    pub(super) fn new() -> Result<Self> {
        let keyed = Hmac::new_from_slice(SECRET.as_bytes()).context("no key for the secret")?;
        Ok(Self { keyed, frame: serde_json::from_str(HTTP_API)?, number: 0 })
    }

    /// A genuine delivery.
    pub(super) fn genuine(&mut self) -> Result<Event> {
        self.make(false)
    }

    /// One whose body was signed by somebody else.
    pub(super) fn forged(&mut self) -> Result<Event> {
        self.make(true)
    }

    fn make(&mut self, is_forged: bool) -> Result<Event> {
        self.number += 1;
        let job = format!("3f2b8c1d-9a4e-4f6b-8d2c-{:012x}", self.number);
        let body = json!({
            "event": "extract_completed",
            "webhook_id": "0b9d3c1e-6f2a-4d7b-8c5e-1a2b3c4d5e6f",
            "delivery_id": format!("395cf7e2-4b1d-4c6e-8f0a-{:012x}", self.number),
            "timestamp": "2026-11-30T12:00:06.000000Z",
            "data": { "job_id": job, "status": "completed", "text": TEXT.repeat(TIMES) },
        });
        let body = body.to_string();
        let mut mac = self.keyed.clone();
        mac.update(body.as_bytes());
        if is_forged {
            mac.update(b"!");
        }
        let signature = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
        let mut event = self.frame.clone();
        event.as_object_mut().context("an event is an object")?.insert("body".into(), body.into());
        let headers = event.get_mut("headers").and_then(Value::as_object_mut);
        let headers = headers.context("an event has headers")?;
        headers.insert("x-webhook-signature".into(), signature.into());
        Ok(Event { job, text: event.to_string() })
    }
}
