//! A lock file: held by one process at a time, released by the system however that process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
}

impl FileLock {
    /// Takes the lock, never waits; `None` while another process has it. The file stays there.
    pub(crate) fn try_acquire(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Writes into the file what others may know.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        (&self.file).write_all(text.as_bytes())
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is just being started holds a copy
        // of it for a moment. When this fails, the end of that copy releases the lock.
        let _ = self.file.unlock();
    }
}
