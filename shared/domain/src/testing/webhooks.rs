use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::lock;
use crate::limits::WEBHOOKS_MAX;
use crate::ports::{
    ApiError, ApiErrorKind, Clock, CreatedWebhook, Delivery, DeliveryPage, NewWebhook, SubmitError,
    Webhook, WebhookChange, WebhookId, WebhookPage, Webhooks,
};
use crate::signature::secret::Secret;

/// The platform's webhooks in memory, with delivery logs that a test writes.
///
/// Webhooks are `webhook-1`, `webhook-2`, ..., and each secret is new. Lists and logs come newest
/// first, which shifts them while they grow.
pub struct MemoryWebhooks {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    webhooks: BTreeMap<u32, Kept>,
    made: u32,
    secrets: u32,
    unreadable: u32,
    failures: VecDeque<ApiError>,
    calls: Vec<WebhookCall>,
}

struct Kept {
    webhook: Webhook,
    secret: Secret,
    log: Vec<Delivery>,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookCall {
    /// [`Webhooks::create`].
    Create(NewWebhook),
    /// [`Webhooks::list`], with its page.
    List(u32),
    /// [`Webhooks::get`].
    Get(WebhookId),
    /// [`Webhooks::update`].
    Update(WebhookId, WebhookChange),
    /// [`Webhooks::delete`].
    Delete(WebhookId),
    /// [`Webhooks::rotate_secret`].
    RotateSecret(WebhookId),
    /// [`Webhooks::deliveries`], with its page.
    Deliveries(WebhookId, u32),
}

impl MemoryWebhooks {
    /// An account without webhooks.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Adds a row to a webhook's delivery log; `false` if there is no such webhook.
    #[must_use]
    pub fn log(&self, id: &WebhookId, delivery: Delivery) -> bool {
        let mut state = lock(&self.state);
        state.find(id).map(|kept| kept.log.push(delivery)).is_some()
    }

    /// The secret that a webhook's deliveries are signed with now; `None` once it is deleted.
    pub fn secret(&self, id: &WebhookId) -> Option<Secret> {
        lock(&self.state).find(id).map(|kept| kept.secret.clone())
    }

    /// The webhooks that exist, oldest first.
    pub fn webhooks(&self) -> Vec<Webhook> {
        lock(&self.state).webhooks.values().map(|kept| kept.webhook.clone()).collect()
    }

    /// Lets the next call fail without an effect.
    pub fn fail(&self, error: ApiError) {
        lock(&self.state).failures.push_back(error);
    }

    /// Adds entries to the first page of each list and log that cannot be read.
    pub fn set_unreadable(&self, count: u32) {
        lock(&self.state).unreadable = count;
    }

    /// The calls that were made, in order.
    pub fn calls(&self) -> Vec<WebhookCall> {
        lock(&self.state).calls.clone()
    }

    /// Forgets the calls made so far.
    pub fn clear_calls(&self) {
        lock(&self.state).calls.clear();
    }
}

impl State {
    fn called(&mut self, call: WebhookCall) -> Result<(), ApiError> {
        self.calls.push(call);
        self.failures.pop_front().map_or(Ok(()), Err)
    }

    fn find(&mut self, id: &WebhookId) -> Option<&mut Kept> {
        self.webhooks.values_mut().find(|kept| kept.webhook.id == *id)
    }

    fn known(&mut self, id: &WebhookId) -> Result<&mut Kept, ApiError> {
        let missing = ApiError {
            status: Some(404),
            ..ApiError::new(ApiErrorKind::Missing, "no such webhook")
        };
        self.find(id).ok_or(missing)
    }

    fn next_secret(&mut self) -> Result<Secret, SubmitError> {
        self.secrets += 1;
        Secret::new(&format!("whsec_{:08}", self.secrets)).map_err(|error| unusable(&error))
    }

