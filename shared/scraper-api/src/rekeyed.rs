//! The API with a key that may change while the process runs.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{
    ApiError, ApiErrorKind, Clock, CreatedWebhook, DeliveryPage, ExtractJob, Jobs, ListPage,
    ListQuery, NewWebhook, PageRequest, ParentPage, SubmitError, Webhook, WebhookChange, WebhookId,
    WebhookPage, Webhooks,
};
use domain::request::JobRequest;
use domain::signature::secret::Secret;
use domain::time::{Timestamp, between};

use crate::client::ScraperApi;
use crate::config::ApiKey;

/// Statuses with which the platform refuses a key: that it knows none such, and that it may not.
const REFUSALS: [u16; 2] = [401, 403];

/// Why a key cannot be read. Says what to do, and shows no key.
pub type KeyTrouble = Box<dyn Error + Send + Sync>;

/// Where the account's API key is.
#[async_trait]
pub trait KeySource: Send + Sync {
    /// Reads the key, every time anew; `None` if it cannot have changed.
    ///
    /// # Errors
    /// When it is not there, or is none, or may not be read.
    async fn load(&self) -> Result<Option<ApiKey>, KeyTrouble>;
}

/// The API, whose key is read again when the platform refuses it, or when there is none yet: the
/// call is then made once more, at most once per cool-down.
pub struct Rekeyed {
    api: Arc<ScraperApi>,
    source: Arc<dyn KeySource>,
    cooldown: Duration,
    clock: Arc<dyn Clock>,
    read_at: Mutex<Option<Timestamp>>,
}

impl Rekeyed {
    /// Wraps the client. Nothing is sent or read.
    pub fn new(
        api: &Arc<ScraperApi>,
        source: Arc<dyn KeySource>,
        cooldown: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { api: Arc::clone(api), source, cooldown, clock, read_at: Mutex::new(None) }
    }

    /// Whether another try makes sense: the key was refused and has been read again.
    async fn has_new_key(&self, error: &ApiError) -> bool {
        // Without a status nothing was sent, since there is no key yet.
        let is_refusal = error.status.is_none_or(|status| REFUSALS.contains(&status));
        if error.kind != ApiErrorKind::Denied || !is_refusal || !self.claim() {
            return false;
        }
        match self.source.load().await {
            Ok(Some(key)) => {
                self.api.set_key(key);
                tracing::info!("the API key was refused and has been read again");
                true
            }
            Ok(None) => false,
            Err(error) => {
                tracing::warn!(error = &*error, "the API key cannot be read again");
                false
            }
        }
    }

    /// One caller per cool-down gets to read.
    fn claim(&self) -> bool {
        let now = self.clock.now();
        let mut read_at = self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = read_at.is_none_or(|at| between(at, now) >= self.cooldown || at > now);
        if is_due {
            *read_at = Some(now);
        }
        is_due
    }
}

#[async_trait]
impl Jobs for Rekeyed {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        match self.api.extract(job_id, within).await {
            Err(error) if self.has_new_key(&error).await => self.api.extract(job_id, within).await,
            answer => answer,
        }
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        match self.api.parent(key, page, within).await {
            Err(error) if self.has_new_key(&error).await => {
                self.api.parent(key, page, within).await
            }
            answer => answer,
        }
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        match self.api.submit(request, within).await {
            // A refused POST had no effect, so that another one is the first.
            Err(SubmitError::Refused(error)) if self.has_new_key(&error).await => {
                self.api.submit(request, within).await
            }
            answer => answer,
        }
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        match Jobs::list(&*self.api, kind, query, within).await {
            Err(error) if self.has_new_key(&error).await => {
                Jobs::list(&*self.api, kind, query, within).await
            }
            answer => answer,
        }
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        match self.api.probe(within).await {
            Err(error) if self.has_new_key(&error).await => self.api.probe(within).await,
            answer => answer,
        }
    }
}

#[async_trait]
impl Webhooks for Rekeyed {
    async fn create(
        &self,
        new: &NewWebhook,
        within: Duration,
    ) -> Result<CreatedWebhook, SubmitError> {
        match self.api.create(new, within).await {
            // As with a paid POST: what was refused had no effect.
            Err(SubmitError::Refused(error)) if self.has_new_key(&error).await => {
                self.api.create(new, within).await
            }
            answer => answer,
        }
    }

    async fn list(
        &self,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<WebhookPage, ApiError> {
        match Webhooks::list(&*self.api, page, page_size, within).await {
            Err(error) if self.has_new_key(&error).await => {
                Webhooks::list(&*self.api, page, page_size, within).await
            }
            answer => answer,
        }
    }

    async fn get(&self, id: &WebhookId, within: Duration) -> Result<Webhook, ApiError> {
        match self.api.get(id, within).await {
            Err(error) if self.has_new_key(&error).await => self.api.get(id, within).await,
            answer => answer,
        }
    }

    async fn update(
        &self,
        id: &WebhookId,
        change: &WebhookChange,
        within: Duration,
    ) -> Result<Webhook, ApiError> {
        match self.api.update(id, change, within).await {
            Err(error) if self.has_new_key(&error).await => {
                self.api.update(id, change, within).await
            }
            answer => answer,
        }
    }

    async fn delete(&self, id: &WebhookId, within: Duration) -> Result<(), ApiError> {
        match self.api.delete(id, within).await {
            Err(error) if self.has_new_key(&error).await => self.api.delete(id, within).await,
            answer => answer,
        }
    }

    async fn rotate_secret(&self, id: &WebhookId, within: Duration) -> Result<Secret, SubmitError> {
        match self.api.rotate_secret(id, within).await {
            Err(SubmitError::Refused(error)) if self.has_new_key(&error).await => {
                self.api.rotate_secret(id, within).await
            }
            answer => answer,
        }
    }

    async fn deliveries(
        &self,
        id: &WebhookId,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<DeliveryPage, ApiError> {
        match self.api.deliveries(id, page, page_size, within).await {
            Err(error) if self.has_new_key(&error).await => {
                self.api.deliveries(id, page, page_size, within).await
            }
            answer => answer,
        }
    }
}

#[cfg(test)]
mod tests;
