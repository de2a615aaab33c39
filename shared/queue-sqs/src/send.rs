//! One request for one message or for several, and what each caller is told.

use std::sync::Arc;

use aws_client::port_error;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchRequestEntry};
use domain::ports::{ErrorKind, PortError};

use crate::QUEUE;
use crate::outbox::Letter;

/// The operation in errors.
const SEND: &str = "send";
/// Most characters kept of an error code.
const CODE_CHARS_MAX: usize = 100;

/// Why SQS took the request but not this message.
#[derive(Debug, thiserror::Error)]
#[error("SQS took other messages of the request, and not this one: {code}")]
struct Refused {
    code: String,
}

/// The failure of a request that several messages shared.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the request that it shared failed")]
struct Shared(#[source] Arc<PortError>);

/// Sends a group and tells each caller.
pub(crate) async fn send(client: &Client, url: &str, mut group: Vec<Letter>) {
    if group.len() == 1 {
        if let Some(letter) = group.pop() {
            let sent = send_one(client, url, &letter).await;
            letter.answer(sent);
        }
    } else {
        send_batch(client, url, group).await;
    }
}

async fn send_one(client: &Client, url: &str, letter: &Letter) -> Result<(), PortError> {
    let request = client
        .send_message()
        .queue_url(url)
        .message_body(&letter.body)
        // Said also when it is 0: the queue may have a delay of its own.
        .delay_seconds(letter.delay_seconds);
    request.send().await.map(drop).map_err(|error| port_error(QUEUE, SEND, error))
}

async fn send_batch(client: &Client, url: &str, group: Vec<Letter>) {
    let entries: Result<Vec<_>, BuildError> = group.iter().enumerate().map(entry).collect();
    let answer = match entries {
        Ok(entries) => client
            .send_message_batch()
            .queue_url(url)
            .set_entries(Some(entries))
            .send()
            .await
            .map_err(|error| port_error(QUEUE, SEND, error)),
        Err(error) => Err(PortError::new(QUEUE, SEND, ErrorKind::Invalid).with_source(error)),
    };
    match answer {
        Ok(answer) => {
            for (index, letter) in group.into_iter().enumerate() {
                let id = id(index);
                let outcome = match answer.failed().iter().find(|failed| failed.id() == id) {
                    Some(failed) => Err(refused(failed)),
                    None if answer.successful().iter().any(|sent| sent.id() == id) => Ok(()),
                    None => Err(PortError::new(QUEUE, SEND, ErrorKind::Unavailable)
                        .with_source("the answer does not say what became of the message")),
                };
                letter.answer(outcome);
            }
        }
        Err(error) => {
            let shared = Shared(Arc::new(error));
            for letter in group {
                letter.answer(Err(shared.error()));
            }
        }
    }
}

impl Shared {
    fn error(&self) -> PortError {
        let Self(error) = self;
        let mine =
            PortError::new(error.port, error.operation, error.kind).with_source(self.clone());
        match error.retry_after {
            Some(after) => mine.with_retry_after(after),
            None => mine,
        }
    }
}

/// Messages are named by their place in the request.
fn id(index: usize) -> String {
    index.to_string()
}

fn entry((index, letter): (usize, &Letter)) -> Result<SendMessageBatchRequestEntry, BuildError> {
    SendMessageBatchRequestEntry::builder()
        .id(id(index))
        .message_body(&letter.body)
        .delay_seconds(letter.delay_seconds)
        .build()
}

fn refused(failed: &BatchResultErrorEntry) -> PortError {
    let code = failed.code().chars().filter(|c| !c.is_control()).take(CODE_CHARS_MAX).collect();
    let kind = kind(failed.code(), failed.sender_fault());
    PortError::new(QUEUE, SEND, kind).with_source(Refused { code })
}

/// What the caller of one message should do about its code.
fn kind(code: &str, is_senders_fault: bool) -> ErrorKind {
    if code.contains("Throttl") {
        ErrorKind::Throttled
    } else if code.contains("AccessDenied") || code.starts_with("KMS") || code.starts_with("Kms") {
        ErrorKind::Denied
    } else if is_senders_fault {
        ErrorKind::Invalid
    } else {
        ErrorKind::Unavailable
    }
}
