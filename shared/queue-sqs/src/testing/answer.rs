//! Answers as SQS writes them.

use serde_json::{Value, json};

/// Errors of the service that have another code in the older protocol, which clients still see.
const OLDER: [(&str, &str); 8] = [
    ("BatchEntryIdsNotDistinct", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"),
    ("BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong"),
    ("EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest"),
    ("InvalidBatchEntryId", "AWS.SimpleQueueService.InvalidBatchEntryId"),
    ("MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight"),
    ("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"),
    ("TooManyEntriesInBatchRequest", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"),
    ("UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation"),
];

/// An answer before it is written.
pub(super) struct Answer {
    pub(super) status: u16,
    /// Code of the older protocol and whose fault it is.
    pub(super) query_error: Option<String>,
    pub(super) body: String,
}

/// Why a request, or one message of it, is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(code: &'static str) -> Self {
        Self::saying(code, "the fake says so")
    }

    pub(super) fn saying(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: 400, code, message: message.into() }
    }

    /// What the fake does not know, told in the answer so that it is seen in a test's output.
    pub(super) fn unknown(what: impl Into<String>) -> Self {
        Self { status: 501, ..Self::saying("NotImplementedByTheFake", what) }
    }
}

impl Answer {
    pub(super) fn ok(value: &Value) -> Self {
        Self { status: 200, query_error: None, body: value.to_string() }
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let Refusal { status, code, message } = refusal;
        let older = OLDER.iter().find(|(name, _)| *name == code).map_or(code, |(_, older)| older);
        let fault = if status < 500 { "Sender" } else { "Receiver" };
        let body = json!({ "__type": format!("com.amazonaws.sqs#{code}"), "message": message });
        Self { status, query_error: Some(format!("{older};{fault}")), body: body.to_string() }
    }
}
