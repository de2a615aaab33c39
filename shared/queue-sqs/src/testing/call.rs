//! What a request asks for, what SQS would not let pass in it, and its effect.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use domain::time::Timestamp;
use http::request::Parts;
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};

use super::answer::Refusal;
use super::messages::Messages;
use super::{Queues, REGION, SqsTrouble, Which};

/// Largest message, and largest sum of one request's messages, in bytes.
const BYTES_MAX: usize = 1_048_576;
/// Most messages in one request, either way.
const BATCH_MAX: usize = 10;
/// Longest delay, in seconds.
const DELAY_MAX: i64 = 900;
/// Longest hold, in seconds.
const HOLD_MAX: i64 = 43_200;
/// Longest wait for messages, in seconds.
const WAIT_MAX: i64 = 20;
/// Longest name of a message within its request.
const ENTRY_ID_BYTES_MAX: usize = 80;
/// Operations that are known here, and the members of each but for the queue's URL.
const MEMBERS: [(&str, &[&str]); 6] = [
    ("SendMessage", &["MessageBody", "DelaySeconds"]),
    ("SendMessageBatch", &["Entries"]),
    (
        "ReceiveMessage",
        &[
            "MaxNumberOfMessages",
            "VisibilityTimeout",
            "WaitTimeSeconds",
            "MessageSystemAttributeNames",
        ],
    ),
    ("ChangeMessageVisibility", &["ReceiptHandle", "VisibilityTimeout"]),
    ("DeleteMessage", &["ReceiptHandle"]),
    ("GetQueueAttributes", &["AttributeNames"]),
];
/// Attribute of a message: when it was sent, in milliseconds.
const SENT_TIMESTAMP: &str = "SentTimestamp";
/// Stands for a checksum that nobody reads.
const MD5: &str = "00000000000000000000000000000000";

/// A request by its operation and members.
#[derive(Debug)]
pub(super) struct Call {
    operation: String,
    members: Map<String, Value>,
}

impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.members.get("Entries").and_then(Value::as_array) {
            Some(entries) => write!(formatter, "{}({})", self.operation, entries.len()),
            None => formatter.write_str(&self.operation),
        }
    }
}