    fn unreadable_on(&self, page: u32) -> u32 {
        if page == 1 { self.unreadable } else { 0 }
    }
}

fn unusable(error: &dyn std::error::Error) -> SubmitError {
    SubmitError::Unanswered(ApiError::new(ApiErrorKind::Unreadable, &error.to_string()))
}

/// One page of what is listed newest first, and how many there are.
fn cut<T: Clone>(
    oldest_first: impl DoubleEndedIterator<Item = T> + ExactSizeIterator,
    page: u32,
    page_size: u32,
) -> (Vec<T>, u64) {
    let size = usize::try_from(page_size).unwrap_or(usize::MAX);
    let skipped = usize::try_from(page.saturating_sub(1)).unwrap_or(usize::MAX);
    let pages = oldest_first.len().div_ceil(size.max(1));
    let items = oldest_first.rev().skip(skipped.saturating_mul(size)).take(size).collect();
    (items, u64::try_from(pages).unwrap_or(u64::MAX))
}

#[async_trait]
impl Webhooks for MemoryWebhooks {
    async fn create(
        &self,
        new: &NewWebhook,
        _within: Duration,
    ) -> Result<CreatedWebhook, SubmitError> {
        let mut state = lock(&self.state);
        state.called(WebhookCall::Create(new.clone())).map_err(SubmitError::Refused)?;
        if state.webhooks.len() >= WEBHOOKS_MAX {
            let full = ApiError::new(ApiErrorKind::Refused, "the account has ten webhooks");
            return Err(SubmitError::Refused(ApiError { status: Some(422), ..full }));
        }
        state.made += 1;
        let made = state.made;
        let now = self.clock.now();
        let id = WebhookId::parse(&format!("webhook-{made}")).map_err(|error| unusable(&error))?;
        let webhook = Webhook {
            id,
            url: new.url.clone(),
            description: new.description.clone(),
            is_active: true,
            event_type: new.event_type.clone(),
            created_at: Some(now),
            updated_at: Some(now),
        };
        let secret = state.next_secret()?;
        let kept = Kept { webhook: webhook.clone(), secret: secret.clone(), log: Vec::new() };
        state.webhooks.insert(made, kept);
        Ok(CreatedWebhook { webhook, secret })
    }

    async fn list(
        &self,
        page: u32,
        page_size: u32,
        _within: Duration,
    ) -> Result<WebhookPage, ApiError> {
        let mut state = lock(&self.state);
        state.called(WebhookCall::List(page))?;
        let all = state.webhooks.values().map(|kept| kept.webhook.clone());
        let (webhooks, pages) = cut(all, page, page_size);
        let unreadable = state.unreadable_on(page);
        Ok(WebhookPage { webhooks, unreadable, page_count: Some(pages) })
    }

    async fn get(&self, id: &WebhookId, _within: Duration) -> Result<Webhook, ApiError> {
        let mut state = lock(&self.state);
        state.called(WebhookCall::Get(id.clone()))?;
        Ok(state.known(id)?.webhook.clone())
    }

    async fn update(
        &self,
        id: &WebhookId,
        change: &WebhookChange,
        _within: Duration,
    ) -> Result<Webhook, ApiError> {
        let mut state = lock(&self.state);
        state.called(WebhookCall::Update(id.clone(), change.clone()))?;
        let webhook = &mut state.known(id)?.webhook;
        let change = change.clone();
        webhook.url = change.url.unwrap_or_else(|| webhook.url.clone());
        webhook.description = change.description.or_else(|| webhook.description.clone());
        webhook.is_active = change.is_active.unwrap_or(webhook.is_active);
        webhook.event_type = change.event_type.unwrap_or_else(|| webhook.event_type.clone());
        webhook.updated_at = Some(self.clock.now());
        Ok(webhook.clone())
    }

    async fn delete(&self, id: &WebhookId, _within: Duration) -> Result<(), ApiError> {
        let mut state = lock(&self.state);
        state.called(WebhookCall::Delete(id.clone()))?;
        state.known(id)?;
        state.webhooks.retain(|_, kept| kept.webhook.id != *id);
        Ok(())
    }

    async fn rotate_secret(
        &self,
        id: &WebhookId,
        _within: Duration,
    ) -> Result<Secret, SubmitError> {
        let mut state = lock(&self.state);
        state.called(WebhookCall::RotateSecret(id.clone())).map_err(SubmitError::Refused)?;
        let secret = state.next_secret()?;
        let kept = state.known(id).map_err(SubmitError::Refused)?;
        kept.secret = secret.clone();
        Ok(secret)
    }

    async fn deliveries(
        &self,
        id: &WebhookId,
        page: u32,
        page_size: u32,
        _within: Duration,
    ) -> Result<DeliveryPage, ApiError> {
        let mut state = lock(&self.state);
        state.called(WebhookCall::Deliveries(id.clone(), page))?;
        let unreadable = state.unreadable_on(page);
        let (deliveries, pages) = cut(state.known(id)?.log.iter().cloned(), page, page_size);
        Ok(DeliveryPage { deliveries, unreadable, page_count: Some(pages) })
    }
}
