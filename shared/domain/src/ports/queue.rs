use std::time::Duration;

use async_trait::async_trait;

use super::PortError;
use crate::task::Task;

/// Sends tasks to the workers. Only speed rests on it: a lost task is sent again by the sweep.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Sends a task that becomes visible after `delay`.
    ///
    /// # Contract
    /// Effect: one more message; tasks are not deduplicated. A second identical call sends a
    /// second message. When the answer is lost the message may exist. `delay` is at most
    /// [`crate::limits::QUEUE_DELAY_MAX`].
    ///
    /// # Errors
    /// `Invalid` when the delay is too long; otherwise transient or `Denied`.
    async fn send(&self, task: &Task, delay: Duration) -> Result<(), PortError>;
}

/// Takes tasks out of the queue, where no platform service hands them over.
#[async_trait]
pub trait TaskSource: Send + Sync {
    /// Takes up to `limit` visible tasks and hides each for `hold`.
    ///
    /// # Contract
    /// A task that is not acknowledged within `hold` becomes visible again. When the answer is
    /// lost the tasks stay hidden until then. Returns at once, perhaps with nothing.
    ///
    /// # Errors
    /// Transient ones only. A message that is no task is dropped from the queue and not returned.
    async fn receive(&self, limit: u32, hold: Duration) -> Result<Vec<HeldTask>, PortError>;

    /// Removes a task that was received.
    ///
    /// # Contract
    /// Repeating it is harmless. If the hold has ended and somebody else received the task, the
    /// call changes nothing.
    ///
    /// # Errors
    /// Transient ones only.
    async fn acknowledge(&self, held: &HeldTask) -> Result<(), PortError>;
}

/// A task that was received and not yet acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTask {
    /// The task.
    pub task: Task,
    /// What the source knows this very receipt by.
    pub receipt: String,
}
