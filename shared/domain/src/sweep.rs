//! The sweep: everything that is due and that nobody has looked at gets looked at.

use std::time::Duration;

use crate::entry::{Cause, DeadReason, Entry, State};
use crate::ports::{Cursor, PortError};
use crate::steps::Ports;
use crate::submit::{Submitted, recover};
use crate::task::Task;
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
    /// Rows that could not be read.
    pub unreadable: u32,
    /// Whether the budget ended before the list did.
    pub partial: bool,
}

/// Sends a task for each overdue entry and recovers each overdue intent, at most `budget` rows
/// of each.
///
/// # Errors
/// Those of the ledger and the queue; what was done stays done.
pub async fn sweep(ports: Ports<'_>, budget: u32) -> Result<Swept, PortError> {
    let mut swept = Swept::default();
    sweep_entries(ports, budget, &mut swept).await?;
    sweep_intents(ports, budget, &mut swept).await?;
    Ok(swept)
}

async fn sweep_entries(ports: Ports<'_>, budget: u32, swept: &mut Swept) -> Result<(), PortError> {
    let now = ports.clock.now();
    let mut left = budget;
    let mut after: Option<Cursor> = None;
    while left > 0 {
        let page = ports.ledger.list_due(now, after.as_ref(), PAGE.min(left)).await?;
        swept.unreadable += page.unreadable;
        for listed in &page.items {
            left = left.saturating_sub(1);
            sweep_entry(ports, listed, swept).await?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
    swept.partial = true;
    Ok(())
}

async fn sweep_entry(ports: Ports<'_>, listed: &Entry, swept: &mut Swept) -> Result<(), PortError> {
    let now = ports.clock.now();
    // The list may lag behind the row.
    let Some(entry) = ports.ledger.load(&listed.key).await? else { return Ok(()) };
    if entry.due_at.is_none_or(|due_at| due_at > now) {
        return Ok(());
    }
    let seen = entry.seen();
    let poison = entry.counters.sweeps >= ports.limits.sweeps_max;
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
    match changed {
        Changed::Left(_) => {}
        Changed::Written(_) if poison => swept.dead += 1,
        Changed::Written(row) => {
            ports.queue.send(&Task { key: row.key }, Duration::ZERO).await?;
            swept.sent += 1;
        }
    }
    Ok(())
}

async fn sweep_intents(ports: Ports<'_>, budget: u32, swept: &mut Swept) -> Result<(), PortError> {
    let now = ports.clock.now();
    let mut left = budget;
    let mut after: Option<Cursor> = None;
    while left > 0 {
        let page = ports.ledger.list_due_intents(now, after.as_ref(), PAGE.min(left)).await?;
        swept.unreadable += page.unreadable;
        for intent in page.items {
            left = left.saturating_sub(1);
            match recover(ports, intent).await? {
                Submitted::Accepted { .. } => swept.adopted += 1,
                Submitted::Deferred { .. } => swept.not_accepted += 1,
                Submitted::Ambiguous => swept.ambiguous += 1,
                Submitted::Refused(_) | Submitted::Unanswered { .. } => {}
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
    swept.partial = true;
    Ok(())
}
