//! Announcing: telling the ledger that a job has (probably) settled, and sending its task.

use std::time::Duration;

use crate::entry::{Announced, Announcement, Cause, Entry, StateName};
use crate::job::JobKey;
use crate::limits::Limits;
use crate::ports::{Clock, Entries, PortError, Queue, Random};
use crate::task::Task;
use crate::time::Timestamp;
use crate::update::{Changed, change};

/// What announcing needs.
#[derive(Clone, Copy)]
pub struct AnnouncePorts<'a> {
    /// The rows.
    pub entries: &'a dyn Entries,
    /// The way to the workers.
    pub queue: &'a dyn Queue,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Chance.
    pub random: &'a dyn Random,
    /// The bounds.
    pub limits: &'a Limits,
}

/// What an announcement found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnounceOutcome {
    /// The ledger did not know the job.
    New,
    /// The ledger knew it, and a task was sent.
    Sent(StateName),
    /// Nothing was to be done.
    Known(StateName),
}

/// What an announcement made of a row, and what is left to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announcing {
    /// Nothing was to be done; the row's state.
    Known(StateName),
    /// The row is written, and its task is sent.
    Sent {
        /// The state before; `None` if the ledger did not know the job.
        before: Option<StateName>,
    },
    /// The row is written, by this call or an earlier try of it, and its task is to be sent.
    Unsent {
        /// The row as it is.
        row: Option<Box<Entry>>,
        /// As above.
        before: Option<StateName>,
    },
}

/// Writes the row, then sends the task. After `Ok` the job is owed durably.
///
/// If the task cannot be sent, the row is marked so (best effort) that the next announcement
/// sends one at once, and the error is returned; the sweep would send one in any case.
///
/// # Errors
/// Those of the ledger and the queue.
pub async fn announce(
    ports: AnnouncePorts<'_>,
    key: &JobKey,
    cause: Cause,
    delivery_id: Option<&str>,
) -> Result<AnnounceOutcome, PortError> {
    let now = ports.clock.now();
    let announcement = Announcement {
        cause,
        delivery_id: delivery_id.map(ToOwned::to_owned),
        token: ports.random.token(),
    };
    let before = match ports.entries.announce(key, &announcement, now, ports.limits).await? {
        Announcing::Known(state) => return Ok(AnnounceOutcome::Known(state)),
        Announcing::Sent { before } => before,
        Announcing::Unsent { row, before } => {
            send(ports, key, row.map(|row| *row), &announcement).await?;
            before
        }
    };
    Ok(before.map_or(AnnounceOutcome::New, AnnounceOutcome::Sent))
}

/// [`Entries::announce`] for adapters that can but read and write rows.
pub(crate) async fn announce_in_parts(
    entries: &(impl Entries + ?Sized),
    key: &JobKey,
    announcement: &Announcement,
    now: Timestamp,
    limits: &Limits,
) -> Result<Announcing, PortError> {
    let read = entries.load(key).await?;
    announce_from(entries, read, key, announcement, now, limits).await
}

/// Announces from the row as it was read, or from none where the job is thought unknown: the write
/// that finds another row tells, and the announcement goes on from there.
///
/// # Errors
/// Those of [`Entries::write`].
pub async fn announce_from(
    entries: &(impl Entries + ?Sized),
    read: Option<Entry>,
    key: &JobKey,
    announcement: &Announcement,
    now: Timestamp,
    limits: &Limits,
) -> Result<Announcing, PortError> {
    let mut before = None;
    let mut send_again = false;
    let changed = change(entries, read, now, |row| {
        send_again = false;
        match Entry::announce(row, key, announcement, now, limits) {
            Announced::Write(entry) => {
                before = state_before(row, now);
                Some(*entry)
            }
            Announced::SendAgain => {
                send_again = true;
                None
            }
            Announced::Known => None,
        }
    })
    .await?;
    Ok(match changed {
        Changed::Left(row) if !send_again => {
            Announcing::Known(row.map_or(StateName::Received, |row| row.state.name()))
        }
        Changed::Left(row) => Announcing::Unsent { row, before },
        Changed::Written(row) => Announcing::Unsent { row: Some(row), before },
    })
}

/// The state of the row that an announcement is about to write over; an expired one counts as
/// absent.
pub fn state_before(row: Option<&Entry>, now: Timestamp) -> Option<StateName> {
    row.filter(|row| !row.is_expired(now)).map(|row| row.state.name())
}

async fn send(
    ports: AnnouncePorts<'_>,
    key: &JobKey,
    row: Option<Entry>,
    announcement: &Announcement,
) -> Result<(), PortError> {
    let task = Task { key: key.clone() };
    if let Err(error) = ports.queue.send(&task, Duration::ZERO).await {
        let ours = |row: &&Entry| row.token.as_deref() == Some(&announcement.token);
        let unsent = |row: Option<&Entry>| row.filter(ours).map(Entry::unsent);
        // Only speed is lost when this write fails too: the sweep looks after the grace.
        drop(change(ports.entries, row, ports.clock.now(), unsent).await);
        return Err(error);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
