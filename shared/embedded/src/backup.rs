//! A copy that is whole although the ledger is in use.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use domain::ports::PortError;

use crate::connection::{self, OpenError, Purpose};
use crate::limits::BUSY_TIMEOUT;
use crate::store::{LEDGER, SqliteStore};

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Something lies there already.
    #[error("{path} exists already; name a file that does not exist")]
    Exists {
        /// The target.
        path: PathBuf,
    },
    /// The target cannot be written.
    #[error("the backup {path} cannot be written; check that its directory exists")]
    Io {
        /// The target.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The ledger's file cannot be opened once more.
    #[error(transparent)]
    Open(OpenError),
    /// `SQLite` refused.
    #[error("the ledger cannot be copied; check that the backup's directory exists and has room")]
    Sqlite(#[source] rusqlite::Error),
    /// The store is closed.
    #[error("the ledger cannot be copied")]
    Ledger(#[source] PortError),
}

impl SqliteStore {
    /// Writes a copy of the whole file to `target`: one moment of the ledger, whole and synced to
    /// disk, while other calls go on.
    ///
    /// Copying the `.db` file with the system's tools instead loses what its `-wal` companion
    /// holds. The copy appears under its name only when it is complete; a broken-off call may
    /// leave `<target>.partial`, which the next call replaces.
    ///
    /// # Errors
    /// See [`BackupError`]; nothing that exists is overwritten.
    pub async fn backup(&self, target: &Path) -> Result<(), BackupError> {
        let source = self.path().to_owned();
        let target = target.to_owned();
        self.read(LEDGER, "backup", move |_| Ok(copy(&source, &target)))
            .await
            .map_err(BackupError::Ledger)?
    }
}

/// Copies over a connection of its own, because the readers' connections refuse to write, be it
/// to another file.
fn copy(source: &Path, target: &Path) -> Result<(), BackupError> {
    let trouble = |source| BackupError::Io { path: target.to_owned(), source };
    if target.try_exists().map_err(trouble)? {
        return Err(BackupError::Exists { path: target.to_owned() });
    }
    let partial = partial_of(target);
    // `SQLite` takes names in UTF-8 alone.
    let name = partial.to_str().ok_or_else(|| trouble(io::ErrorKind::InvalidFilename.into()))?;
    match std::fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(trouble(error)),
        _ => {}
    }
    let connection =
        connection::open(source, BUSY_TIMEOUT, Purpose::Write).map_err(BackupError::Open)?;
    connection.execute("VACUUM INTO ?1", [name]).map_err(BackupError::Sqlite)?;
    publish(&partial, target).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists { path: target.to_owned() },
        _ => trouble(source),
    })
}

fn partial_of(target: &Path) -> PathBuf {
    let mut name = OsString::from(target);
    name.push(".partial");
    PathBuf::from(name)
}

/// Gives the synced copy its name, unless somebody else took it meanwhile.
fn publish(partial: &Path, target: &Path) -> io::Result<()> {
    File::open(partial)?.sync_all()?;
    std::fs::hard_link(partial, target)?;
    std::fs::remove_file(partial)?;
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests;
