//! The sweep: everything that is due and that nobody has looked at gets looked at.

use std::fmt;
use std::time::Duration;

use crate::entry::{Cause, DeadReason, Entry, State};
use crate::intent::Intent;
use crate::job::JobKey;
use crate::limits::{LIST_PAGES_MAX, Limits};
use crate::pause::Scope;
use crate::ports::{Cursor, ErrorKind, PortError};
use crate::steps::Ports;
use crate::submit::{Submitted, recover_together};
use crate::task::Task;
use crate::time::after;
use crate::update::{Changed, change};

/// Rows read at once.
const PAGE: u32 = 200;

/// What a sweep did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Tasks sent again.
    pub sent: u32,
    /// Entries given up as poison.
    pub dead: u32,
    /// Intents whose job was found.
    pub adopted: u32,
    /// Intents whose POST was proved not accepted.
    pub not_accepted: u32,
    /// Intents given up as ambiguous.
    pub ambiguous: u32,
    /// Rows passed over because they cannot be read or written: somebody must look at them.
    pub unreadable: u32,
    /// Which was the first of these, and what is wrong with it; nothing of what it holds.
    pub first_unreadable: Option<String>,
    /// Whether the budget ended before the list did.
    pub partial: bool,
}

impl Swept {
    fn pass_over(&mut self, row: String) {
        self.unreadable = self.unreadable.saturating_add(1);
        self.first_unreadable.get_or_insert(row);
    }
}

/// Recovers each overdue intent and sends a task for each overdue entry, at most `budget` rows of
/// each. A row that is at fault itself is counted and passed over, outside the budget, so that a
/// heap of such rows does not hide what lies behind it. While the whole account is paused nothing
/// can be asked, and nothing is done.
///
/// # Errors
/// Those of the ledger and the queue; what was done stays done.
pub async fn sweep(ports: Ports<'_>, budget: u32) -> Result<Swept, PortError> {
    let mut swept = Swept::default();
    // Links first: rows wait for them. Neither waits for what the other needs to be well again.
    let intents = sweep_intents(ports, budget, &mut swept).await;
    let entries = sweep_entries(ports, budget, &mut swept).await;
    intents.and(entries)?;
    Ok(swept)
}

/// The part of [`sweep`] that recovers intents.
///
/// # Errors
/// Those of the ledger; what was done stays done.
pub async fn recover_due(ports: Ports<'_>, budget: u32) -> Result<Swept, PortError> {
    let mut swept = Swept::default();
    sweep_intents(ports, budget, &mut swept).await?;
    Ok(swept)
}

/// Something that a sweep would look after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overdue {
    /// A row whose task would be sent.
    Send(Box<Entry>),
    /// A row that would be given up.
    GiveUp(Box<Entry>),
    /// A submission whose job would be looked for.
    Recover(Box<Intent>),
}

