//! Signing secrets of one machine: from files that only their owner reads, and from values that
//! the caller took from its settings.

mod file;
mod read;
mod rotation_lock;
mod vault;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use domain::ports::{Clock, ErrorKind, LoadedSecrets, PortError, SecretSource};
use domain::signature::secret::{Secret, SecretError};

pub use file::{SecretsFile, SecretsFileError, StoredSecret};
pub use read::ReadError;
pub use rotation_lock::{RotationLock, RotationLockError};
pub use vault::FileVault;

/// The port's name in errors.
const SECRETS: &str = "secrets";

/// One place where signing secrets are.
#[derive(Clone)]
pub enum SecretPlace {
    /// A file with one secret (see [`Secret::parse_stored`]), or one that [`SecretsFile`] writes.
    /// It is read anew each time.
    File(PathBuf),
    /// A value of the caller's settings, in a form of [`Secret::parse_stored`].
    Value {
        /// The setting's name, which is shown in place of the value.
        name: String,
        /// The value.
        value: String,
    },
}

impl fmt::Debug for SecretPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => formatter.debug_tuple("File").field(path).finish(),
            Self::Value { name, .. } => {
                formatter.debug_struct("Value").field("name", name).finish_non_exhaustive()
            }
        }
    }
}

/// Why a setting's value is no secret.
#[derive(Debug, thiserror::Error)]
#[error("{name} holds no usable signing secret")]
struct ValueError {
    name: String,
    #[source]
    source: SecretError,
}

/// All places together, as the receiver's source of secrets.
#[derive(Clone)]
pub struct LocalSecrets {
    places: Vec<SecretPlace>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for LocalSecrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LocalSecrets").field("places", &self.places).finish_non_exhaustive()
    }
}

impl LocalSecrets {
    /// The secrets of all places; one place that cannot be read fails the load.
    pub fn new(places: Vec<SecretPlace>, clock: Arc<dyn Clock>) -> Self {
        Self { places, clock }
    }
}

#[async_trait]
impl SecretSource for LocalSecrets {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        let places = self.places.clone();
        let now = self.clock.now();
        let reading = tokio::task::spawn_blocking(move || {
            let mut secrets = Vec::new();
            for place in &places {
                match place {
                    SecretPlace::File(path) => {
                        let stored =
                            read::load(path).map_err(|error| failed(error.kind(), error))?;
                        let valid = stored.into_iter().filter(|stored| stored.is_valid(now));
                        secrets.extend(valid.map(|stored| stored.secret));
                    }
                    SecretPlace::Value { name, value } => {
                        let secret = Secret::parse_stored(value).map_err(|source| {
                            failed(ErrorKind::Corrupt, ValueError { name: name.clone(), source })
                        })?;
                        secrets.push(secret);
                    }
                }
            }
            Ok(secrets.into())
        });
        reading.await.unwrap_or_else(|error| Err(failed(ErrorKind::Unavailable, error)))
    }
}

fn failed(kind: ErrorKind, source: impl std::error::Error + Send + Sync + 'static) -> PortError {
    PortError::new(SECRETS, "load", kind).with_source(source)
}

#[cfg(test)]
mod tests;
