use std::sync::Mutex;

use async_trait::async_trait;

use super::lock;
use crate::ports::{ErrorKind, LoadedSecrets, PortError, SecretSource};
use crate::signature::secret::Secret;

/// Signing secrets in memory that a test can change, spoil and withhold. It counts its loads.
#[derive(Default)]
pub struct MemorySecrets {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    secrets: Vec<Secret>,
    texts: Vec<String>,
    failure: Option<ErrorKind>,
    loads: u64,
}

impl MemorySecrets {
    /// A source of these secrets.
    pub fn new(secrets: Vec<Secret>) -> Self {
        Self { state: Mutex::new(State { secrets, ..State::default() }) }
    }

    /// Puts these in the place of all that is there, and lets loads succeed again.
    pub fn set(&self, secrets: Vec<Secret>) {
        let mut state = lock(&self.state);
        *state = State { secrets, loads: state.loads, ..State::default() };
    }

    /// Adds a text in a stored form, usable or not: see [`Secret::parse_stored`].
    pub fn add_stored(&self, text: &str) {
        lock(&self.state).texts.push(text.to_owned());
    }

    /// Lets every load fail until [`MemorySecrets::set`].
    pub fn fail(&self, kind: ErrorKind) {
        lock(&self.state).failure = Some(kind);
    }

    /// How often the secrets were loaded, in vain or not.
    pub fn loads(&self) -> u64 {
        lock(&self.state).loads
    }
}

#[async_trait]
impl SecretSource for MemorySecrets {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        let mut state = lock(&self.state);
        state.loads += 1;
        if let Some(kind) = state.failure {
            return Err(failed(kind));
        }
        let mut secrets = state.secrets.clone();
        for text in &state.texts {
            let secret = Secret::parse_stored(text)
                .map_err(|error| failed(ErrorKind::Corrupt).with_source(error))?;
            secrets.push(secret);
        }
        Ok(secrets.into())
    }
}

fn failed(kind: ErrorKind) -> PortError {
    PortError::new("secrets", "load", kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_holds_what_it_is_given_and_counts() {
        let source = MemorySecrets::new(vec![Secret::new("test-secret-1").unwrap()]);
        source.add_stored("\"test-secret-2\"");
        assert_eq!(source.load().await.unwrap().secrets.len(), 2);
        source.fail(ErrorKind::Throttled);
        assert_eq!(source.load().await.unwrap_err().kind, ErrorKind::Throttled);
        source.set(Vec::new());
        assert!(source.load().await.unwrap().secrets.is_empty());
        source.add_stored("null");
        assert_eq!(source.load().await.unwrap_err().kind, ErrorKind::Corrupt);
        assert_eq!(source.loads(), 4);
    }
}
