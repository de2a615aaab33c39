//! A copy that is whole although the ledger is in use.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use domain::ports::PortError;

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
    /// `SQLite` refused.
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
        let target = target.to_owned();
        let refused = target.clone();
        let outcome = self
            .read(LEDGER, "backup", move |connection| {
                if target.exists() {
                    return Ok(Err(io::ErrorKind::AlreadyExists.into()));
                }
                let partial = partial_of(&target);
                match std::fs::remove_file(&partial) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Ok(Err(error));
                    }
                    _ => {}
                }
                let text = partial.to_string_lossy().into_owned();
                connection.execute("VACUUM INTO ?1", [text])?;
                Ok(publish(&partial, &target))
            })
            .await
            .map_err(BackupError::Ledger)?;
        outcome.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => BackupError::Exists { path: refused },
            _ => BackupError::Io { path: refused, source },
        })
    }
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
