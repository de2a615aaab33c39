//! Groups the messages of concurrent callers into requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_sqs::Client;
use domain::ports::{ErrorKind, PortError};
use domain::task::TASK_BYTES_MAX;
use tokio::sync::oneshot;

use crate::QUEUE;
use crate::send::send;

/// Most messages in one request. Source: Amazon SQS, `SendMessageBatch`.
pub(crate) const GROUP_MESSAGES_MAX: usize = 10;
/// Most bytes of one request's messages together. Source: Amazon SQS Developer Guide, "Amazon SQS
/// batch actions": 1 MiB.
const GROUP_BYTES_MAX: usize = 1_048_576;
/// Callers that wait for their turn; further ones are told to slow down. With ten messages a
/// request and 20 ms each they take two seconds.
const WAITING_MAX: usize = 1_000;

// A full group of the largest tasks is far from the limit, so that nobody need count.
const _: () = assert!(GROUP_MESSAGES_MAX * TASK_BYTES_MAX <= GROUP_BYTES_MAX);

/// A message and the caller who waits for what becomes of it.
pub(crate) struct Letter {
    pub(crate) body: String,
    pub(crate) delay_seconds: i32,
    reply: oneshot::Sender<Result<(), PortError>>,
}

impl Letter {
    /// Tells the caller, who may have stopped waiting.
    pub(crate) fn answer(self, outcome: Result<(), PortError>) {
        let _ = self.reply.send(outcome);
    }
}

/// Messages that are about to be sent.
///
/// One task makes the requests, one after the other. It exists only while somebody waits: it begins
/// with the first caller and ends when nobody is left, so that a frozen process holds no message
/// whose caller was answered. A caller who stops waiting before the turn of its message takes it
/// back. Because the task and not a caller makes the request, no caller that is dropped, or not
/// polled, holds up the others.
pub(crate) struct Outbox {
    client: Client,
    url: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Letter>,
    is_sending: bool,
}

impl Outbox {
    pub(crate) fn new(client: Client, url: String) -> Self {
        Self { client, url, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message: by a request of its own, or by one that it shares.
    pub(crate) async fn send(
        self: &Arc<Self>,
        body: String,
        delay_seconds: i32,
    ) -> Result<(), PortError> {
        let (reply, answer) = oneshot::channel();
        let is_first = {
            let mut state = self.state();
            if state.waiting.len() >= WAITING_MAX {
                return Err(PortError::new(QUEUE, "send", ErrorKind::Throttled)
                    .with_source(format!("{WAITING_MAX} messages wait to be sent")));
            }
            state.waiting.push_back(Letter { body, delay_seconds, reply });
            !std::mem::replace(&mut state.is_sending, true)
        };
        if is_first {
            let sending = Sending { outbox: Arc::clone(self), is_over: false };
            tokio::spawn(work_off(sending));
        }
        answer.await.unwrap_or_else(|_| {
            Err(PortError::new(QUEUE, "send", ErrorKind::Unavailable)
                .with_source("the request was given up with the runtime that made it"))
        })
    }

    /// The next messages that somebody still waits for; when there is none, the task is over.
    fn next_group(&self) -> Vec<Letter> {
        let mut state = self.state();
        let mut group = Vec::new();
        while group.len() < GROUP_MESSAGES_MAX {
            let Some(letter) = state.waiting.pop_front() else { break };
            if !letter.reply.is_closed() {
                group.push(letter);
            }
        }
        state.is_sending = !group.is_empty();
        group
    }
}

/// The task's hold on the outbox. Dropped before its time, as with its runtime, it tells all who
/// wait and lets the next caller begin anew.
struct Sending {
    outbox: Arc<Outbox>,
    /// Whether nobody was left: what is in the outbox since then is another task's.
    is_over: bool,
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.is_over {
            *self.outbox.state() = State::default();
        }
    }
}

async fn work_off(mut sending: Sending) {
    loop {
        let group = sending.outbox.next_group();
        if group.is_empty() {
            sending.is_over = true;
            return;
        }
        send(&sending.outbox.client, &sending.outbox.url, group).await;
    }
}

#[cfg(test)]
mod tests;
