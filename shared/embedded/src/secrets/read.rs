//! Reading a secrets file: bounded, refused when others may read it, and never quoted.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use domain::ports::ErrorKind;
use domain::signature::secret::{Secret, SecretError, Stage};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::file::StoredSecret;
use crate::limits::SECRETS_FILE_BYTES_MAX;

/// The newest format that is read and written.
pub(super) const FORMAT: u32 = 2;

/// Why a secrets file gives no secrets. Nothing of its content is in the error.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not there.
    #[error("the secrets file {path} does not exist; create it with `gleaner webhooks create`")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("the secrets file {path} cannot be read")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is a directory, a pipe or a device.
    #[error("the secrets file {path} is not a regular file")]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// Other users of the machine may read or change it.
    #[error("the secrets file {path} is open to other users; run `chmod 600 {path}`")]
    Permissions {
        /// The file.
        path: PathBuf,
    },
    /// It is longer than the limit.
    #[error("the secrets file {path} is longer than {SECRETS_FILE_BYTES_MAX} bytes")]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It is no text.
    #[error("the secrets file {path} is not UTF-8 text")]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// It begins like JSON and is none.
    #[error("the secrets file {path} is not valid JSON (line {line}, column {column})")]
    NotJson {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1; 0 at the end of a line.
        column: usize,
    },
    /// It has the shape of our format and breaks its rules.
    #[error("the secrets file {path} is damaged at line {line}, column {column}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1; 0 if no place can be named.
        line: usize,
        /// The column, counted from 1; 0 if no place can be named.
        column: usize,
    },
    /// It was written by a later version.
    #[error(
        "the secrets file {path} has format version {version}, this program reads versions up to \
         {FORMAT}; use a newer gleaner"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A secret in it cannot be used.
    #[error("secret {number} of the secrets file {path} cannot be used")]
    Secret {
        /// The file.
        path: PathBuf,
        /// Which one, counted from 1.
        number: usize,
        /// Why.
        #[source]
        source: SecretError,
    },
    /// A previous secret without an end would be accepted for ever.
    #[error("secret {number} of the secrets file {path} is `previous` and lacks `until`")]
    Endless {
        /// The file.
        path: PathBuf,
        /// Which one, counted from 1.
        number: usize,
    },
}

impl ReadError {
    /// What the caller of the port should do.
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                ErrorKind::Denied
            }
            Self::Permissions { .. } => ErrorKind::Denied,
            Self::Missing { .. } | Self::Io { .. } => ErrorKind::Unavailable,
            _ => ErrorKind::Corrupt,
        }
    }
}

/// The file, versions 1 and 2.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wire {
    pub(super) version: u32,
    pub(super) secrets: Vec<WireSecret>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireSecret {
    pub(super) secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) webhook_id: Option<String>,
    pub(super) stage: WireStage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) event_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) slot: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WireStage {
    Current,
    Pending,
    Previous,
}

/// What tells our format from one secret in JSON: any object with a `version`.
#[derive(Deserialize)]
struct Probe {
    version: u32,
}

/// Reads a file of either form.
pub(super) fn load(path: &Path) -> Result<Vec<StoredSecret>, ReadError> {
    let text = read_text(path)?;
    if let Some(secrets) = parse(path, &text)? {
        return Ok(secrets);
    }
    let secret = Secret::parse_stored(&text).map_err(|source| ReadError::Secret {
        path: path.to_owned(),
        number: 1,
        source,
    })?;
    Ok(vec![StoredSecret::new(secret)])
}

/// Refuses a text that begins like JSON and is broken: a secret begins otherwise.
fn check_json(path: &Path, text: &str) -> Result<(), ReadError> {
    let begins_like_json = text.trim_start().starts_with(['{', '[', '"']);
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Err(error) if begins_like_json => Err(ReadError::NotJson {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
        }),
        _ => Ok(()),
    }
}

/// Reads our format; `None` if the text is something else.
pub(super) fn parse(path: &Path, text: &str) -> Result<Option<Vec<StoredSecret>>, ReadError> {
    let Ok(probe) = serde_json::from_str::<Probe>(text) else {
        check_json(path, text)?;
        return Ok(None);
    };
    if probe.version > FORMAT {
        return Err(ReadError::Newer { path: path.to_owned(), version: probe.version });
    }
    // serde's own text may quote what it found.
    let wire: Wire = serde_json::from_str(text).map_err(|error| ReadError::Damaged {
        path: path.to_owned(),
        line: error.line(),
        column: error.column(),
    })?;
    if wire.version == 0 {
        return Err(ReadError::Damaged { path: path.to_owned(), line: 0, column: 0 });
    }
    let mut secrets = Vec::with_capacity(wire.secrets.len());
    for (index, wire) in wire.secrets.into_iter().enumerate() {
        let number = index + 1;
        if matches!(wire.stage, WireStage::Previous) && wire.until.is_none() {
            return Err(ReadError::Endless { path: path.to_owned(), number });
        }
        secrets.push(decode(wire).map_err(|source| ReadError::Secret {
            path: path.to_owned(),
            number,
            source,
        })?);
    }
    Ok(Some(secrets))
}

fn decode(wire: WireSecret) -> Result<StoredSecret, SecretError> {
    let stage = match wire.stage {
        WireStage::Current => Stage::Current,
        WireStage::Pending => Stage::Pending,
        WireStage::Previous => Stage::Previous,
    };
    let mut secret = Secret::new(&wire.secret)?.with_stage(stage);
    if let Some(id) = &wire.webhook_id {
        secret = secret.with_webhook_id(id)?;
    }
    if let Some(label) = &wire.label {
        secret = secret.with_label(label)?;
    }
    Ok(StoredSecret {
        until: wire.until,
        url: wire.url,
        event_type: wire.event_type,
        slot: wire.slot,
        version: wire.version,
        ..StoredSecret::new(secret)
    })
}

/// The file's text, if nobody else may read it and it is not too long.
pub(super) fn read_text(path: &Path) -> Result<String, ReadError> {
    let trouble = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ReadError::Missing { path: path.to_owned() },
        _ => ReadError::Io { path: path.to_owned(), source },
    };
    // Before it is opened, because opening a pipe waits for its other end.
    check(path, &std::fs::metadata(path).map_err(trouble)?)?;
    let file = File::open(path).map_err(trouble)?;
    check(path, &file.metadata().map_err(trouble)?)?;
    let mut bytes = Vec::new();
    let cap = u64::try_from(SECRETS_FILE_BYTES_MAX).unwrap_or(u64::MAX);
    file.take(cap.saturating_add(1)).read_to_end(&mut bytes).map_err(trouble)?;
    if bytes.len() > SECRETS_FILE_BYTES_MAX {
        return Err(ReadError::TooLong { path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|_| ReadError::NotText { path: path.to_owned() })
}

fn check(path: &Path, metadata: &Metadata) -> Result<(), ReadError> {
    if !metadata.is_file() {
        return Err(ReadError::NotAFile { path: path.to_owned() });
    }
    if is_open_to_others(metadata) {
        return Err(ReadError::Permissions { path: path.to_owned() });
    }
    Ok(())
}

#[cfg(unix)]
fn is_open_to_others(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_metadata: &Metadata) -> bool {
    false
}
