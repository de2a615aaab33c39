use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::lock;
use crate::limits::QUEUE_DELAY_MAX;
use crate::ports::{Clock, ErrorKind, HeldTask, PortError, Queue, TaskSource};
use crate::task::Task;
use crate::time::{Timestamp, after};

/// A queue in memory over a clock.
pub struct MemoryQueue {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By the number of the message, so that equal times keep the order of sending.
    messages: BTreeMap<u64, Message>,
    sent: u64,
    receipts: u64,
}

struct Message {
    body: String,
    visible_at: Timestamp,
    receipt: Option<String>,
}

impl MemoryQueue {
    /// An empty queue.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Sends a message that need not be a task.
    pub fn send_body(&self, body: &str) {
        self.push(body.to_owned(), Duration::ZERO);
    }

    /// How many messages were ever sent.
    pub fn sent(&self) -> u64 {
        lock(&self.state).sent
    }

    /// How many messages there are: visible, delayed and held.
    pub fn depth(&self) -> usize {
        lock(&self.state).messages.len()
    }

    /// The tasks in the queue, visible or not, in the order of sending.
    pub fn tasks(&self) -> Vec<Task> {
        let state = lock(&self.state);
        state.messages.values().filter_map(|message| Task::decode(&message.body).ok()).collect()
    }

    /// Loses all messages, as a queue may.
    pub fn lose_all(&self) {
        lock(&self.state).messages.clear();
    }

    fn push(&self, body: String, delay: Duration) {
        let visible_at = after(self.clock.now(), delay);
        let mut state = lock(&self.state);
        state.sent += 1;
        let number = state.sent;
        state.messages.insert(number, Message { body, visible_at, receipt: None });
    }
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn send(&self, task: &Task, delay: Duration) -> Result<(), PortError> {
        if delay > QUEUE_DELAY_MAX {
            return Err(PortError::new("queue", "send", ErrorKind::Invalid)
                .with_source("the delay is longer than 900 seconds"));
        }
        self.push(task.encode(), delay);
        Ok(())
    }
}

#[async_trait]
impl TaskSource for MemoryQueue {
    async fn receive(&self, limit: u32, hold: Duration) -> Result<Vec<HeldTask>, PortError> {
        let now = self.clock.now();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut state = lock(&self.state);
        state
            .messages
            .retain(|_, message| message.visible_at > now || Task::decode(&message.body).is_ok());
        let mut visible: Vec<_> = state
            .messages
            .iter()
            .filter(|(_, message)| message.visible_at <= now)
            .map(|(number, message)| (message.visible_at, *number))
            .collect();
        visible.sort_unstable();
        let mut taken = Vec::new();
        for (_, number) in visible.into_iter().take(limit) {
            state.receipts += 1;
            let receipt = format!("{number}-{}", state.receipts);
            let Some(message) = state.messages.get_mut(&number) else { continue };
            let Ok(task) = Task::decode(&message.body) else { continue };
            message.visible_at = after(now, hold);
            message.receipt = Some(receipt.clone());
            taken.push(HeldTask { task, receipt });
        }
        Ok(taken)
    }

    async fn acknowledge(&self, held: &HeldTask) -> Result<(), PortError> {
        lock(&self.state)
            .messages
            .retain(|_, message| message.receipt.as_deref() != Some(held.receipt.as_str()));
        Ok(())
    }
}
