//! The last write of a row.

use super::{Skip, Worked};
use crate::entry::{Cause, DeadReason, Entry, State, StoredObject};
use crate::job::JobError;
use crate::ports::PortError;
use crate::steps::Ports;
use crate::update::{Changed, change};

/// Settles the row as stored, whatever another worker made of it meanwhile, unless it is
/// terminal: the object is there, and that decides.
pub(super) async fn stored(
    ports: Ports<'_>,
    entry: Entry,
    object: StoredObject,
) -> Result<Worked, PortError> {
    let now = ports.clock.now();
    let generation = entry.generation;
    let state = State::Stored { result: object.clone() };
    let changed = change(ports.ledger, Some(entry), now, |row| {
        row.filter(|row| !row.state.is_terminal() && row.generation == generation)
            .map(|row| row.settled(state.clone(), Cause::Work, now, ports.limits))
    })
    .await?;
    Ok(match changed {
        Changed::Written(_) => Worked::Stored { key: object.key, follow_up: None },
        Changed::Left(row) => skipped(row.as_deref()),
    })
}

/// Gives the row up, if it is still as it was read.
pub(super) async fn die(
    ports: Ports<'_>,
    entry: Entry,
    reason: DeadReason,
    error: Option<JobError>,
    result: Option<StoredObject>,
) -> Result<Worked, PortError> {
    let now = ports.clock.now();
    let seen = entry.seen();
    let state = State::Dead { reason, error, result };
    let changed = change(ports.ledger, Some(entry), now, |row| {
        row.filter(|row| row.seen() == seen)
            .map(|row| row.settled(state.clone(), Cause::Work, now, ports.limits))
    })
    .await?;
    Ok(match changed {
        Changed::Written(_) => Worked::Dead(reason),
        Changed::Left(row) => skipped(row.as_deref()),
    })
}

/// What a worker says that came too late.
pub(super) fn skipped(row: Option<&Entry>) -> Worked {
    Worked::Skipped(match row {
        None => Skip::Absent,
        Some(row) if row.state.is_terminal() => Skip::Settled(row.state.name()),
        Some(_) => Skip::Overtaken,
    })
}
