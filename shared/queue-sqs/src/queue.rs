//! The port: tasks as messages.

use std::time::Duration;

use async_trait::async_trait;
use aws_client::port_error;
use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use aws_sdk_sqs::types::Message;
use domain::limits::QUEUE_DELAY_MAX;
use domain::ports::{ErrorKind, HeldTask, PortError, Queue, TaskSource};
use domain::task::Task;

use crate::{QUEUE, SqsQueue};

/// Most messages in one answer. Source: Amazon SQS, `ReceiveMessage`.
pub(crate) const RECEIVE_MAX: usize = 10;
/// Most tasks taken by one call, in 26 requests.
const TAKE_MAX: u32 = 256;
/// Longest time that a message can be held; a longer hold ends then. Source: Amazon SQS,
/// visibility time-out.
pub(crate) const HOLD_MAX: Duration = Duration::from_hours(12);
/// Codes of SQS for a receipt that is none of its own or too old: it holds nothing.
pub(crate) const STALE_RECEIPT: [&str; 3] =
    ["InvalidIdFormat", "InvalidParameterValue", "ReceiptHandleIsInvalid"];

/// A task that cannot be a message of this queue.
#[derive(Debug, thiserror::Error)]
enum Unsendable {
    #[error("the delay is {seconds} s, at most {} s are allowed", QUEUE_DELAY_MAX.as_secs())]
    TooLate { seconds: u64 },
    #[error("the message has characters other than printable ASCII")]
    Characters,
}

#[async_trait]
impl Queue for SqsQueue {
    async fn send(&self, task: &Task, delay: Duration) -> Result<(), PortError> {
        let invalid =
            |why: Unsendable| PortError::new(QUEUE, "send", ErrorKind::Invalid).with_source(why);
        if delay > QUEUE_DELAY_MAX {
            return Err(invalid(Unsendable::TooLate { seconds: delay.as_secs() }));
        }
        let body = task.encode();
        // SQS takes the characters of XML 1.0; a task has fewer.
        if !body.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(invalid(Unsendable::Characters));
        }
        self.outbox.send(body, whole_seconds(delay)).await
    }
}

#[async_trait]
impl TaskSource for SqsQueue {
    async fn receive(&self, limit: u32, hold: Duration) -> Result<Vec<HeldTask>, PortError> {
        let limit = usize::try_from(limit.min(TAKE_MAX)).unwrap_or(RECEIVE_MAX);
        let seconds = whole_seconds(hold.min(HOLD_MAX));
        let mut tasks = Vec::new();
        let mut taken = 0;
        while taken < limit {
            let wanted = (limit - taken).min(RECEIVE_MAX);
            let messages = match self.take(wanted, seconds).await {
                Ok(messages) => messages,
                // What is held already is not to wait until its hold ends.
                Err(_) if !tasks.is_empty() => break,
                Err(error) => return Err(error),
            };
            taken += messages.len();
            let is_all = messages.len() < wanted;
            tasks.extend(messages.into_iter().filter_map(read));
            if is_all {
                break;
            }
        }
        Ok(tasks)
    }

    async fn acknowledge(&self, held: &HeldTask) -> Result<(), PortError> {
        if held.receipt.is_empty() {
            return Ok(());
        }
        let request = self.client.delete_message().queue_url(&self.url);
        match request.receipt_handle(&held.receipt).send().await {
            Ok(_) => Ok(()),
            Err(error) if error.code().is_some_and(|code| STALE_RECEIPT.contains(&code)) => Ok(()),
            Err(error) => Err(port_error(QUEUE, "acknowledge", error)),
        }
    }
}

impl SqsQueue {
    /// Takes messages as they come, without waiting for any.
    async fn take(&self, wanted: usize, seconds: i32) -> Result<Vec<Message>, PortError> {
        let request = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(i32::try_from(wanted).unwrap_or(1))
            .visibility_timeout(seconds)
            // The queue may have a wait of its own.
            .wait_time_seconds(0);
        match request.send().await {
            Ok(answer) => Ok(answer.messages.unwrap_or_default()),
            Err(error) => Err(port_error(QUEUE, "receive", error)),
        }
    }
}

/// The task that a message is; `None` leaves it to the dead-letter queue.
fn read(message: Message) -> Option<HeldTask> {
    let task = Task::decode(message.body.as_deref()?).ok()?;
    Some(HeldTask { task, receipt: message.receipt_handle? })
}

/// Whole seconds, rounded up: nothing becomes visible before its time.
pub(crate) fn whole_seconds(duration: Duration) -> i32 {
    let rest = u64::from(duration.subsec_nanos() > 0);
    i32::try_from(duration.as_secs().saturating_add(rest)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
