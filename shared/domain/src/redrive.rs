//! An operator's decision about one dead entry: to try it again with a fresh budget, or to discard
//! it. Nothing here is done by itself, and each decision is made about the row as it was read.

use std::time::Duration;

use crate::announce::AnnouncePorts;
use crate::entry::{DeadReason, Entry, Note, StateName};
use crate::ports::PortError;
use crate::task::Task;
use crate::time::Timestamp;
use crate::update::{Changed, change};

/// Whether an operator takes the risk of paying twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayAgain {
    /// A row that is dead because nobody knows whether a POST was accepted stays so.
    Never,
    /// Such a row is tried again too: its next POST may be a second one.
    Accepted,
}

/// What became of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    /// The row is as it was decided, and its task is sent if it has one.
    Done(Box<Entry>),
    /// The row is open, and its task could not be sent: the sweep sends one.
    Unsent(Box<Entry>),
    /// The row is as it was.
    Left(Left),
}

/// Why a row was left as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// There is none, or its time is over.
    Absent,
    /// It is open: it never was dead, or somebody has opened it meanwhile.
    Open(StateName),
    /// It is terminal, and not dead.
    Settled(StateName),
    /// It is discarded already.
    Discarded,
    /// It is dead, and another one than was read: it was opened meanwhile and has died again.
    Moved,
    /// Whether its last POST was accepted is not known, and the risk was not taken.
    MayPayAgain,
}

/// Opens a dead row again, as it was read, and sends its task.
///
/// Of operators who read the same row one opens it, and the others learn so. When the answer is
/// lost, reading the row again tells; a repeated call opens nothing twice, since the row that it
/// was about is no more.
///
/// # Errors
/// Those of the ledger. A task that cannot be sent is no error.
pub async fn redrive(
    ports: AnnouncePorts<'_>,
    read: Entry,
    pay_again: PayAgain,
    note: Option<&Note>,
) -> Result<Decided, PortError> {
    if read.died_of() == Some(DeadReason::Ambiguous) && pay_again == PayAgain::Never {
        return Ok(Decided::Left(Left::MayPayAgain));
    }
    let now = ports.clock.now();
    let opened = decide(ports, read, now, |row| row.redriven(note.cloned(), now, ports.limits));
    let row = match opened.await? {
        Ok(row) => row,
        Err(left) => return Ok(Decided::Left(left)),
    };
    let task = Task { key: row.key.clone() };
    if ports.queue.send(&task, Duration::ZERO).await.is_ok() {
        return Ok(Decided::Done(row));
    }
    // Only speed rests on the task: the row is due, and the next announcement sends one at once.
    let seen = row.seen();
    let unsent = |now: Option<&Entry>| now.filter(|now| now.seen() == seen).map(Entry::unsent);
    drop(change(ports.entries, Some((*row).clone()), now, unsent).await);
    Ok(Decided::Unsent(row))
}

/// Discards a dead row, as it was read. The same holds as for [`redrive`].
///
/// # Errors
/// Those of the ledger.
pub async fn discard(
    ports: AnnouncePorts<'_>,
    read: Entry,
    note: Option<&Note>,
) -> Result<Decided, PortError> {
    let now = ports.clock.now();
    let discarded = decide(ports, read, now, |row| row.discarded(note.cloned(), now, ports.limits));
    Ok(discarded.await?.map_or_else(Decided::Left, Decided::Done))
}

/// Writes what is decided if the row is still the one that was read; else why it was left.
async fn decide(
    ports: AnnouncePorts<'_>,
    read: Entry,
    now: Timestamp,
    decision: impl Fn(&Entry) -> Option<Entry> + Send + Sync,
) -> Result<Result<Box<Entry>, Left>, PortError> {
    let seen = read.seen();
    // Two operators may decide the same at the same instant: by the token each knows its own row.
    let token = ports.random.token();
    let changed = change(ports.entries, Some(read), now, |row| {
        let row = row.filter(|row| row.seen() == seen && !row.is_expired(now))?;
        decision(row).map(|next| Entry { token: Some(token.clone()), ..next })
    })
    .await?;
    Ok(match changed {
        Changed::Written(row) => Ok(row),
        Changed::Left(row) => Err(left(row.as_deref(), now)),
    })
}

fn left(row: Option<&Entry>, now: Timestamp) -> Left {
    let Some(row) = row.filter(|row| !row.is_expired(now)) else { return Left::Absent };
    match (row.state.name(), row.discarded) {
        (StateName::Dead, Some(_)) => Left::Discarded,
        (StateName::Dead, None) => Left::Moved,
        (state, _) if row.state.is_terminal() => Left::Settled(state),
        (state, _) => Left::Open(state),
    }
}

#[cfg(test)]
mod tests;
