//! Bugs of the secrets and webhooks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::ports::{
    ApiError, CreatedWebhook, DeliveryPage, NewWebhook, PortError, Promoted, PutPending, Slot,
    SlotId, SubmitError, Vault, VersionId, Webhook, WebhookChange, WebhookId, WebhookPage,
    Webhooks,
};
use domain::signature::secret::Secret;
use domain::time::Timestamp;
use testkit::simulation::Parts;

use super::Bug;

pub(super) fn tamper(parts: Parts, bug: Bug) -> Parts {
    Parts {
        vault: Arc::new(BuggyVault { inner: parts.vault, bug }),
        webhooks: Arc::new(BuggyWebhooks { inner: parts.webhooks, bug }),
        ..parts
    }
}

struct BuggyVault {
    inner: Arc<dyn Vault>,
    bug: Bug,
}

#[async_trait]
impl Vault for BuggyVault {
    async fn slots(&self) -> Result<Vec<SlotId>, PortError> {
        self.inner.slots().await
    }

    async fn read(&self, slot: &SlotId) -> Result<Slot, PortError> {
        self.inner.read(slot).await
    }

    async fn put_pending(
        &self,
        slot: &SlotId,
        version: &VersionId,
        secret: &Secret,
    ) -> Result<PutPending, PortError> {
        let put = self.inner.put_pending(slot, version, secret).await?;
        if self.bug == Bug::FinishBeforeOverlap
            && let Some(current) = self.inner.read(slot).await?.current
        {
            let now = Timestamp::UNIX_EPOCH;
            self.inner.promote(slot, version, &current.id, now).await?;
        }
        if self.bug == Bug::VolatileSecrets {
            self.inner.give_up(slot, version).await?;
        }
        Ok(put)
    }

    async fn promote(
        &self,
        slot: &SlotId,
        version: &VersionId,
        over: &VersionId,
        now: Timestamp,
    ) -> Result<Promoted, PortError> {
        self.inner.promote(slot, version, over, now).await
    }

    async fn give_up(&self, slot: &SlotId, version: &VersionId) -> Result<(), PortError> {
        self.inner.give_up(slot, version).await
    }
}

struct BuggyWebhooks {
    inner: Arc<dyn Webhooks>,
    bug: Bug,
}

impl BuggyWebhooks {
    fn seen(&self, webhook: Webhook) -> Webhook {
        let is_active = webhook.is_active || self.bug == Bug::RetireBlindly;
        Webhook { is_active, ..webhook }
    }
}

#[async_trait]
impl Webhooks for BuggyWebhooks {
    async fn create(
        &self,
        new: &NewWebhook,
        within: Duration,
    ) -> Result<CreatedWebhook, SubmitError> {
        self.inner.create(new, within).await
    }

    async fn list(
        &self,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<WebhookPage, ApiError> {
        self.inner.list(page, page_size, within).await
    }

    async fn get(&self, id: &WebhookId, within: Duration) -> Result<Webhook, ApiError> {
        Ok(self.seen(self.inner.get(id, within).await?))
    }

    async fn update(
        &self,
        id: &WebhookId,
        change: &WebhookChange,
        within: Duration,
    ) -> Result<Webhook, ApiError> {
        self.inner.update(id, change, within).await
    }

    async fn delete(&self, id: &WebhookId, within: Duration) -> Result<(), ApiError> {
        self.inner.delete(id, within).await
    }

    async fn rotate_secret(&self, id: &WebhookId, within: Duration) -> Result<Secret, SubmitError> {
        self.inner.rotate_secret(id, within).await
    }

    async fn deliveries(
        &self,
        id: &WebhookId,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<DeliveryPage, ApiError> {
        self.inner.deliveries(id, page, page_size, within).await
    }
}
