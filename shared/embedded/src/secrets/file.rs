//! The secrets file that `gleaner webhooks` keeps: one entry per webhook and stage.
//!
//! Format, version 1, UTF-8 JSON: an object with `version` (1) and `secrets`, an array of objects
//! with `secret`, `stage` (`current`, `pending`, `previous`), and optionally `webhook_id`, `url`,
//! `event_type`, `label` and `until` (RFC 3339; required for `previous`).
//!
//! Version 2 adds what rotations need, `slot` and `version` of a secret, both optional. A file is
//! written as version 1 as long as no secret in it has either.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use domain::ports::ErrorKind;
use domain::signature::SECRETS_MAX;
use domain::signature::secret::{Secret, Stage};
use domain::time::Timestamp;

use super::read::{self, FORMAT, ReadError, Wire, WireSecret, WireStage};
use crate::file_lock::FileLock;
use crate::limits::SECRETS_FILE_BYTES_MAX;

/// A secret as the file keeps it.
#[derive(Debug, Clone)]
pub struct StoredSecret {
    /// The secret with its stage, label and webhook id.
    pub secret: Secret,
    /// From when on it is not accepted any more.
    pub until: Option<Timestamp>,
    /// Where the webhook delivers.
    pub url: Option<String>,
    /// What it is told of.
    pub event_type: Option<String>,
    /// The subscription that it belongs to, where rotations gave it another webhook; otherwise the
    /// webhook is the subscription.
    pub slot: Option<String>,
    /// The name of its version, if a rotation made it.
    pub version: Option<String>,
}

impl StoredSecret {
    /// A secret of which nothing more is known.
    pub const fn new(secret: Secret) -> Self {
        Self { secret, until: None, url: None, event_type: None, slot: None, version: None }
    }

    /// Whether deliveries signed with it are accepted.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    fn is_of(&self, webhook_id: &str, stage: Stage) -> bool {
        self.secret.webhook_id() == Some(webhook_id) && self.secret.stage() == stage
    }
}

/// Why a secrets file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SecretsFileError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It holds one bare secret.
    #[error("{path} holds a secret that gleaner did not write; name another secrets file")]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// Another process is changing it.
    #[error("another gleaner is changing {path}; try again when it has ended")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The webhook has a secret in this stage already.
    #[error("{path} holds a {stage} secret of webhook {webhook_id} already", stage = stage.as_str())]
    Present {
        /// The file.
        path: PathBuf,
        /// The webhook.
        webhook_id: String,
        /// The stage.
        stage: Stage,
    },
    /// A secret without a webhook could never be found again.
    #[error("a secret in a secrets file must name its webhook")]
    NoWebhook,
    /// A previous secret without an end would be accepted for ever.
    #[error("a previous secret must say until when it is accepted")]
    Endless,
    /// No room.
    #[error(
        "{path} would hold more than {SECRETS_MAX} secrets or {SECRETS_FILE_BYTES_MAX} bytes; \
         remove webhooks that are gone"
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("the secrets file {path} cannot be written; check that its directory may be written")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl SecretsFileError {
    /// What the caller of a port should do.
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::NotOurs { .. } => ErrorKind::Corrupt,
            Self::Busy { .. } | Self::Io { .. } => ErrorKind::Unavailable,
            Self::Present { .. } | Self::NoWebhook | Self::Endless | Self::Full { .. } => {
                ErrorKind::Invalid
            }
        }
    }
}

/// Reads and changes a secrets file. A change is whole or not made, synced to disk, and one at a
/// time; the file is readable by its owner alone. All calls block for a few disk operations.
#[derive(Debug, Clone)]
pub struct SecretsFile {
    pub(super) path: PathBuf,
}