/// Lists what [`sweep`] would look after now, at most `budget` rows of each, and changes nothing;
/// which rows do not decode.
///
/// # Errors
/// Those of the ledger.
pub async fn plan(
    ports: Ports<'_>,
    budget: u32,
    hear: &mut (dyn FnMut(Overdue) + Send),
) -> Result<Vec<String>, PortError> {
    let now = ports.clock.now();
    let (mut unreadable, mut left, mut cursor) = (Vec::new(), budget, None);
    for _ in 0..LIST_PAGES_MAX {
        if left == 0 {
            break;
        }
        let page = ports.ledger.list_due_intents(now, cursor.as_ref(), PAGE.min(left)).await?;
        unreadable.extend(page.unreadable);
        for intent in page.items {
            left = left.saturating_sub(1);
            hear(Overdue::Recover(Box::new(intent)));
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    (left, cursor) = (budget, None);
    for _ in 0..LIST_PAGES_MAX {
        if left == 0 {
            break;
        }
        let page = ports.ledger.list_due(now, cursor.as_ref(), PAGE.min(left)).await?;
        unreadable.extend(page.unreadable);
        for entry in page.items {
            left = left.saturating_sub(1);
            let entry = Box::new(entry);
            let is_poison = is_poison(&entry, ports.limits);
            hear(if is_poison { Overdue::GiveUp(entry) } else { Overdue::Send(entry) });
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(unreadable)
}

/// Whether a row was sent so often in vain that it is given up.
const fn is_poison(row: &Entry, limits: &Limits) -> bool {
    row.counters.sweeps >= limits.sweeps_max
}

async fn is_paused(ports: Ports<'_>) -> Result<bool, PortError> {
    let now = ports.clock.now();
    Ok(ports.pauses.active(ports.ledger, Scope::All, now).await?.is_some())
}

async fn sweep_entries(ports: Ports<'_>, budget: u32, swept: &mut Swept) -> Result<(), PortError> {
    if is_paused(ports).await? {
        return Ok(());
    }
    let now = ports.clock.now();
    let mut left = budget;
    let mut cursor: Option<Cursor> = None;
    for _ in 0..LIST_PAGES_MAX {
        if left == 0 {
            break;
        }
        let page = ports.ledger.list_due(now, cursor.as_ref(), PAGE.min(left)).await?;
        page.unreadable.into_iter().for_each(|row| swept.pass_over(row));
        for listed in &page.items {
            let Some(outcome) =
                unless_faulty(move_on(ports, &listed.key).await, &listed.key, swept)?
            else {
                continue;
            };
            left = left.saturating_sub(1);
            match outcome {
                Moved::Not => {}
                Moved::Dead => swept.dead += 1,
                Moved::Swept(row) => {
                    send(ports, *row).await?;
                    swept.sent += 1;
                }
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
    swept.partial = true;
    Ok(())
}

/// `None`, and counted, for an error that is the row's own; the next row may do better.
fn unless_faulty<T>(
    outcome: Result<T, PortError>,
    row: &dyn fmt::Display,
    swept: &mut Swept,
) -> Result<Option<T>, PortError> {
    match outcome {
        Err(error) if matches!(error.kind, ErrorKind::Corrupt | ErrorKind::Invalid) => {
            swept.pass_over(format!("{row}: {error}"));
            Ok(None)
        }
        outcome => outcome.map(Some),
    }
}

/// What became of a row that was listed as due.
enum Moved {
    /// Somebody else has moved it.
    Not,
    /// It was given up.
    Dead,
    /// Its next sweep is set, and its task is to be sent.
    Swept(Box<Entry>),
}

async fn move_on(ports: Ports<'_>, key: &JobKey) -> Result<Moved, PortError> {
    let now = ports.clock.now();
    // The list may lag behind the row.
    let Some(entry) = ports.ledger.load(key).await? else { return Ok(Moved::Not) };
    if entry.due_at.is_none_or(|due_at| due_at > now) {
        return Ok(Moved::Not);
    }
    let seen = entry.seen();
    let poison = is_poison(&entry, ports.limits);
    let changed = change(ports.ledger, Some(entry), now, |row| {
        let row = row.filter(|row| row.seen() == seen)?;
        if !poison {
            return Some(row.swept(now, ports.limits));
        }
        let reason = match row.state {
            State::Resubmitting { .. } => DeadReason::Ambiguous,
            _ => DeadReason::Poison,
        };
        let state = State::Dead { reason, error: None, result: None };
        Some(row.settled(state, Cause::Sweep, now, ports.limits))
    })
    .await?;
    Ok(match changed {
        Changed::Left(_) => Moved::Not,
        Changed::Written(_) if poison => Moved::Dead,
        Changed::Written(row) => Moved::Swept(row),
    })
}

async fn send(ports: Ports<'_>, row: Entry) -> Result<(), PortError> {
    let task = Task { key: row.key.clone() };
    let Err(error) = ports.queue.send(&task, Duration::ZERO).await else { return Ok(()) };
    // A task that was not sent says nothing against the row: a queue that is down for long must
    // not turn its rows into poison. If this write fails too, the row is due at its next sweep.
    let now = ports.clock.now();
    let seen = row.seen();
    let take_back = |row: Option<&Entry>| {
        let mut next = row.filter(|row| row.seen() == seen)?.unsent();
        next.counters.sweeps = next.counters.sweeps.saturating_sub(1);
        next.due_at = Some(after(now, ports.limits.enqueue_grace));
        Some(next)
    };
    drop(change(ports.ledger, Some(row), now, take_back).await);
    Err(error)
}

async fn sweep_intents(ports: Ports<'_>, budget: u32, swept: &mut Swept) -> Result<(), PortError> {
    if is_paused(ports).await? {
        return Ok(());
    }
    let now = ports.clock.now();
    let mut left = budget;
    let mut cursor: Option<Cursor> = None;
    for _ in 0..LIST_PAGES_MAX {
        if left == 0 {
            break;
        }
        let page = ports.ledger.list_due_intents(now, cursor.as_ref(), PAGE.min(left)).await?;
        page.unreadable.into_iter().for_each(|row| swept.pass_over(row));
        for listed in &page.items {
            if left == 0 {
                break;
            }
            let recovered = recover_listed(ports, &listed.id, left).await;
            let Some(outcomes) = unless_faulty(recovered, &listed.id, swept)? else { continue };
            left = left.saturating_sub(u32::try_from(outcomes.len()).unwrap_or(u32::MAX));
            for outcome in outcomes {
                match outcome {
                    Submitted::Accepted { .. } => swept.adopted += 1,
                    Submitted::Deferred { .. } => swept.not_accepted += 1,
                    Submitted::Ambiguous => swept.ambiguous += 1,
                    Submitted::Refused(_) | Submitted::Unanswered { .. } => {}
                }
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
    swept.partial = true;
    Ok(())
}

/// Recovers an intent that was listed as due, if it is, and others that can be found with it: the
/// list may lag behind it.
async fn recover_listed(
    ports: Ports<'_>,
    id: &str,
    at_most: u32,
) -> Result<Vec<Submitted>, PortError> {
    let now = ports.clock.now();
    let intent = ports.ledger.load_intent(id).await?;
    let is_due = |intent: &Intent| {
        intent.state.is_open() && intent.due_at.is_none_or(|due_at| due_at <= now)
    };
    match intent.filter(is_due) {
        Some(intent) => recover_together(ports, intent, at_most).await,
        None => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests;
