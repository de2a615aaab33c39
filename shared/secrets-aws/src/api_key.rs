//! The account's API key.

use std::fmt;

use aws_client::SdkConfig;
use domain::ports::{ErrorKind, PortError};
use domain::signature::secret::Stage;
use serde::Deserialize;

use crate::version::{Reader, ValueError};

/// Longest text read as a key, in bytes: white space around the longest key.
const TEXT_BYTES_MAX: usize = 4_096;

/// An API key that neither logs nor `Debug` show.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeyText(String);

impl ApiKeyText {
    /// The key, for whoever must send it. Never log it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKeyText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

/// Why a stored value is no API key. The value is never in it.
#[derive(Debug, thiserror::Error)]
enum KeyError {
    #[error("the API key is empty; set it to the value that the platform's dashboard shows")]
    Blank,
    #[error("the value is longer than 4096 bytes")]
    TooLong,
    #[error(
        "the stored API key is ambiguous; store the plain text, a JSON string, or a JSON object with `api_key`"
    )]
    Ambiguous,
    #[error(transparent)]
    Value(#[from] ValueError),
}

/// The JSON object form of a stored key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    api_key: String,
}

/// Where the account's API key is: the current version of one secret.
///
/// The value is the key's plain text, a JSON string, or a JSON object with `api_key` and nothing
/// else, as the console writes it; white space around the key is dropped. Whether the key can be
/// sent in a header is for the API's client to say.
#[derive(Clone)]
pub struct ApiKeySource {
    reader: Reader,
    id: String,
}

impl fmt::Debug for ApiKeySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ApiKeySource").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ApiKeySource {
    /// The key in the secret of this name or ARN. Nothing is read yet.
    pub fn new(config: &SdkConfig, id: &str) -> Self {
        Self { reader: Reader::new(config, "load_api_key"), id: id.to_owned() }
    }

    /// The secret's name or ARN, for whoever has to mend it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Reads the key: one call, every time. The caller spaces its calls.
    ///
    /// # Errors
    /// `Denied` where the secret is not there, has no value or may not be read; `Corrupt` where
    /// its value is no key; otherwise transient.
    pub async fn load(&self) -> Result<ApiKeyText, PortError> {
        let (id, stage) = (&self.id, Stage::Current);
        let version = self.reader.read(id, stage).await.map_err(|error| error.error)?;
        version
            .text()
            .map_err(KeyError::from)
            .and_then(parse)
            .map_err(|error| self.reader.failed(id, stage, ErrorKind::Corrupt, error))
    }
}

fn parse(text: &str) -> Result<ApiKeyText, KeyError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(KeyError::TooLong);
    }
    let text = text.trim();
    let key = match text.as_bytes().first() {
        None => return Err(KeyError::Blank),
        Some(b'{') => {
            let stored: Stored = serde_json::from_str(text).map_err(|_| KeyError::Ambiguous)?;
            stored.api_key
        }
        Some(b'"') => serde_json::from_str(text).map_err(|_| KeyError::Ambiguous)?,
        Some(b'[') => return Err(KeyError::Ambiguous),
        Some(_) if matches!(text, "null" | "true" | "false") => return Err(KeyError::Ambiguous),
        Some(_) => text.to_owned(),
    };
    match key.trim() {
        "" => Err(KeyError::Blank),
        key => Ok(ApiKeyText(key.to_owned())),
    }
}

#[cfg(test)]
mod tests;
