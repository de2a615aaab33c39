//! What the platform answers, and how the answer travels.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::fate::Failure;

/// An answer of the platform.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// JSON body; `None` is an empty body.
    pub body: Option<Value>,
    /// Value of a `Retry-After` header.
    pub retry_after: Option<String>,
    /// How the answer reaches the client, if it does.
    pub transport: Transport,
}

/// How an answer reaches the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// At once.
    Prompt,
    /// After the time that a synchronous extraction takes.
    After(Duration),
    /// Never: the connection closes without an answer although the effect happened.
    Lost,
    /// Never: the client waits until it gives up, or until this time has passed.
    Hang(Duration),
    /// Piece by piece.
    Slow,
    /// Broken off in the middle of the body.
    Cut,
}

/// A violated rule in a request, as the platform's framework reports it.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) place: Vec<Value>,
    pub(crate) message: String,
    pub(crate) rule: &'static str,
}

impl Problem {
    pub(crate) fn body(field: &str, rule: &'static str, message: impl Into<String>) -> Self {
        Self { place: vec![json!("body"), json!(field)], message: message.into(), rule }
    }

    pub(crate) fn query(field: &str, rule: &'static str, message: impl Into<String>) -> Self {
        Self { place: vec![json!("query"), json!(field)], message: message.into(), rule }
    }

    pub(crate) fn path(field: &str) -> Self {
        Self {
            place: vec![json!("path"), json!(field)],
            message: "Input should be a valid UUID".to_owned(),
            rule: "uuid_parsing",
        }
    }
}

impl Answer {
    /// Answers with a JSON body.
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self { status, body: Some(body), retry_after: None, transport: Transport::Prompt }
    }

    /// Answers without a body (contract shape D).
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, body: None, retry_after: None, transport: Transport::Prompt }
    }

    /// Answers with the flat error (contract shape A).
    pub(crate) fn flat(status: u16, code: &str, message: &str, retryable: bool) -> Self {
        Self::json(
            status,
            json!({ "code": code, "message": message, "retryable": retryable,
                    "correlation_id": null, "details": null }),
        )
    }

    /// Answers with the list of violated rules (contract shape B).
    pub(crate) fn invalid(problems: &[Problem]) -> Self {
        let detail: Vec<Value> = problems
            .iter()
            .map(|p| json!({ "loc": p.place, "msg": p.message, "type": p.rule }))
            .collect();
        Self::json(422, json!({ "detail": detail }))
    }

    /// Answers with a failed extraction (contract shape C).
    pub(crate) fn extraction_failed(failure: &Failure) -> Self {
        Self::json(422, json!({ "error": error_json(failure), "tokens_charged": 0 }))
    }

    /// Answers with the framework's plain text (contract shape E).
    pub(crate) fn detail(status: u16, text: &str) -> Self {
        Self::json(status, json!({ "detail": text }))
    }

    #[must_use]
    pub(crate) fn with_retry_after(mut self, wait: String) -> Self {
        self.retry_after = Some(wait);
        self
    }

    #[must_use]
    pub(crate) fn sent(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Fills in the trace id of a flat or extraction error.
    pub(crate) fn set_correlation(&mut self, id: impl FnOnce() -> String) {
        let Some(body) = self.body.as_mut() else { return };
        let slot = match body.pointer("/error/code") {
            Some(_) => body.pointer_mut("/error/correlation_id"),
            None => body.get_mut("correlation_id"),
        };
        if let Some(slot) = slot {
            *slot = Value::from(id());
        }
    }

    /// Returns the bytes of the body.
    pub fn bytes(&self) -> Bytes {
        self.body.as_ref().map(|body| Bytes::from(body.to_string())).unwrap_or_default()
    }
}

/// The inner object of a failed extraction.
pub(crate) fn error_json(failure: &Failure) -> Value {
    json!({ "code": failure.code, "message": failure.message, "retryable": failure.retryable,
            "correlation_id": null, "details": null })
}
