//! One server per file.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// Why the lock was not given.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another server has it.
    #[error("another server runs on {path}; stop it, or give this one another data directory")]
    Held {
        /// The ledger's file.
        path: PathBuf,
    },
    /// The lock file cannot be made or locked.
    #[error("the lock file {path} cannot be locked; check that its directory may be written")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// The right to run a server on a file; lasts until it is dropped or the process ends, however it
/// ends. Verbs beside a running server need none.
#[derive(Debug)]
pub struct ServerLock {
    // The system releases the lock when the file is closed.
    _file: File,
}

impl ServerLock {
    /// Takes the lock beside the ledger's file, in `<file>.lock`, which stays there.
    ///
    /// # Errors
    /// [`LockError::Held`] while another server has it; never waits.
    pub fn acquire(ledger: &Path) -> Result<Self, LockError> {
        let mut name = OsString::from(ledger);
        name.push(".lock");
        let path = PathBuf::from(name);
        let trouble = |source| LockError::Io { path: path.clone(), source };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(trouble)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LockError::Held { path: ledger.to_owned() }),
            Err(TryLockError::Error(source)) => Err(trouble(source)),
        }
    }
}

#[cfg(test)]
mod tests;
