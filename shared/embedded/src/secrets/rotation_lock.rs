//! One process at a time rotates the secrets of a file.

use std::fs;
use std::path::PathBuf;

use super::SecretsFile;
use crate::file_lock::FileLock;

/// Longest text of a lock file that is believed.
const TOLD_MAX: usize = 200;

/// Why the lock was not given.
#[derive(Debug, thiserror::Error)]
pub enum RotationLockError {
    /// Another process has it.
    #[error("another rotation is at work on {path}{}", told(.holder.as_deref()))]
    Held {
        /// The secrets file.
        path: PathBuf,
        /// What the other one said about itself, if that can be read.
        holder: Option<String>,
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

fn told(holder: Option<&str>) -> String {
    holder.map(|holder| format!(": {holder}")).unwrap_or_default()
}

/// The right to rotate the secrets of a file; lasts until it is dropped or the process ends, however
/// it ends. Whoever has it knows that every earlier rotation's process has ended.
#[derive(Debug)]
pub struct RotationLock {
    _lock: FileLock,
}

impl RotationLock {
    /// Takes the lock beside the secrets file, in `<file>.rotation.lock`, which stays there. Others
    /// are told what the holder says of itself.
    ///
    /// # Errors
    /// [`RotationLockError::Held`] while another process has it; never waits.
    pub fn acquire(secrets: &SecretsFile, holder: &str) -> Result<Self, RotationLockError> {
        let path = secrets.beside(".rotation.lock");
        let failed = |source| RotationLockError::Io { path: path.clone(), source };
        let Some(lock) = FileLock::try_acquire(&path).map_err(failed)? else {
            let said = fs::read_to_string(&path).ok();
            let holder = said.map(|said| {
                said.chars().filter(|c| !c.is_control()).take(TOLD_MAX).collect::<String>()
            });
            let holder = holder.filter(|holder| !holder.is_empty());
            return Err(RotationLockError::Held { path: secrets.path.clone(), holder });
        };
        lock.write(holder).map_err(failed)?;
        Ok(Self { _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_lock_is_told_to_who_wants_it() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = SecretsFile::new(&folder.path().join("secrets.json"));
        let earlier = RotationLock::acquire(&secrets, "process 123456789, to whom much is due");
        drop(earlier.unwrap());
        let lock = RotationLock::acquire(&secrets, "process 7\u{1b}").unwrap();
        let error = RotationLock::acquire(&secrets, "process 8").unwrap_err();
        let RotationLockError::Held { holder, .. } = &error else { panic!("{error:?}") };
        assert_eq!(holder.as_deref(), Some("process 7"));
        assert!(error.to_string().ends_with("secrets.json: process 7"), "{error}");
        let other = SecretsFile::new(&folder.path().join("other.json"));
        RotationLock::acquire(&other, "").unwrap();
        drop(lock);
        RotationLock::acquire(&secrets, "process 8").unwrap();
    }
}