impl SecretsFile {
    /// Names the file, which need not exist.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The secrets in it; none if it does not exist.
    ///
    /// # Errors
    /// See [`SecretsFileError`].
    pub fn list(&self) -> Result<Vec<StoredSecret>, SecretsFileError> {
        let text = match read::read_text(&self.path) {
            Ok(text) => text,
            Err(ReadError::Missing { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let parsed = read::parse(&self.path, &text)?;
        parsed.ok_or_else(|| SecretsFileError::NotOurs { path: self.path.clone() })
    }

    /// Writes the file anew as it is, or an empty one where there is none: whether a secret that is
    /// about to be made could be kept.
    ///
    /// # Errors
    /// See [`SecretsFileError`].
    pub fn prepare(&self) -> Result<(), SecretsFileError> {
        self.change(|_| Ok(()))
    }

    /// Adds a secret.
    ///
    /// # Errors
    /// [`SecretsFileError::Present`] if its webhook has one in the same stage; otherwise see
    /// [`SecretsFileError`].
    pub fn add(&self, added: StoredSecret) -> Result<(), SecretsFileError> {
        let (webhook_id, stage) = identity(&added)?;
        self.change(|secrets| {
            if secrets.iter().any(|stored| stored.is_of(&webhook_id, stage)) {
                return Err(SecretsFileError::Present {
                    path: self.path.clone(),
                    webhook_id,
                    stage,
                });
            }
            secrets.push(added);
            Ok(())
        })
    }

    /// Notes where a webhook delivers now. Secrets and stages stay as they are.
    ///
    /// # Errors
    /// See [`SecretsFileError`].
    pub fn follow(&self, webhook_id: &str, url: &str) -> Result<(), SecretsFileError> {
        self.change(|secrets| {
            for stored in secrets.iter_mut() {
                if stored.secret.webhook_id() == Some(webhook_id) {
                    stored.url = Some(url.to_owned());
                }
            }
            Ok(())
        })
    }

    /// Removes all secrets of a webhook; says how many there were.
    ///
    /// # Errors
    /// See [`SecretsFileError`].
    pub fn remove(&self, webhook_id: &str) -> Result<usize, SecretsFileError> {
        self.change(|secrets| {
            let before = secrets.len();
            secrets.retain(|stored| stored.secret.webhook_id() != Some(webhook_id));
            Ok(before - secrets.len())
        })
    }

    /// Reads, changes and writes the file while no other process does.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<StoredSecret>) -> Result<T, SecretsFileError>,
    ) -> Result<T, SecretsFileError> {
        let _lock = self.lock()?;
        let mut secrets = self.list()?;
        let outcome = change(&mut secrets)?;
        let text = encode(&secrets);
        if secrets.len() > SECRETS_MAX || text.len() > SECRETS_FILE_BYTES_MAX {
            return Err(SecretsFileError::Full { path: self.path.clone() });
        }
        self.publish(text.as_bytes()).map_err(|source| self.trouble(source))?;
        Ok(outcome)
    }

    fn lock(&self) -> Result<FileLock, SecretsFileError> {
        FileLock::try_acquire(&self.beside(".lock"))
            .map_err(|source| self.trouble(source))?
            .ok_or_else(|| SecretsFileError::Busy { path: self.path.clone() })
    }

    /// Writes a file beside, synced, and gives it the name; the lock keeps others off it.
    fn publish(&self, content: &[u8]) -> io::Result<()> {
        let partial = self.beside(".partial");
        match std::fs::remove_file(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = create_private(&partial)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&partial, &self.path)?;
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(directory)?.sync_all()
    }

    pub(super) fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(suffix);
        PathBuf::from(name)
    }

    fn trouble(&self, source: io::Error) -> SecretsFileError {
        SecretsFileError::Io { path: self.path.clone(), source }
    }
}

fn identity(stored: &StoredSecret) -> Result<(String, Stage), SecretsFileError> {
    let webhook_id = stored.secret.webhook_id().ok_or(SecretsFileError::NoWebhook)?;
    let stage = stored.secret.stage();
    if stage == Stage::Previous && stored.until.is_none() {
        return Err(SecretsFileError::Endless);
    }
    Ok((webhook_id.to_owned(), stage))
}

fn encode(secrets: &[StoredSecret]) -> String {
    let is_rotated = |stored: &StoredSecret| stored.slot.is_some() || stored.version.is_some();
    let version = if secrets.iter().any(is_rotated) { FORMAT } else { 1 };
    let secrets = secrets
        .iter()
        .map(|stored| WireSecret {
            secret: stored.secret.expose().to_owned(),
            webhook_id: stored.secret.webhook_id().map(str::to_owned),
            stage: match stored.secret.stage() {
                Stage::Current => WireStage::Current,
                Stage::Pending => WireStage::Pending,
                Stage::Previous => WireStage::Previous,
            },
            until: stored.until,
            url: stored.url.clone(),
            event_type: stored.event_type.clone(),
            label: Some(stored.secret.label())
                .filter(|label| *label != stored.secret.stage().as_str())
                .map(str::to_owned),
            slot: stored.slot.clone(),
            version: stored.version.clone(),
        })
        .collect();
    // Texts, numbers and instants always have a JSON form.
    let mut text = serde_json::to_string_pretty(&Wire { version, secrets }).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}
