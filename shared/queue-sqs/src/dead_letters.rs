//! The dead-letter queue behind a queue in SQS.

use std::time::Duration;

use async_trait::async_trait;
use aws_client::{SdkConfig, port_error};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use domain::ports::{DeadLetter, DeadLetterQueue, ErrorKind, PortError, Queue as _};
use domain::time::Timestamp;

use crate::queue::{HOLD_MAX, RECEIVE_MAX, STALE_RECEIPT, whole_seconds};
use crate::{SqsQueue, UrlError, check_url};

/// The port's name in errors.
const DEAD_LETTERS: &str = "dead_letters";
/// Codes of SQS for a message that nobody holds any more: it is visible already, or gone.
const NOT_HELD: &str = "MessageNotInflight";
/// How long a request waits for messages, in seconds. With any wait SQS asks all its servers, so
/// that an empty answer means an empty queue.
const WAIT_SECONDS: i32 = 1;

/// A dead-letter queue in SQS, and the queue that its tasks go back to.
#[derive(Clone)]
pub struct SqsDeadLetters {
    client: Client,
    url: String,
    queue: SqsQueue,
}

impl SqsDeadLetters {
    /// A dead-letter queue by its URL. Asks nothing of SQS.
    ///
    /// # Errors
    /// When the URL cannot be that of a standard queue.
    pub fn new(config: &SdkConfig, url: &str, queue: &SqsQueue) -> Result<Self, UrlError> {
        check_url(url)?;
        Ok(Self { client: Client::new(config), url: url.to_owned(), queue: queue.clone() })
    }

    async fn receive(&self, wanted: usize, seconds: i32) -> Result<Vec<Message>, PortError> {
        let request = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(i32::try_from(wanted).unwrap_or(1))
            .visibility_timeout(seconds)
            .wait_time_seconds(WAIT_SECONDS)
            .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
        match request.send().await {
            Ok(answer) => Ok(answer.messages.unwrap_or_default()),
            Err(error) => Err(port_error(DEAD_LETTERS, "take", error)),
        }
    }
}

#[async_trait]
impl DeadLetterQueue for SqsDeadLetters {
    async fn take(&self, limit: u32, hold: Duration) -> Result<Vec<DeadLetter>, PortError> {
        let limit = usize::try_from(limit).unwrap_or(RECEIVE_MAX);
        let seconds = whole_seconds(hold.min(HOLD_MAX));
        let mut letters = Vec::new();
        while letters.len() < limit {
            let wanted = (limit - letters.len()).min(RECEIVE_MAX);
            let messages = match self.receive(wanted, seconds).await {
                Ok(messages) => messages,
                // What is held already is not to wait until its hold ends.
                Err(_) if !letters.is_empty() => break,
                Err(error) => return Err(error),
            };
            if messages.is_empty() {
                break;
            }
            letters.extend(messages.into_iter().filter_map(read));
        }
        Ok(letters)
    }

    async fn send_back(&self, letter: &DeadLetter) -> Result<(), PortError> {
        let Some(task) = &letter.task else {
            return Err(PortError::new(DEAD_LETTERS, "send_back", ErrorKind::Invalid)
                .with_source("the letter is no task"));
        };
        self.queue.send(task, Duration::ZERO).await?;
        self.remove(letter).await
    }

    async fn remove(&self, letter: &DeadLetter) -> Result<(), PortError> {
        if letter.receipt.is_empty() {
            return Ok(());
        }
        let request = self.client.delete_message().queue_url(&self.url);
        match request.receipt_handle(&letter.receipt).send().await {
            Ok(_) => Ok(()),
            Err(error) if error.code().is_some_and(|code| STALE_RECEIPT.contains(&code)) => Ok(()),
            Err(error) => Err(port_error(DEAD_LETTERS, "remove", error)),
        }
    }

    async fn put_back(&self, letter: &DeadLetter) -> Result<(), PortError> {
        if letter.receipt.is_empty() {
            return Ok(());
        }
        let request = self.client.change_message_visibility().queue_url(&self.url);
        let request = request.receipt_handle(&letter.receipt).visibility_timeout(0);
        let is_not_held = |code: &str| STALE_RECEIPT.contains(&code) || code.ends_with(NOT_HELD);
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) if error.code().is_some_and(is_not_held) => Ok(()),
            Err(error) => Err(port_error(DEAD_LETTERS, "put_back", error)),
        }
    }
}

/// The letter that a message is; `None` for one that could not be removed.
fn read(message: Message) -> Option<DeadLetter> {
    let sent_at = message
        .attributes
        .as_ref()
        .and_then(|attributes| attributes.get(&MessageSystemAttributeName::SentTimestamp))
        .and_then(|millis| Timestamp::from_millisecond(millis.parse().ok()?).ok());
    let body = message.body.unwrap_or_default();
    Some(DeadLetter::new(message.message_id?, message.receipt_handle?, sent_at, &body))
}

#[cfg(test)]
mod tests;
