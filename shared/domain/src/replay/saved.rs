//! How far the delivery logs were read. Kept in one control row: an account has ten webhooks at a
//! time, and what is known of those that are gone goes with them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::reading::{Mode, Order, Reading};
use crate::ports::{Webhook, WebhookId};
use crate::reconcile::AGAIN;
use crate::time::{Timestamp, after, before};

/// The control row.
pub(super) const ROW: &str = "replay";
/// Version of the stored form; a row of another is not read, and the logs are read anew.
const FORMAT: u32 = 1;
/// Pause between two whole readings of a log: whatever was out of its place in it is found then.
const WHOLE_EVERY: Duration = Duration::from_hours(24);
/// Readings that could not confirm one before what they are not sure of is let go.
const READINGS_MAX: u32 = 4;

/// How far all logs were read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(super) struct Saved {
    pub(super) logs: BTreeMap<WebhookId, Log>,
    /// When all of them were last read as far as there was something new.
    pub(super) read_at: Option<Timestamp>,
    /// When a reading last ended early.
    pub(super) tried_at: Option<Timestamp>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    logs: BTreeMap<WebhookId, Log>,
    read_at: Option<Timestamp>,
    tried_at: Option<Timestamp>,
}

impl From<Saved> for Stored {
    fn from(saved: Saved) -> Self {
        let Saved { logs, read_at, tried_at } = saved;
        Self { format: FORMAT, logs, read_at, tried_at }
    }
}

impl From<Stored> for Saved {
    fn from(stored: Stored) -> Self {
        if stored.format != FORMAT {
            return Self::default();
        }
        let Stored { logs, read_at, tried_at, .. } = stored;
        Self { logs, read_at, tried_at }
    }
}

/// How far one log was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Log {
    /// Rows that were made before this instant of the platform's clock were read.
    pub(super) read_to: Option<Timestamp>,
    /// What the last reading would have instead, and how many could not confirm it.
    pub(super) candidate: Option<(Timestamp, u32)>,
    pub(super) order: Order,
    /// The last page that held rows.
    pub(super) tail: u32,
    /// When it was last read from the first page to the last.
    pub(super) whole_at: Option<Timestamp>,
    /// A reading that has begun and not ended.
    pub(super) reading: Option<Reading>,
}

impl Log {
    /// The reading that is under way, or the next one; one from the first page on if `whole`.
    pub(super) fn next(&self, whole: bool, now: Timestamp) -> Reading {
        if let Some(reading) = self.reading.as_ref().filter(|_| !whole) {
            return reading.clone();
        }
        let is_due = whole || self.whole_at.is_none_or(|at| after(at, WHOLE_EVERY) <= now);
        let mode = match self.order {
            Order::NewestFirst if !is_due => Mode::Front,
            Order::OldestFirst if !is_due => Mode::Back { tail: self.tail },
            _ => Mode::Whole,
        };
        Reading::begin(mode, self.read_to, now)
    }

    /// Whether a job of a row that nobody knew should have been found before.
    pub(super) fn should_be_known(&self, created_at: Option<Timestamp>) -> bool {
        let is_older = |(at, _): (Timestamp, u32)| created_at.is_none_or(|row| row <= at);
        self.candidate.is_some_and(is_older)
    }

    /// Takes in a reading that came to its end; whether something was let go without being sure.
    pub(super) fn read(&mut self, reading: &Reading, overlap: Duration, now: Timestamp) -> bool {
        self.reading = None;
        self.tail = reading.tail;
        if let Some(order) = reading.order() {
            self.order = order;
            self.whole_at = Some(now);
        }
        // What came while it was read may lie on a page that was read before.
        let newest = reading.newest.map(|newest| before(newest.min(reading.began), overlap));
        let reached = match (newest, reading.pending) {
            (Some(newest), Some(pending)) => Some(newest.min(pending)),
            (newest, _) => newest,
        };
        if !reading.is_long && !reading.is_flawed {
            self.raise(reached);
            self.candidate = None;
            return false;
        }
        let mut unsure = false;
        if let Some((at, failures)) = self.candidate {
            let is_confirmed = reading.missed == 0 && !reading.is_flawed;
            let failures = failures.saturating_add(1);
            unsure = !is_confirmed && failures >= READINGS_MAX;
            if !is_confirmed && !unsure {
                self.candidate = Some((at, failures));
                return false;
            }
            self.raise(Some(at));
        }
        let is_beyond = |at: &Timestamp| self.read_to.is_none_or(|read_to| *at > read_to);
        self.candidate = reached.filter(is_beyond).map(|at| (at, 0));
        unsure
    }

    fn raise(&mut self, to: Option<Timestamp>) {
        self.read_to = self.read_to.max(to);
    }
}

impl Saved {
    /// Whether it is time to read the logs: what ended early goes on soon, and not at once.
    pub(super) fn is_due(&self, every: Duration, now: Timestamp) -> bool {
        let is_over = |at: Option<Timestamp>, pause| at.is_none_or(|at| after(at, pause) <= now);
        let is_early = self.tried_at > self.read_at;
        is_over(self.tried_at, every.min(AGAIN)) && (is_early || is_over(self.read_at, every))
    }

    /// Forgets the logs of webhooks that are gone.
    pub(super) fn keep(&mut self, webhooks: &[Webhook]) {
        self.logs.retain(|id, _| webhooks.iter().any(|webhook| webhook.id == *id));
    }

    /// What is written where another run has written meanwhile: of each log, whoever is ahead.
    pub(super) fn merged(theirs: Self, ours: &Self) -> Self {
        let mut logs = ours.logs.clone();
        for (id, theirs) in theirs.logs {
            match logs.get_mut(&id) {
                Some(ours) if ours.read_to > theirs.read_to => {}
                Some(ours) => *ours = theirs,
                None => {}
            }
        }
        let read_at = theirs.read_at.max(ours.read_at);
        Self { logs, read_at, tried_at: theirs.tried_at.max(ours.tried_at) }
    }
}

#[cfg(test)]
mod tests;
