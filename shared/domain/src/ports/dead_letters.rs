use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use super::PortError;
use crate::task::Task;
use crate::time::Timestamp;

/// Characters of a message that are kept to be shown.
const EXCERPT_CHARS_MAX: usize = 200;

/// Where messages end that no worker could take, or that failed too often.
///
/// Nothing leaves it by itself but by its age. An adapter whose queue has no such place has no such
/// port.
#[async_trait]
pub trait DeadLetterQueue: Send + Sync {
    /// Takes up to `limit` letters and hides each for `hold`.
    ///
    /// # Contract
    /// A letter that is neither removed nor put back becomes visible again after `hold`. When the
    /// answer is lost the letters stay hidden until then. Fewer than `limit` are no sign that there
    /// are no more; none at all is one.
    ///
    /// # Errors
    /// Transient or `Denied`.
    async fn take(&self, limit: u32, hold: Duration) -> Result<Vec<DeadLetter>, PortError>;

    /// Sends a letter's task to the workers, then removes the letter.
    ///
    /// # Contract
    /// The task is sent before the letter goes, so that a crash between the two leaves both, and
    /// the task is worked twice. A second identical call sends the task once more. When the answer
    /// is lost the task may be sent, and the letter may still be there.
    ///
    /// # Errors
    /// `Invalid` for a letter that is no task, which would only come back; otherwise transient or
    /// `Denied`.
    async fn send_back(&self, letter: &DeadLetter) -> Result<(), PortError>;

    /// Removes a letter for good.
    ///
    /// # Contract
    /// Repeating it is harmless. If the hold has ended and somebody else took the letter, the call
    /// changes nothing.
    ///
    /// # Errors
    /// Transient or `Denied`.
    async fn remove(&self, letter: &DeadLetter) -> Result<(), PortError>;

    /// Makes a letter visible before its hold ends.
    ///
    /// # Contract
    /// As [`DeadLetterQueue::remove`].
    ///
    /// # Errors
    /// Transient or `Denied`.
    async fn put_back(&self, letter: &DeadLetter) -> Result<(), PortError>;
}

/// A message of the dead-letter queue that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The message's own id, the same each time it is taken.
    pub id: String,
    /// What the queue knows this very receipt by.
    pub receipt: String,
    /// The task that it is, if it is one.
    pub task: Option<Task>,
    /// When it was first sent, if the queue tells.
    pub sent_at: Option<Timestamp>,
    /// Length of its body, in bytes.
    pub bytes: usize,
    /// The body's beginning.
    pub excerpt: Excerpt,
}

impl DeadLetter {
    /// A letter with this body. Of the body only the beginning is kept.
    pub fn new(id: String, receipt: String, sent_at: Option<Timestamp>, body: &str) -> Self {
        let task = Task::decode(body).ok();
        let excerpt = Excerpt(body.chars().take(EXCERPT_CHARS_MAX).collect());
        Self { id, receipt, task, sent_at, bytes: body.len(), excerpt }
    }
}

/// The beginning of a message that may be a stranger's: for whoever asks for it, and for no log.
#[derive(Clone, PartialEq, Eq)]
pub struct Excerpt(Box<str>);

impl Excerpt {
    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Excerpt({} bytes)", self.0.len())
    }
}
