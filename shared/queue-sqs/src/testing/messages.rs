//! The messages of a queue.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::time::{Timestamp, after};

use super::answer::Refusal;
use super::{RECEIVES_MAX, SqsMessage};

#[derive(Default)]
pub(super) struct Messages {
    /// By the number of the message, so that equal times keep the order of sending.
    by_number: BTreeMap<u64, Message>,
    /// Receipts that were ever given, and the message of each.
    receipts: BTreeMap<String, u64>,
    sent: u64,
}

struct Message {
    id: String,
    body: String,
    sent_at: Timestamp,
    visible_at: Timestamp,
    receives: u32,
    /// The latest one; only it deletes the message.
    receipt: Option<String>,
}

/// Messages by what hides them.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) visible: usize,
    pub(super) held: usize,
    pub(super) delayed: usize,
}

impl Messages {
    pub(super) fn bodies(&self) -> Vec<String> {
        self.by_number.values().map(|message| message.body.clone()).collect()
    }

    /// Keeps a message and gives its id.
    pub(super) fn send(&mut self, body: String, delay: Duration, now: Timestamp) -> String {
        let id = id(self.sent + 1);
        let visible_at = after(now, delay);
        let message =
            Message { id: id.clone(), body, sent_at: now, visible_at, receives: 0, receipt: None };
        self.keep(message);
        id
    }

    fn keep(&mut self, message: Message) {
        self.sent += 1;
        self.by_number.insert(self.sent, message);
    }

    /// Moves what was received often enough to another queue, with its id and its age.
    pub(super) fn bury(&mut self, dead: &mut Self, now: Timestamp) {
        let is_spent =
            |message: &Message| message.visible_at <= now && message.receives >= RECEIVES_MAX;
        let spent = self.by_number.iter().filter(|(_, message)| is_spent(message));
        let spent: BTreeSet<u64> = spent.map(|(number, _)| *number).collect();
        for number in spent {
            if let Some(message) = self.by_number.remove(&number) {
                dead.keep(Message { visible_at: now, receipt: None, ..message });
            }
        }
    }

    /// Gives visible messages and hides them.
    pub(super) fn receive(
        &mut self,
        limit: usize,
        hold: Duration,
        now: Timestamp,
    ) -> Vec<SqsMessage> {
        let mut visible: Vec<_> = self
            .by_number
            .iter_mut()
            .filter(|(_, message)| message.visible_at <= now)
            .map(|(number, message)| (message.visible_at, *number, message))
            .collect();
        visible.sort_by_key(|(at, number, _)| (*at, *number));
        let mut given = Vec::new();
        for (_, number, message) in visible.into_iter().take(limit) {
            message.receives += 1;
            message.visible_at = after(now, hold);
            let receipt = format!("AQEB{number}/{}+receipt==", message.receives);
            message.receipt = Some(receipt.clone());
            self.receipts.insert(receipt.clone(), number);
            given.push(SqsMessage {
                id: message.id.clone(),
                receipt,
                receives: message.receives,
                sent_at: message.sent_at,
                body: message.body.clone(),
            });
        }
        given
    }

    /// Makes what was just received visible again, its receipts valid all the same.
    pub(super) fn reveal(&mut self, given: &[SqsMessage], now: Timestamp) {
        for message in self.by_number.values_mut() {
            let is_given = |given: &SqsMessage| message.receipt.as_deref() == Some(&given.receipt);
            if given.iter().any(is_given) {
                message.visible_at = now;
            }
        }
    }

    /// Deletes the message of its latest receipt; an earlier one changes nothing.
    ///
    /// # Errors
    /// When the queue never gave this receipt.
    pub(super) fn delete(&mut self, receipt: &str) -> Result<(), Refusal> {
        let Some(number) = self.receipts.get(receipt) else {
            return Err(Refusal::saying(
                "ReceiptHandleIsInvalid",
                "The input receipt handle is invalid.",
            ));
        };
        let is_latest = |message: &Message| message.receipt.as_deref() == Some(receipt);
        if self.by_number.get(number).is_some_and(is_latest) {
            self.by_number.remove(number);
        }
        Ok(())
    }

    /// Hides the message of its latest receipt from now on for so long.
    ///
    /// # Errors
    /// When the queue never gave this receipt, or nobody holds its message.
    pub(super) fn hide(
        &mut self,
        receipt: &str,
        hold: Duration,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let Some(number) = self.receipts.get(receipt) else {
            return Err(Refusal::saying(
                "ReceiptHandleIsInvalid",
                "The input receipt handle is invalid.",
            ));
        };
        let is_held = |message: &&mut Message| {
            message.receipt.as_deref() == Some(receipt) && message.visible_at > now
        };
        match self.by_number.get_mut(number).filter(is_held) {
            Some(message) => {
                message.visible_at = after(now, hold);
                Ok(())
            }
            None => Err(Refusal::new("MessageNotInflight")),
        }
    }

    pub(super) fn count(&self, now: Timestamp) -> Counts {
        let mut counts = Counts::default();
        for message in self.by_number.values() {
            if message.visible_at <= now {
                counts.visible += 1;
            } else if message.receipt.is_some() {
                counts.held += 1;
            } else {
                counts.delayed += 1;
            }
        }
        counts
    }
}

fn id(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}