/// Reads a request.
///
/// # Errors
/// When it is none of the protocol's, or is not signed.
pub(super) fn read(parts: &Parts, body: &[u8]) -> Result<Call, Refusal> {
    let target =
        header(&parts.headers, "x-amz-target").and_then(|it| it.strip_prefix("AmazonSQS."));
    let content_type = header(&parts.headers, "content-type");
    let is_protocol = parts.method == Method::POST
        && parts.uri.path() == "/"
        && content_type == Some("application/x-amz-json-1.0");
    let Some(operation) = target.filter(|_| is_protocol) else {
        return Err(Refusal::unknown("another protocol"));
    };
    check_signature(&parts.headers)?;
    let members = serde_json::from_slice(body)
        .map_err(|error| Refusal::saying("SerializationException", error.to_string()))?;
    Ok(Call { operation: operation.to_owned(), members })
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A signature of the fourth version over the host and all headers of Amazon's own.
fn check_signature(headers: &HeaderMap) -> Result<(), Refusal> {
    let refuse = |code| Refusal { status: 403, ..Refusal::new(code) };
    let missing = || refuse("MissingAuthenticationToken");
    let authorization = header(headers, "authorization").ok_or_else(missing)?;
    let fields = authorization.strip_prefix("AWS4-HMAC-SHA256 ").ok_or_else(missing)?;
    let fields: BTreeMap<_, _> =
        fields.split(',').filter_map(|field| field.trim().split_once('=')).collect();
    let field = |name| fields.get(name).copied().ok_or_else(|| refuse("IncompleteSignature"));
    let scope: Vec<_> = field("Credential")?.split('/').collect();
    let signed: Vec<_> = field("SignedHeaders")?.split(';').collect();
    let signature = field("Signature")?;
    let is_right = matches!(scope.as_slice(), [_, _, REGION, "sqs", "aws4_request"])
        && signature.len() == 64
        && signature.bytes().all(|byte| byte.is_ascii_hexdigit())
        && headers.contains_key("x-amz-date");
    let must = |name: &str| name == "host" || name.starts_with("x-amz-");
    let mut names = headers.keys().map(http::HeaderName::as_str).filter(|name| must(name));
    if is_right && names.all(|name| signed.contains(&name)) {
        Ok(())
    } else {
        Err(refuse("SignatureDoesNotMatch"))
    }
}

impl Call {
    /// The same call without the queue's URL, and which queue it is.
    ///
    /// # Errors
    /// When it is another queue's.
    pub(super) fn in_queue(mut self, url: &str, dead: &str) -> Result<(Self, Which), Refusal> {
        match self.members.remove("QueueUrl") {
            Some(Value::String(given)) if given == url => Ok((self, Which::Tasks)),
            Some(Value::String(given)) if given == dead => Ok((self, Which::DeadLetters)),
            Some(_) => {
                Err(Refusal::saying("QueueDoesNotExist", "The specified queue does not exist."))
            }
            None => Err(missing("QueueUrl")),
        }
    }

    /// Does what is asked and gives the answer.
    ///
    /// # Errors
    /// When SQS would refuse it.
    pub(super) fn run(
        mut self,
        (queues, which): (&mut Queues, Which),
        trouble: SqsTrouble,
        now: Timestamp,
    ) -> Result<Value, Refusal> {
        // What is asked for and passed over would be a lie.
        let known = MEMBERS.iter().find(|(operation, _)| *operation == self.operation);
        let Some((_, known)) = known else { return Err(Refusal::unknown(self.operation)) };
        if let Some(other) = self.members.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Refusal::unknown(other));
        }
        match self.operation.as_str() {
            "SendMessage" => self.send(queues.of(which), now),
            "SendMessageBatch" => self.send_batch(queues.of(which), trouble, now),
            "ReceiveMessage" => self.receive((queues, which), trouble, now),
            "DeleteMessage" => self.delete(queues.of(which)),
            "ChangeMessageVisibility" => self.change_visibility(queues.of(which), now),
            _ => self.attributes(queues.of(which), now),
        }
    }

    fn send(&mut self, messages: &mut Messages, now: Timestamp) -> Result<Value, Refusal> {
        let (body, delay) = message(&mut self.members)?;
        let id = messages.send(body, delay, now);
        Ok(json!({ "MessageId": id, "MD5OfMessageBody": MD5 }))
    }

    fn send_batch(
        &mut self,
        messages: &mut Messages,
        trouble: SqsTrouble,
        now: Timestamp,
    ) -> Result<Value, Refusal> {
        let Some(Value::Array(entries)) = self.members.remove("Entries") else {
            return Err(Refusal::new("EmptyBatchRequest"));
        };
        check_batch(&entries)?;
        let (mut sent, mut failed) = (Vec::new(), Vec::new());
        for (place, entry) in entries.into_iter().enumerate() {
            let Value::Object(mut entry) = entry else { continue };
            let id = entry.remove("Id").unwrap_or_default();
            let mut refuse = |code: &str, sender_fault: bool| {
                let entry = json!({ "Id": id, "Code": code, "SenderFault": sender_fault });
                failed.push(entry);
            };
            match trouble {
                SqsTrouble::FailEntry { index, code, sender_fault } if index == place => {
                    refuse(code, sender_fault);
                    continue;
                }
                _ => {}
            }
            match message(&mut entry) {
                Ok(_) if !entry.is_empty() => return Err(Refusal::unknown("an entry's member")),
                Ok((body, delay)) => {
                    let message_id = messages.send(body, delay, now);
                    let is_told = trouble != SqsTrouble::ForgetEntry { index: place };
                    let entry =
                        json!({ "Id": id, "MessageId": message_id, "MD5OfMessageBody": MD5 });
                    sent.extend(is_told.then_some(entry));
                }
                Err(refusal) => refuse(refusal.code, true),
            }
        }
        // SQS leaves out the list that is empty.
        let lists = [("Successful", sent), ("Failed", failed)];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        Ok(lists.map(|(name, list)| (name.to_owned(), list.into())).collect::<Map<_, _>>().into())
    }

    fn receive(
        &mut self,
        (queues, which): (&mut Queues, Which),
        trouble: SqsTrouble,
        now: Timestamp,
    ) -> Result<Value, Refusal> {
        let most = i64::try_from(BATCH_MAX).unwrap_or(i64::MAX);
        let limit = number(&mut self.members, "MaxNumberOfMessages", 1, most)?.unwrap_or(1);
        let hold = number(&mut self.members, "VisibilityTimeout", 0, HOLD_MAX)?.unwrap_or(30);
        let wait = number(&mut self.members, "WaitTimeSeconds", 0, WAIT_MAX)?;
        match (wait, which) {
            // Who reads dead letters waits, since SQS then asks all its servers. What comes here
            // comes at once, and so does nothing.
            (Some(0), Which::Tasks) | (Some(1..), Which::DeadLetters) => {}
            _ => return Err(Refusal::unknown("such a wait for messages, or the queue's own")),
        }
        let names = self.members.remove("MessageSystemAttributeNames").unwrap_or_default();
        let names: Vec<_> = names.as_array().into_iter().flatten().cloned().collect();
        if names.iter().any(|name| name != SENT_TIMESTAMP) {
            return Err(Refusal::unknown("such an attribute of a message"));
        }
        let limit = usize::try_from(limit).unwrap_or(1);
        let given = queues.receive(which, limit, seconds(hold), now);
        if trouble == SqsTrouble::DeliverTwice {
            queues.of(which).reveal(&given, now);
        }
        let given: Vec<_> = given
            .into_iter()
            .map(|message| {
                let sent_at = message.sent_at.as_millisecond().to_string();
                let sent = (SENT_TIMESTAMP.to_owned(), Value::from(sent_at));
                let asked: Map<_, _> = (!names.is_empty()).then_some(sent).into_iter().collect();
                json!({
                    "MessageId": message.id,
                    "ReceiptHandle": message.receipt,
                    "MD5OfBody": MD5,
                    "Body": message.body,
                    "Attributes": asked,
                })
            })
            .collect();
        // SQS leaves the member out when there is nothing.
        Ok(if given.is_empty() { json!({}) } else { json!({ "Messages": given }) })
    }

    fn delete(&mut self, messages: &mut Messages) -> Result<Value, Refusal> {
        match self.members.remove("ReceiptHandle") {
            Some(Value::String(receipt)) if !receipt.is_empty() => {
                messages.delete(&receipt).map(|()| json!({}))
            }
            _ => Err(missing("ReceiptHandle")),
        }
    }

    fn change_visibility(
        &mut self,
        messages: &mut Messages,
        now: Timestamp,
    ) -> Result<Value, Refusal> {
        let hold = number(&mut self.members, "VisibilityTimeout", 0, HOLD_MAX)?
            .ok_or_else(|| missing("VisibilityTimeout"))?;
        match self.members.remove("ReceiptHandle") {
            Some(Value::String(receipt)) if !receipt.is_empty() => {
                messages.hide(&receipt, seconds(hold), now).map(|()| json!({}))
            }
            _ => Err(missing("ReceiptHandle")),
        }
    }

    fn attributes(&mut self, messages: &Messages, now: Timestamp) -> Result<Value, Refusal> {
        let counts = messages.count(now);
        let names = self.members.remove("AttributeNames").unwrap_or_default();
        let mut attributes = Map::new();
        for name in names.as_array().into_iter().flatten().filter_map(Value::as_str) {
            let count = match name {
                "ApproximateNumberOfMessages" => counts.visible,
                "ApproximateNumberOfMessagesNotVisible" => counts.held,
                "ApproximateNumberOfMessagesDelayed" => counts.delayed,
                _ => return Err(Refusal::saying("InvalidAttributeName", "Unknown Attribute.")),
            };
            attributes.insert(name.to_owned(), count.to_string().into());
        }
        Ok(json!({ "Attributes": attributes }))
    }
}

