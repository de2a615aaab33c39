use std::sync::Arc;

use async_trait::async_trait;
use domain::entry::StoredObject;
use domain::ports::{PortError, PutOutcome, Results};

use super::plan::Surroundings;

/// A result store that fails by a plan.
pub struct FaultyResults {
    inner: Arc<dyn Results>,
    surroundings: Surroundings,
}

impl FaultyResults {
    /// Wraps a port.
    pub fn new(inner: Arc<dyn Results>, surroundings: Surroundings) -> Self {
        Self { inner, surroundings }
    }
}

#[async_trait]
impl Results for FaultyResults {
    async fn put_new(&self, key: &str, content: &[u8]) -> Result<PutOutcome, PortError> {
        self.surroundings.around_port("results.put_new", self.inner.put_new(key, content)).await
    }

    async fn read(&self, key: &str) -> Result<Option<(StoredObject, Vec<u8>)>, PortError> {
        self.surroundings.around_port("results.read", self.inner.read(key)).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, PortError> {
        self.surroundings.around_port("results.list", self.inner.list(prefix, after, limit)).await
    }
}
