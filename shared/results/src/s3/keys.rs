//! The keys that sign requests: the SDK's credentials, fetched again before they expire.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use domain::ports::Clock;
use domain::time::{Timestamp, between};
use object_store::aws::AwsCredential;
use object_store::{CredentialProvider, Error};
use tokio::sync::Mutex;

/// How long before they expire credentials are fetched again.
const FETCH_BEFORE: Duration = Duration::from_mins(5);

/// The keys in use. Those that do not expire, as a function's own, are fetched once.
pub(super) struct Keys {
    source: SharedCredentialsProvider,
    clock: Arc<dyn Clock>,
    /// Held while keys are fetched, so that they are fetched once for all who wait.
    held: Mutex<Option<Held>>,
}

struct Held {
    keys: Arc<AwsCredential>,
    expires_at: Option<Timestamp>,
}

impl Keys {
    pub(super) fn new(source: SharedCredentialsProvider, clock: Arc<dyn Clock>) -> Self {
        Self { source, clock, held: Mutex::default() }
    }
}

impl Held {
    /// Whether the keys are still good for more than `margin`.
    fn lasts(&self, now: Timestamp, margin: Duration) -> bool {
        self.expires_at.is_none_or(|at| between(now, at) > margin)
    }
}

/// Shows nothing of the keys.
impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Keys")
    }
}

#[async_trait]
impl CredentialProvider for Keys {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut held = self.held.lock().await;
        let now = self.clock.now();
        if let Some(held) = held.as_ref().filter(|held| held.lasts(now, FETCH_BEFORE)) {
            return Ok(Arc::clone(&held.keys));
        }
        match self.source.provide_credentials().await {
            Ok(fetched) => {
                let fetched = Held::from(&fetched);
                let keys = Arc::clone(&fetched.keys);
                *held = Some(fetched);
                Ok(keys)
            }
            Err(error) => match held.as_ref().filter(|held| held.lasts(now, Duration::ZERO)) {
                Some(held) => Ok(Arc::clone(&held.keys)),
                None => Err(unavailable(error)),
            },
        }
    }
}

impl From<&Credentials> for Held {
    fn from(fetched: &Credentials) -> Self {
        let keys = AwsCredential {
            key_id: fetched.access_key_id().to_owned(),
            secret_key: fetched.secret_access_key().to_owned(),
            token: fetched.session_token().map(str::to_owned),
        };
        // A time beyond what a timestamp can show is as good as never.
        let expires_at = fetched.expiry().and_then(|at| Timestamp::try_from(at).ok());
        Self { keys: Arc::new(keys), expires_at }
    }
}

/// Absent and malformed credentials are somebody's to mend; a source that does not answer will.
fn unavailable(error: CredentialsError) -> Error {
    let source = Box::new(error);
    match *source {
        CredentialsError::ProviderTimedOut(_) | CredentialsError::ProviderError(_) => {
            Error::Generic { store: "S3", source }
        }
        _ => Error::Unauthenticated { path: "the credentials".to_owned(), source },
    }
}

#[cfg(test)]
mod tests;
