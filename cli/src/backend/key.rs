//! The account's API key as the settings give it: in a file, or by value.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use scraper_api::{ApiKey, KeySource, KeyTrouble};
use settings::{SecretText, Settings};

use crate::error::CliError;
use crate::exit::Exit;
use crate::serve::KeyPlace;

/// Largest key file, in bytes: white space around the longest key.
const KEY_FILE_BYTES_MAX: u64 = 4_096;
/// How to give a key.
const HOW: &str = "put the key into a file that only you can read and name it with --api-key-file, \
                   or set GLEANER_API_KEY";

/// Where the API key is.
#[derive(Debug, Clone)]
pub(crate) struct SetKey {
    file: Option<PathBuf>,
    value: Option<SecretText>,
}

impl SetKey {
    /// As the settings say; a file goes before a value.
    pub(crate) fn of(settings: &Settings) -> Self {
        Self { file: settings.api_key_file.clone(), value: settings.api_key.clone() }
    }

    /// Whether the settings give a key at all.
    #[cfg(feature = "aws")]
    pub(super) const fn is_set(&self) -> bool {
        self.file.is_some() || self.value.is_some()
    }

    /// Where the key is, for whoever has to mend it.
    pub(crate) fn place(&self) -> KeyPlace {
        match &self.file {
            Some(file) => KeyPlace {
                place: file.display().to_string(),
                how: "put the right key into the file, which is read again",
            },
            None => KeyPlace {
                place: "GLEANER_API_KEY".to_owned(),
                how: "set the right one and start again",
            },
        }
    }

    /// Reads the key.
    ///
    /// # Errors
    /// When there is none, or it is none, or others may read its file.
    pub(crate) fn load(&self) -> Result<ApiKey, CliError> {
        match (&self.file, &self.value) {
            (Some(file), _) => read_key(file),
            (None, Some(value)) => ApiKey::parse(value.expose()).map_err(|error| {
                CliError::new(Exit::Configuration, "the setting `api_key` is wrong").because(error)
            }),
            (None, None) => {
                Err(CliError::new(Exit::Configuration, "there is no API key").hint(HOW))
            }
        }
    }
}

#[async_trait]
impl KeySource for SetKey {
    async fn load(&self) -> Result<Option<ApiKey>, KeyTrouble> {
        let Some(file) = self.file.clone() else { return Ok(None) };
        Ok(Some(tokio::task::spawn_blocking(move || read_key(&file)).await??))
    }
}

fn read_key(path: &Path) -> Result<ApiKey, CliError> {
    let trouble = |what: &str| {
        CliError::new(Exit::Configuration, format!("the key file `{}` {what}", path.display()))
    };
    let unreadable = |error: std::io::Error| trouble("cannot be read").because(error).hint(HOW);
    // Before it is opened, because opening a pipe waits for its other end.
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(trouble("is not a regular file").hint(HOW));
    }
    if is_open_to_others(&metadata) {
        return Err(
            trouble("is open to other users").hint(format!("run `chmod 600 {}`", path.display()))
        );
    }
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(KEY_FILE_BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
    ApiKey::parse(&text).map_err(|error| trouble("holds no usable key").because(error))
}

#[cfg(unix)]
fn is_open_to_others(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_metadata: &std::fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests;
