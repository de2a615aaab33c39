//! The open file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::ports::{Clock, ErrorKind, PortError};
use rusqlite::{Connection, params};
use tokio::sync::Notify;

use crate::connection::{self, OpenError};
use crate::counts::{Group, RowsOf, dead_name, label};
use crate::failure::Failure;
use crate::limits::{BUSY_TIMEOUT, REMOVALS_MAX};
use crate::readers::Readers;
use crate::writer::Writer;

/// The port's name in errors of the ledger.
pub(crate) const LEDGER: &str = "ledger";

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long a write waits for another process's lock before it is `Unavailable`.
    pub busy_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { busy_timeout: BUSY_TIMEOUT }
    }
}

/// The ledger and the queue in one `SQLite` file.
///
/// Clones share the connections. Dropping the last clone ends the threads and waits for what they
/// are doing.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    readers: Readers,
    writer: Writer,
    sent: Notify,
    dropped_tasks: AtomicU64,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SqliteStore")
            .field("path", &self.inner.path)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the file, creates it if there is none, and brings an older one up to date.
    ///
    /// Blocks while it does so; meant for the start of a process.
    ///
    /// # Errors
    /// See [`OpenError`]; a file that is refused is left as it was.
    pub fn open(path: &Path, clock: Arc<dyn Clock>, settings: Settings) -> Result<Self, OpenError> {
        let connection = connection::prepare(path, settings.busy_timeout)?;
        let readers = Readers::start(path, settings.busy_timeout)?;
        let writer = Writer::start(connection, path, settings.busy_timeout)?;
        Ok(Self {
            inner: Arc::new(Inner {
                path: path.to_owned(),
                clock,
                readers,
                writer,
                sent: Notify::new(),
                dropped_tasks: AtomicU64::new(0),
            }),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Removes entries and intents that have expired, at most [`REMOVALS_MAX`] of each, and says
    /// how many went. They counted as absent before.
    ///
    /// # Errors
    /// Transient or `Denied`.
    pub async fn remove_expired(&self) -> Result<u64, PortError> {
        let now = self.clock().now().as_second();
        let removed = self
            .write(LEDGER, "remove_expired", move |group| {
                Ok(remove_entries(group, now)? + remove_intents(group, now)?)
            })
            .await?;
        Ok(u64::try_from(removed).unwrap_or(u64::MAX))
    }

    /// Messages dropped by this process because they were no tasks.
    pub fn dropped_tasks(&self) -> u64 {
        self.inner.dropped_tasks.load(Ordering::Relaxed)
    }

    pub(crate) fn count_dropped_tasks(&self, dropped: u64) {
        self.inner.dropped_tasks.fetch_add(dropped, Ordering::Relaxed);
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.inner.clock.as_ref()
    }

    /// Told once for each task that this process sends.
    pub(crate) fn sent(&self) -> &Notify {
        &self.inner.sent
    }

    pub(crate) async fn write<T, F>(
        &self,
        port: &'static str,
        name: &'static str,
        operation: F,
    ) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnMut(&Group) -> rusqlite::Result<T> + Send + 'static,
    {
        let outcome = self.inner.writer.write(operation).await;
        outcome.map_err(|failure| failure.into_port(port, name))
    }

    pub(crate) async fn read<T, F>(
        &self,
        port: &'static str,
        name: &'static str,
        read: F,
    ) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let outcome: Result<T, Failure> = self.inner.readers.read(read).await;
        outcome.map_err(|failure| failure.into_port(port, name))
    }
}

fn remove_entries(group: &Group, now: i64) -> rusqlite::Result<usize> {
    let mut statement = group.prepare_cached(
        "DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries \
         WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2) RETURNING state, dead_reason",
    )?;
    let mut rows = statement.query(params![now, REMOVALS_MAX])?;
    let mut removed = 0;
    while let Some(row) = rows.next()? {
        removed += 1;
        group.count(RowsOf::Entries, &label(row, 0)?.unwrap_or_default(), -1);
        if let Some(reason) = label(row, 1)? {
            group.count(RowsOf::Entries, &dead_name(&reason), -1);
        }
    }
    Ok(removed)
}

fn remove_intents(group: &Group, now: i64) -> rusqlite::Result<usize> {
    let mut statement = group.prepare_cached(
        "DELETE FROM intents WHERE rowid IN (SELECT rowid FROM intents \
         WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2) RETURNING state",
    )?;
    let mut rows = statement.query(params![now, REMOVALS_MAX])?;
    let mut removed = 0;
    while let Some(row) = rows.next()? {
        removed += 1;
        group.count(RowsOf::Intents, &label(row, 0)?.unwrap_or_default(), -1);
    }
    Ok(removed)
}

/// An error of the ledger that is no failure of the file.
pub(crate) fn ledger_error(
    operation: &'static str,
    kind: ErrorKind,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> PortError {
    PortError::new(LEDGER, operation, kind).with_source(source)
}

#[cfg(test)]
mod tests;
