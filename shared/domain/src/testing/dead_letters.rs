use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::{MemoryQueue, lock};
use crate::ports::{Clock, DeadLetter, DeadLetterQueue, ErrorKind, PortError, Queue as _};
use crate::time::{Timestamp, after};

/// A dead-letter queue in memory, behind a queue in memory.
pub struct MemoryDeadLetters {
    clock: Arc<dyn Clock>,
    queue: Arc<MemoryQueue>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    letters: Vec<Letter>,
    put: u64,
    receipts: u64,
}

struct Letter {
    id: String,
    body: String,
    sent_at: Timestamp,
    visible_at: Timestamp,
    receipt: String,
}

impl MemoryDeadLetters {
    /// An empty one behind this queue.
    pub fn new(clock: Arc<dyn Clock>, queue: Arc<MemoryQueue>) -> Self {
        Self { clock, queue, state: Mutex::default() }
    }

    /// Lays a message down, as a queue does that has delivered it too often.
    pub fn put(&self, body: &str) {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        state.put += 1;
        let id = format!("letter-{}", state.put);
        let (body, receipt) = (body.to_owned(), String::new());
        state.letters.push(Letter { id, body, sent_at: now, visible_at: now, receipt });
    }

    /// The bodies, taken or not, in the order in which they came.
    pub fn bodies(&self) -> Vec<String> {
        lock(&self.state).letters.iter().map(|letter| letter.body.clone()).collect()
    }
}

#[async_trait]
impl DeadLetterQueue for MemoryDeadLetters {
    async fn take(&self, limit: u32, hold: Duration) -> Result<Vec<DeadLetter>, PortError> {
        let now = self.clock.now();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut state = lock(&self.state);
        let mut receipts = state.receipts;
        let visible = state.letters.iter_mut().filter(|letter| letter.visible_at <= now);
        let taken = visible.take(limit).map(|letter| {
            receipts += 1;
            letter.receipt = format!("receipt-{receipts}");
            letter.visible_at = after(now, hold);
            let Letter { id, receipt, .. } = &*letter;
            DeadLetter::new(id.clone(), receipt.clone(), Some(letter.sent_at), &letter.body)
        });
        let taken = taken.collect();
        state.receipts = receipts;
        Ok(taken)
    }

    async fn send_back(&self, letter: &DeadLetter) -> Result<(), PortError> {
        let Some(task) = &letter.task else {
            return Err(PortError::new("dead_letters", "send_back", ErrorKind::Invalid)
                .with_source("the letter is no task"));
        };
        self.queue.send(task, Duration::ZERO).await?;
        self.remove(letter).await
    }

    async fn remove(&self, letter: &DeadLetter) -> Result<(), PortError> {
        lock(&self.state)
            .letters
            .retain(|it| it.receipt != letter.receipt || it.receipt.is_empty());
        Ok(())
    }

    async fn put_back(&self, letter: &DeadLetter) -> Result<(), PortError> {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        let ours = state.letters.iter_mut().filter(|it| it.receipt == letter.receipt);
        ours.filter(|it| !it.receipt.is_empty()).for_each(|it| it.visible_at = now);
        Ok(())
    }
}
