//! Opening a connection, and making sure that it is as durable as a 2xx promises.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::limits::{
    CHECKPOINT_PAGES, OPEN_TRIES_MAX, STATEMENTS_MAX, WAL_BYTES_KEPT, WRITE_CACHE_KIB,
};
use crate::schema::{self, Found, SCHEMA_VERSION};

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another program's database, or no database at all.
    #[error("{path} is not a ledger of gleaner; name another file, this one was not changed")]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// Written by a later program.
    #[error(
        "{path} has schema version {version}, this program knows versions up to {SCHEMA_VERSION}; \
         use a newer gleaner, the file was not changed"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i32,
    },
    /// `SQLite` did not take a setting on which durability rests.
    #[error(
        "{path}: SQLite keeps `{pragma}` at {found} instead of {wanted}; \
         use a local disk, not a network or shared folder"
    )]
    Pragma {
        /// The file.
        path: PathBuf,
        /// The setting.
        pragma: &'static str,
        /// Its value as read back.
        found: String,
        /// The value it must have.
        wanted: String,
    },
    /// `SQLite` refused.
    #[error("{path} cannot be opened; check that its directory exists and may be written")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What `SQLite` said.
        #[source]
        source: rusqlite::Error,
    },
    /// A thread could not be started.
    #[error("no thread could be started for the ledger")]
    Thread(#[source] std::io::Error),
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Everything.
    Write,
    /// Reading alone; `SQLite` refuses anything else.
    Read,
}

/// Opens the file for writing, makes it ours if it is empty, and upgrades it if it is older.
pub(crate) fn prepare(path: &Path, busy_timeout: Duration) -> Result<Connection, OpenError> {
    let refuse = |source| sqlite(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(refuse)?;
    connection.busy_timeout(busy_timeout).map_err(refuse)?;
    // Before anything is set, because setting WAL writes to the file.
    let found = schema::inspect(&connection).map_err(refuse)?;
    judge(path, found)?;
    switch_to_wal(&connection).map_err(refuse)?;
    configure(&connection, path, busy_timeout, Purpose::Write)?;
    // A file that is up to date is opened without the write lock, however busy it is.
    if found != Found::Version(SCHEMA_VERSION) {
        judge(path, schema::upgrade(&mut connection).map_err(refuse)?)?;
    }
    Ok(connection)
}

/// Opens one more connection to a file that [`prepare`] has seen.
pub(crate) fn open(
    path: &Path,
    busy_timeout: Duration,
    purpose: Purpose,
) -> Result<Connection, OpenError> {
    let refuse = |source| sqlite(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(refuse)?;
    connection.busy_timeout(busy_timeout).map_err(refuse)?;
    match schema::inspect(&connection).map_err(refuse)? {
        Found::Version(SCHEMA_VERSION) => {}
        Found::Newer(version) => {
            return Err(OpenError::Newer { path: path.to_owned(), version });
        }
        _ => return Err(OpenError::NotOurs { path: path.to_owned() }),
    }
    configure(&connection, path, busy_timeout, purpose)?;
    Ok(connection)
}

fn judge(path: &Path, found: Found) -> Result<(), OpenError> {
    match found {
        Found::Empty | Found::Version(_) => Ok(()),
        Found::Newer(version) => Err(OpenError::Newer { path: path.to_owned(), version }),
        Found::Foreign => Err(OpenError::NotOurs { path: path.to_owned() }),
    }
}

fn sqlite(path: &Path, source: rusqlite::Error) -> OpenError {
    if source.sqlite_error_code() == Some(ErrorCode::NotADatabase) {
        return OpenError::NotOurs { path: path.to_owned() };
    }
    OpenError::Sqlite { path: path.to_owned(), source }
}

/// The switch needs the file for itself and does not wait for it, so others are waited for in
/// between: a write transaction honours the busy timeout.
fn switch_to_wal(connection: &Connection) -> rusqlite::Result<()> {
    let mut tries = 0;
    loop {
        tries += 1;
        match connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())) {
            Err(error)
                if tries < OPEN_TRIES_MAX
                    && error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) =>
            {
                connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
            }
            other => return other,
        }
    }
}

/// Sets what the promise rests on, then reads it back.
fn configure(
    connection: &Connection,
    path: &Path,
    busy_timeout: Duration,
    purpose: Purpose,
) -> Result<(), OpenError> {
    let refuse = |source| sqlite(path, source);
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    let busy_ms = i64::try_from(busy_timeout.as_millis()).unwrap_or(i64::from(i32::MAX));
    let query_only = i64::from(purpose == Purpose::Read);
    // Each value as SQLite reports it; 2 is FULL.
    let numbers = [
        ("synchronous", 2),
        ("foreign_keys", 0),
        ("busy_timeout", busy_ms),
        ("query_only", query_only),
    ];
    for (pragma, value) in numbers {
        connection
            .pragma_update_and_check(None, pragma, value, |_| Ok(()))
            .or_else(|error| match error {
                // Most pragmas answer nothing when they are set.
                rusqlite::Error::QueryReturnedNoRows => Ok(()),
                other => Err(other),
            })
            .map_err(refuse)?;
    }
    if purpose == Purpose::Write {
        let cache = -i64::from(WRITE_CACHE_KIB);
        connection.pragma_update(None, "cache_size", cache).map_err(refuse)?;
        for (pragma, value) in
            [("wal_autocheckpoint", CHECKPOINT_PAGES), ("journal_size_limit", WAL_BYTES_KEPT)]
        {
            connection.pragma_update_and_check(None, pragma, value, |_| Ok(())).map_err(refuse)?;
        }
    }
    for (pragma, wanted) in numbers {
        let found: i64 =
            connection.pragma_query_value(None, pragma, |row| row.get(0)).map_err(refuse)?;
        check(path, pragma, &found.to_string(), &wanted.to_string())?;
    }
    let mode: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(refuse)?;
    check(path, "journal_mode", &mode, "wal")
}

fn check(path: &Path, pragma: &'static str, found: &str, wanted: &str) -> Result<(), OpenError> {
    if found == wanted {
        return Ok(());
    }
    Err(OpenError::Pragma {
        path: path.to_owned(),
        pragma,
        found: found.to_owned(),
        wanted: wanted.to_owned(),
    })
}

#[cfg(test)]
mod tests;
