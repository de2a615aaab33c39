//! What an operator decides about a dead row: to try it again, or that nobody need look again.

use serde::{Deserialize, Serialize};

use super::{Cause, Counters, DeadReason, Entry, State, StateName, Transition};
use crate::limits::{Limits, NOTE_BYTES_MAX};
use crate::time::{Timestamp, after};

/// Who decided something and why, in one line of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Note(String);

impl Note {
    /// The line that says who and why; `None` when neither is told. It is cut to
    /// [`NOTE_BYTES_MAX`], and characters that would change what a terminal shows are replaced.
    pub fn new(by: Option<&str>, why: Option<&str>) -> Option<Self> {
        let told = |text: Option<&str>| {
            text.map(str::trim).filter(|text| !text.is_empty()).map(ToOwned::to_owned)
        };
        let text = match (told(by), told(why)) {
            (Some(by), Some(why)) => format!("{by}: {why}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return None,
        };
        let mut line = String::new();
        for character in text.chars() {
            let shown =
                if character.is_control() { char::REPLACEMENT_CHARACTER } else { character };
            if line.len() + shown.len_utf8() > NOTE_BYTES_MAX {
                break;
            }
            line.push(shown);
        }
        Some(Self(line))
    }

    /// The line.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Entry {
    /// Why the row is dead, also where it was discarded since; `None` unless it is dead.
    pub const fn died_of(&self) -> Option<DeadReason> {
        match (&self.state, self.discarded) {
            (State::Dead { .. }, Some(before)) => Some(before),
            (State::Dead { reason, .. }, None) => Some(*reason),
            _ => None,
        }
    }

    /// A dead row opened again by an operator, with a fresh budget; `None` unless it is dead.
    #[must_use]
    pub fn redriven(&self, note: Option<Note>, now: Timestamp, limits: &Limits) -> Option<Self> {
        let State::Dead { .. } = self.state else { return None };
        let mut next = self.moved(State::Received);
        next.generation = self.generation.saturating_add(1);
        next.counters = Counters::default();
        next.expires_at = None;
        next.discarded = None;
        next.first_seen = now;
        if let Some(link) = &mut next.link {
            link.base = link.attempt;
        }
        next.mark_enqueued(None, now, limits);
        next.decided(note, now);
        Some(next)
    }

    /// A dead row that nobody need look at again: neither word from the platform nor a redrive of
    /// many opens it. What it died of is kept. `None` unless it is dead and not discarded yet.
    #[must_use]
    pub fn discarded(&self, note: Option<Note>, now: Timestamp, limits: &Limits) -> Option<Self> {
        let State::Dead { reason, error, result } = &self.state else { return None };
        if *reason == DeadReason::Discarded {
            return None;
        }
        let mut next = self.moved(State::Dead {
            reason: DeadReason::Discarded,
            error: error.clone(),
            result: result.clone(),
        });
        next.discarded = Some(*reason);
        // The decision is kept as long as a death is.
        next.expires_at = Some(after(now, limits.retention).as_second());
        next.decided(note, now);
        Some(next)
    }

    fn decided(&mut self, note: Option<Note>, now: Timestamp) {
        self.push(Transition {
            at: now,
            from: Some(StateName::Dead),
            to: self.state.name(),
            cause: Cause::Operator,
            delivery_id: None,
            note,
        });
    }
}
