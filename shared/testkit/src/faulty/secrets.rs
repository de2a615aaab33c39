use std::sync::Arc;

use async_trait::async_trait;
use domain::ports::{LoadedSecrets, PortError, SecretSource};

use super::plan::Surroundings;

/// A source of secrets that fails by a plan.
pub struct FaultySecrets {
    inner: Arc<dyn SecretSource>,
    surroundings: Surroundings,
}

impl FaultySecrets {
    /// Wraps a port.
    pub fn new(inner: Arc<dyn SecretSource>, surroundings: Surroundings) -> Self {
        Self { inner, surroundings }
    }
}

#[async_trait]
impl SecretSource for FaultySecrets {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        self.surroundings.around_port("secrets.load", self.inner.load()).await
    }
}
