//! One server per file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::file_lock::FileLock;

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
    _lock: FileLock,
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
        match FileLock::try_acquire(&path) {
            Ok(Some(lock)) => Ok(Self { _lock: lock }),
            Ok(None) => Err(LockError::Held { path: ledger.to_owned() }),
            Err(source) => Err(LockError::Io { path, source }),
        }
    }
}

#[cfg(test)]
mod tests;
