//! What the file is: its mark, its version and the steps from one version to the next.

use rusqlite::{Connection, TransactionBehavior};

/// Marks a file as ours in `SQLite`'s header: `Glnr`.
pub const APPLICATION_ID: i32 = 0x476c_6e72;

/// The steps; the n-th leads from version n to n + 1. A released step never changes.
const UPGRADES: [&str; 2] = [include_str!("schema/v1.sql"), include_str!("schema/v2.sql")];

/// The version that this program writes.
pub const SCHEMA_VERSION: i32 = 2;

const _: () = assert!(UPGRADES.len() == 2 && SCHEMA_VERSION == 2, "one step per version");

/// What a file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing in it yet.
    Empty,
    /// Ours, in a version that this program reads.
    Version(i32),
    /// Ours, written by a later program.
    Newer(i32),
    /// A database of something else.
    Foreign,
}

/// Reads the file's mark and version, and changes nothing.
pub(crate) fn inspect(connection: &Connection) -> rusqlite::Result<Found> {
    // One statement, because another process may be making the file ours at this moment.
    let (mark, version, objects): (i32, i32, i64) = connection.query_row(
        "SELECT (SELECT application_id FROM pragma_application_id), \
         (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok(match (mark, version) {
        (0, 0) if objects == 0 => Found::Empty,
        (APPLICATION_ID, 1..=SCHEMA_VERSION) => Found::Version(version),
        (APPLICATION_ID, _) if version > SCHEMA_VERSION => Found::Newer(version),
        _ => Found::Foreign,
    })
}

/// Brings an empty or older file to [`SCHEMA_VERSION`], in one transaction.
///
/// The version is read again under the lock, so that two processes may start at once.
pub(crate) fn upgrade(connection: &mut Connection) -> rusqlite::Result<Found> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = inspect(&transaction)?;
    let from = match found {
        Found::Empty => 0,
        Found::Version(version) => version,
        Found::Newer(_) | Found::Foreign => return Ok(found),
    };
    let done = usize::try_from(from).unwrap_or(0);
    if done < UPGRADES.len() {
        for step in UPGRADES.iter().skip(done) {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    transaction.commit()?;
    Ok(Found::Version(SCHEMA_VERSION))
}

#[cfg(test)]
mod tests;
