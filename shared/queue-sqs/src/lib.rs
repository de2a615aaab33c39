//! The queue in Amazon SQS: a standard queue with a dead-letter queue behind it.
//!
//! | call | request | IAM action |
//! |---|---|---|
//! | [`Queue::send`], alone | `SendMessage` | `sqs:SendMessage` |
//! | [`Queue::send`], several at a time | `SendMessageBatch`, up to ten each | `sqs:SendMessage` |
//! | [`TaskSource::receive`] | `ReceiveMessage`, up to ten each, without waiting | `sqs:ReceiveMessage` |
//! | [`TaskSource::acknowledge`] | `DeleteMessage` | `sqs:DeleteMessage` |
//! | [`SqsQueue::depth`] | `GetQueueAttributes` | `sqs:GetQueueAttributes` |
//! | [`DeadLetterQueue::take`] | `ReceiveMessage`, up to ten each, waiting a second | `sqs:ReceiveMessage` |
//! | [`DeadLetterQueue::send_back`] | those of [`Queue::send`] and of a removal | `sqs:SendMessage`, `sqs:DeleteMessage` |
//! | [`DeadLetterQueue::remove`] | `DeleteMessage` | `sqs:DeleteMessage` |
//! | [`DeadLetterQueue::put_back`] | `ChangeMessageVisibility` | `sqs:ChangeMessageVisibility` |
//!
//! **At least once.** SQS may deliver a message twice, and a send whose answer was lost is made
//! again: what a task does must bear repetition.
//!
//! **Messages that are no task.** The port lets a queue drop them. Here nothing is deleted: such a
//! message is not returned, becomes visible again when its hold ends, and after `maxReceiveCount`
//! receipts SQS itself moves it to the dead-letter queue, where it can be looked at and raises the
//! alarm. So it does for the function, to which SQS hands its messages without this crate.
//!
//! The queue is a standard one: order means nothing here, and a FIFO queue would let one bad task
//! hold up others and refuse delays of single messages.

mod dead_letters;
mod depth;
mod outbox;
mod queue;
mod send;
#[cfg(feature = "testing")]
pub mod testing;

use std::sync::Arc;

use aws_client::SdkConfig;
use aws_sdk_sqs::Client;

pub use dead_letters::SqsDeadLetters;
pub use depth::QueueDepth;
#[cfg(doc)]
use domain::ports::{DeadLetterQueue, Queue, TaskSource};
use outbox::Outbox;

/// The port's name in errors.
const QUEUE: &str = "queue";

/// A queue in SQS; needs a Tokio runtime.
///
/// Sends that arrive while a request is under way share the next one. A send that is alone goes
/// out at once. Clones share all this.
#[derive(Clone)]
pub struct SqsQueue {
    client: Client,
    url: String,
    outbox: Arc<Outbox>,
}

/// Why an URL names no queue that can be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UrlError {
    /// It is no URL of a queue.
    #[error("`{0}` is not the URL of an SQS queue")]
    Shape(String),
    /// It names a FIFO queue.
    #[error("`{0}` is a FIFO queue, which delays no single message: use a standard queue")]
    Fifo(String),
}

impl SqsQueue {
    /// A queue by its URL. Asks nothing of SQS.
    ///
    /// # Errors
    /// When the URL cannot be that of a standard queue.
    pub fn new(config: &SdkConfig, url: &str) -> Result<Self, UrlError> {
        check_url(url)?;
        let (client, url) = (Client::new(config), url.to_owned());
        let outbox = Arc::new(Outbox::new(client.clone(), url.clone()));
        Ok(Self { client, url, outbox })
    }
}

fn check_url(url: &str) -> Result<(), UrlError> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let name = rest.and_then(|rest| rest.split_once('/')).map(|(_, path)| path);
    if !name.is_some_and(|name| !name.is_empty() && url.bytes().all(|b| b.is_ascii_graphic())) {
        return Err(UrlError::Shape(url.to_owned()));
    }
    if matches!(url.rsplit_once('.'), Some((_, "fifo"))) {
        return Err(UrlError::Fifo(url.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