/// What holds for a batch as a whole.
fn check_batch(entries: &[Value]) -> Result<(), Refusal> {
    if entries.is_empty() {
        return Err(Refusal::new("EmptyBatchRequest"));
    }
    if entries.len() > BATCH_MAX {
        return Err(Refusal::new("TooManyEntriesInBatchRequest"));
    }
    let text = |entry: &Value, name: &str| {
        entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut ids = BTreeSet::new();
    for entry in entries {
        let id = text(entry, "Id");
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if id.is_empty() || id.len() > ENTRY_ID_BYTES_MAX || !id.bytes().all(is_plain) {
            return Err(Refusal::new("InvalidBatchEntryId"));
        }
        if !ids.insert(id) {
            return Err(Refusal::new("BatchEntryIdsNotDistinct"));
        }
    }
    let bytes: usize = entries.iter().map(|entry| text(entry, "MessageBody").len()).sum();
    if bytes > BYTES_MAX {
        return Err(Refusal::new("BatchRequestTooLong"));
    }
    Ok(())
}

/// Body and delay of one message.
fn message(members: &mut Map<String, Value>) -> Result<(String, Duration), Refusal> {
    let body = match members.remove("MessageBody") {
        Some(Value::String(body)) if !body.is_empty() => body,
        _ => return Err(missing("MessageBody")),
    };
    if body.len() > BYTES_MAX {
        let message = format!("Message must be shorter than {BYTES_MAX} bytes.");
        return Err(Refusal::saying("InvalidParameterValue", message));
    }
    if !body.chars().all(is_allowed) {
        return Err(Refusal::new("InvalidMessageContents"));
    }
    // A message without a delay has the queue's, which nobody here knows.
    let delay = number(members, "DelaySeconds", 0, DELAY_MAX)?;
    delay.map(|delay| (body, seconds(delay))).ok_or_else(|| Refusal::unknown("no delay"))
}

/// The characters of XML 1.0.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// A whole number within its bounds, if it is given.
fn number(
    members: &mut Map<String, Value>,
    name: &str,
    least: i64,
    most: i64,
) -> Result<Option<i64>, Refusal> {
    let Some(value) = members.remove(name) else { return Ok(None) };
    match value.as_i64() {
        Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
        _ => Err(Refusal::saying(
            "InvalidParameterValue",
            format!(
                "Value {value} for parameter {name} is invalid. \
                 Reason: Must be between {least} and {most}, if provided."
            ),
        )),
    }
}

fn seconds(number: i64) -> Duration {
    Duration::from_secs(number.unsigned_abs())
}

fn missing(name: &str) -> Refusal {
    let message = format!("The request must contain the parameter {name}.");
    Refusal::saying("MissingParameter", message)
}
