//! Conditional writes: read, decide, write if unchanged, else decide anew.

use crate::entry::Entry;
use crate::limits::WRITE_CONFLICTS_MAX;
use crate::ports::{Entries, ErrorKind, Expected, PortError, Written};
use crate::time::Timestamp;

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// The row is as decided.
    Written(Box<Entry>),
    /// The decision was to leave the row as it is.
    Left(Option<Box<Entry>>),
}

/// Writes what `decide` makes of the row, starting from the row as the caller read it.
///
/// A conflict with the very row that was to be written is the same call's own earlier try, whose
/// answer was lost below us; it counts as written.
///
/// # Errors
/// Those of the ledger; `Unavailable` after [`WRITE_CONFLICTS_MAX`] lost races.
pub async fn change(
    entries: &(impl Entries + ?Sized),
    read: Option<Entry>,
    now: Timestamp,
    mut decide: impl FnMut(Option<&Entry>) -> Option<Entry> + Send,
) -> Result<Changed, PortError> {
    let mut current = read.map(Box::new);
    for _ in 0..WRITE_CONFLICTS_MAX {
        let Some(next) = decide(current.as_deref()) else {
            return Ok(Changed::Left(current));
        };
        let expected = match &current {
            Some(entry) if !entry.is_expired(now) => Expected::As(entry.seen()),
            _ => Expected::Absent(now),
        };
        match entries.write(&next, expected).await? {
            Written::Done => return Ok(Changed::Written(Box::new(next))),
            Written::Conflict(Some(row)) if *row == next => return Ok(Changed::Written(row)),
            Written::Conflict(row) => current = row,
        }
    }
    Err(PortError::new("ledger", "write", ErrorKind::Unavailable)
        .with_source("the row kept changing under this write"))
}

#[cfg(test)]
mod tests;
