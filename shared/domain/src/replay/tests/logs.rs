//! A webhook whose log behaves as a test says.

use std::sync::Mutex;

use async_trait::async_trait;

use super::*;
use crate::ports::{
    ApiErrorKind, CreatedWebhook, DeliveryPage, SubmitError, WebhookChange, WebhookPage,
};
use crate::signature::secret::Secret;

pub(super) type Answer = Result<DeliveryPage, ApiError>;
type Script<'a> = dyn FnMut(u32, u32) -> Answer + Send + 'a;

/// One webhook with a log by a script, which is told how many calls there were before, and the
/// page.
pub(super) struct Logs<'a> {
    script: Mutex<(u32, Box<Script<'a>>)>,
    pages: Mutex<Vec<u32>>,
}

impl<'a> Logs<'a> {
    pub(super) fn new(script: impl FnMut(u32, u32) -> Answer + Send + 'a) -> Self {
        Self { script: Mutex::new((0, Box::new(script))), pages: Mutex::default() }
    }

    /// The pages that were asked for since the last look.
    pub(super) fn take_pages(&self) -> Vec<u32> {
        std::mem::take(&mut self.pages.lock().unwrap())
    }

    pub(super) fn id() -> WebhookId {
        WebhookId::parse("w").unwrap()
    }
}

/// A page of so many rows, out of all of them.
pub(super) fn paged(rows: &[Delivery], page: u32, size: usize) -> DeliveryPage {
    let skipped = usize::try_from(page - 1).unwrap() * size;
    let deliveries = rows.iter().skip(skipped).take(size).cloned().collect();
    DeliveryPage { deliveries, unreadable: 0, page_count: None }
}

fn refused() -> ApiError {
    ApiError::new(ApiErrorKind::Refused, "not a call of a replay")
}

#[async_trait]
impl Webhooks for Logs<'_> {
    async fn create(&self, _: &NewWebhook, _: Duration) -> Result<CreatedWebhook, SubmitError> {
        Err(SubmitError::Refused(refused()))
    }

    async fn list(&self, page: u32, _size: u32, _: Duration) -> Result<WebhookPage, ApiError> {
        let webhook = Webhook {
            id: Self::id(),
            url: URL.to_owned(),
            description: None,
            is_active: true,
            event_type: EventType::ExtractCompleted,
            created_at: None,
            updated_at: None,
        };
        let webhooks = (page == 1).then_some(webhook).into_iter().collect();
        Ok(WebhookPage { webhooks, unreadable: 0, page_count: Some(1) })
    }

    async fn get(&self, _: &WebhookId, _: Duration) -> Result<Webhook, ApiError> {
        Err(refused())
    }

    async fn update(
        &self,
        _: &WebhookId,
        _: &WebhookChange,
        _: Duration,
    ) -> Result<Webhook, ApiError> {
        Err(refused())
    }

    async fn delete(&self, _: &WebhookId, _: Duration) -> Result<(), ApiError> {
        Err(refused())
    }

    async fn rotate_secret(&self, _: &WebhookId, _: Duration) -> Result<Secret, SubmitError> {
        Err(SubmitError::Refused(refused()))
    }

    async fn deliveries(&self, _: &WebhookId, page: u32, _size: u32, _: Duration) -> Answer {
        self.pages.lock().unwrap().push(page);
        let mut script = self.script.lock().unwrap();
        script.0 += 1;
        let before = script.0 - 1;
        (script.1)(before, page)
    }
}
