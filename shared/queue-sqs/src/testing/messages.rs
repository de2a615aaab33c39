//! The queue and the dead-letter queue behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::time::{Timestamp, after};

use super::answer::Refusal;
use super::{RECEIVES_MAX, SqsMessage};

#[derive(Default)]
pub(super) struct Messages {
    /// By the number of the message, so that equal times keep the order of sending.
    by_number: BTreeMap<u64, Message>,
    dead: Vec<String>,
    /// Receipts that were ever given, and the message of each.
    receipts: BTreeMap<String, u64>,
    sent: u64,
}

struct Message {
    body: String,
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

    pub(super) fn dead_letters(&self) -> Vec<String> {
        self.dead.clone()
    }

    /// Keeps a message and gives its id.
    pub(super) fn send(&mut self, body: String, delay: Duration, now: Timestamp) -> String {
        self.sent += 1;
        let visible_at = after(now, delay);
        let message = Message { body, visible_at, receives: 0, receipt: None };
        self.by_number.insert(self.sent, message);
        id(self.sent)
    }

    /// Gives visible messages and hides them; one that was received often enough is moved away.
    pub(super) fn receive(
        &mut self,
        limit: usize,
        hold: Duration,
        now: Timestamp,
    ) -> Vec<SqsMessage> {
        let is_visible = |message: &Message| message.visible_at <= now;
        let spent: BTreeSet<u64> = self
            .by_number
            .iter()
            .filter(|(_, message)| is_visible(message) && message.receives >= RECEIVES_MAX)
            .map(|(number, _)| *number)
            .collect();
        for number in spent {
            self.dead.extend(self.by_number.remove(&number).map(|message| message.body));
        }
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
                id: id(number),
                receipt,
                receives: message.receives,
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
