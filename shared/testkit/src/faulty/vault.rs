use std::sync::Arc;

use async_trait::async_trait;
use domain::ports::{PortError, Promoted, PutPending, Slot, SlotId, Vault, VersionId};
use domain::signature::secret::Secret;
use domain::time::Timestamp;

use super::plan::Surroundings;

/// A vault that fails by a plan.
pub struct FaultyVault {
    inner: Arc<dyn Vault>,
    surroundings: Surroundings,
}

impl FaultyVault {
    /// Wraps a port.
    pub fn new(inner: Arc<dyn Vault>, surroundings: Surroundings) -> Self {
        Self { inner, surroundings }
    }
}

#[async_trait]
impl Vault for FaultyVault {
    async fn slots(&self) -> Result<Vec<SlotId>, PortError> {
        self.surroundings.around_port("vault.slots", self.inner.slots()).await
    }

    async fn read(&self, slot: &SlotId) -> Result<Slot, PortError> {
        self.surroundings.around_port("vault.read", self.inner.read(slot)).await
    }

    async fn put_pending(
        &self,
        slot: &SlotId,
        version: &VersionId,
        secret: &Secret,
    ) -> Result<PutPending, PortError> {
        let put = self.inner.put_pending(slot, version, secret);
        self.surroundings.around_port("vault.put_pending", put).await
    }

    async fn promote(
        &self,
        slot: &SlotId,
        version: &VersionId,
        over: &VersionId,
        now: Timestamp,
    ) -> Result<Promoted, PortError> {
        let promotion = self.inner.promote(slot, version, over, now);
        self.surroundings.around_port("vault.promote", promotion).await
    }

    async fn give_up(&self, slot: &SlotId, version: &VersionId) -> Result<(), PortError> {
        self.surroundings.around_port("vault.give_up", self.inner.give_up(slot, version)).await
    }
}
