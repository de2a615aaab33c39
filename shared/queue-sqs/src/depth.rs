//! How many messages there are.

use aws_client::port_error;
use aws_sdk_sqs::types::QueueAttributeName;
use domain::ports::{ErrorKind, PortError};

use crate::{QUEUE, SqsQueue};

/// The operation in errors.
const DEPTH: &str = "depth";

/// How many messages a queue has, by SQS's own approximate count, which settles a minute or so
/// after sends and receipts have stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueDepth {
    /// Messages that may be received.
    pub visible: u64,
    /// Messages that somebody holds.
    pub held: u64,
    /// Messages whose delay has not passed.
    pub delayed: u64,
}

impl SqsQueue {
    /// Counts the messages; one request.
    ///
    /// # Errors
    /// Transient or `Denied`; `Unavailable` also when the answer lacks a count.
    pub async fn depth(&self) -> Result<QueueDepth, PortError> {
        let [visible, held, delayed] = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
            QueueAttributeName::ApproximateNumberOfMessagesDelayed,
        ];
        let request = self.client.get_queue_attributes().queue_url(&self.url);
        let answer = request
            .attribute_names(visible.clone())
            .attribute_names(held.clone())
            .attribute_names(delayed.clone())
            .send()
            .await
            .map_err(|error| port_error(QUEUE, DEPTH, error))?;
        let count = |name: &QueueAttributeName| {
            let value = answer.attributes().and_then(|attributes| attributes.get(name));
            value.and_then(|value| value.parse().ok()).ok_or_else(|| {
                PortError::new(QUEUE, DEPTH, ErrorKind::Unavailable)
                    .with_source(format!("the answer has no {}", name.as_str()))
            })
        };
        Ok(QueueDepth { visible: count(&visible)?, held: count(&held)?, delayed: count(&delayed)? })
    }
}
