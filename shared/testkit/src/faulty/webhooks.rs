use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::ports::{
    ApiError, CreatedWebhook, DeliveryPage, NewWebhook, SubmitError, Webhook, WebhookChange,
    WebhookId, WebhookPage, Webhooks,
};
use domain::signature::secret::Secret;

use super::jobs::{unanswered, unavailable};
use super::plan::Surroundings;

/// The platform's webhooks failing by a plan. A creation or rotation that fails is always
/// unanswered, as its caller cannot know whether it had its effect.
pub struct FaultyWebhooks {
    inner: Arc<dyn Webhooks>,
    surroundings: Surroundings,
}

impl FaultyWebhooks {
    /// Wraps a port.
    pub fn new(inner: Arc<dyn Webhooks>, surroundings: Surroundings) -> Self {
        Self { inner, surroundings }
    }
}

#[async_trait]
impl Webhooks for FaultyWebhooks {
    async fn create(
        &self,
        new: &NewWebhook,
        within: Duration,
    ) -> Result<CreatedWebhook, SubmitError> {
        self.surroundings
            .around("webhooks.create", unanswered, self.inner.create(new, within))
            .await
    }

    async fn list(
        &self,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<WebhookPage, ApiError> {
        let call = self.inner.list(page, page_size, within);
        self.surroundings.around("webhooks.list", unavailable, call).await
    }

    async fn get(&self, id: &WebhookId, within: Duration) -> Result<Webhook, ApiError> {
        self.surroundings.around("webhooks.get", unavailable, self.inner.get(id, within)).await
    }

    async fn update(
        &self,
        id: &WebhookId,
        change: &WebhookChange,
        within: Duration,
    ) -> Result<Webhook, ApiError> {
        let call = self.inner.update(id, change, within);
        self.surroundings.around("webhooks.update", unavailable, call).await
    }

    async fn delete(&self, id: &WebhookId, within: Duration) -> Result<(), ApiError> {
        let call = self.inner.delete(id, within);
        self.surroundings.around("webhooks.delete", unavailable, call).await
    }

    async fn rotate_secret(&self, id: &WebhookId, within: Duration) -> Result<Secret, SubmitError> {
        let call = self.inner.rotate_secret(id, within);
        self.surroundings.around("webhooks.rotate_secret", unanswered, call).await
    }

    async fn deliveries(
        &self,
        id: &WebhookId,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<DeliveryPage, ApiError> {
        let call = self.inner.deliveries(id, page, page_size, within);
        self.surroundings.around("webhooks.deliveries", unavailable, call).await
    }
}
