//! Registering a webhook when answers may be lost.
//!
//! The platform shows a webhook's secret in the answer to its creation and never again. An answer
//! that was lost leaves a webhook whose secret nobody knows: it is found by a token in its
//! description and deleted before another one is made.

pub mod ensure;

use std::future::Future;
use std::time::Duration;

use crate::backoff::full_jitter;
use crate::ports::{
    ApiError, ApiErrorKind, Clock, CreatedWebhook, NewWebhook, Random, SubmitError, Webhook,
    WebhookId, WebhookPage, Webhooks,
};

/// Tries of one call.
pub const TRIES_MAX: u32 = 12;
/// Base and cap of the pause between two tries.
const PAUSE_BASE: Duration = Duration::from_millis(200);
const PAUSE_CAP: Duration = Duration::from_secs(5);
/// Webhooks on one page, and most pages: many more than the ten that the platform allows.
pub(crate) const PAGE_SIZE: u32 = 100;
pub(crate) const PAGES_MAX: u32 = 10;
/// Digits of the token at a description's end.
const TOKEN_DIGITS: usize = 12;

/// The account's webhooks, asked with patience.
#[derive(Clone, Copy)]
pub struct Account<'a> {
    /// The platform's API.
    pub webhooks: &'a dyn Webhooks,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Chance.
    pub random: &'a dyn Random,
    /// Longest time of one call.
    pub within: Duration,
    /// Tries of each call, up to [`TRIES_MAX`].
    pub tries: u32,
}

/// The account's webhooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Those that could be read.
    pub webhooks: Vec<Webhook>,
    /// Entries that could not.
    pub unreadable: u32,
}

impl Listed {
    /// The one with this id.
    pub fn find(&self, id: &WebhookId) -> Option<&Webhook> {
        self.webhooks.iter().find(|webhook| webhook.id == *id)
    }

    /// Takes in a page that was asked for with [`PAGE_SIZE`]; whether it is the last one.
    pub(crate) fn add(&mut self, page: WebhookPage) -> bool {
        let rows = u32::try_from(page.webhooks.len()).unwrap_or(u32::MAX);
        let rows = rows.saturating_add(page.unreadable);
        self.unreadable = self.unreadable.saturating_add(page.unreadable);
        for webhook in page.webhooks {
            if self.find(&webhook.id).is_none() {
                self.webhooks.push(webhook);
            }
        }
        rows < PAGE_SIZE
    }
}

impl Account<'_> {
    /// Registers a webhook; its description gets a token at its end.
    ///
    /// # Errors
    /// The last refusal, or the last lost answer when the webhook could not be looked for.
    pub async fn register(&self, wanted: &NewWebhook) -> Result<CreatedWebhook, ApiError> {
        let mut attempt = 0;
        loop {
            let description = tokened(wanted.description.as_deref(), &self.random.token());
            let marked = NewWebhook { description: Some(description.clone()), ..wanted.clone() };
            let error = match self.webhooks.create(&marked, self.within).await {
                Ok(created) => return Ok(created),
                Err(SubmitError::Refused(error)) => error,
                Err(SubmitError::Unanswered(error)) => {
                    self.remove_described(&description).await?;
                    error
                }
            };
            attempt += 1;
            self.pause_or_fail(attempt, error).await?;
        }
    }

    /// Deletes the webhook with this very description, if there is one.
    async fn remove_described(&self, description: &str) -> Result<(), ApiError> {
        let listed = self.list().await?;
        let is_it = |webhook: &&Webhook| webhook.description.as_deref() == Some(description);
        match listed.webhooks.iter().find(is_it) {
            None => Ok(()),
            Some(orphan) => self.delete(&orphan.id).await,
        }
    }

    /// All webhooks of the account, read until a page is not full.
    ///
    /// # Errors
    /// The last one.
    pub async fn list(&self) -> Result<Listed, ApiError> {
        let mut all = Listed::default();
        for page in 1..=PAGES_MAX {
            let call = || self.webhooks.list(page, PAGE_SIZE, self.within);
            if all.add(self.patiently(call).await?) {
                break;
            }
        }
        Ok(all)
    }

    /// A webhook, or none if there is no such one any more.
    ///
    /// # Errors
    /// The last one.
    pub async fn find(&self, id: &WebhookId) -> Result<Option<Webhook>, ApiError> {
        match self.patiently(|| self.webhooks.get(id, self.within)).await {
            Ok(webhook) => Ok(Some(webhook)),
            Err(error) if error.kind == ApiErrorKind::Missing => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes a webhook; one that is gone already is as good.
    ///
    /// # Errors
    /// The last one.
    pub async fn delete(&self, id: &WebhookId) -> Result<(), ApiError> {
        match self.patiently(|| self.webhooks.delete(id, self.within)).await {
            Err(error) if error.kind != ApiErrorKind::Missing => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes a call that may be repeated until it is answered, or is refused for good.
    ///
    /// # Errors
    /// The last one.
    pub async fn patiently<T, F>(&self, call: impl Fn() -> F) -> Result<T, ApiError>
    where
        F: Future<Output = Result<T, ApiError>>,
    {
        let mut attempt = 0;
        loop {
            let error = match call().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            attempt += 1;
            self.pause_or_fail(attempt, error).await?;
        }
    }

    /// Waits before the next try; the error itself when there shall be none.
    pub(crate) async fn pause_or_fail(
        &self,
        attempt: u32,
        error: ApiError,
    ) -> Result<(), ApiError> {
        if attempt >= self.tries.min(TRIES_MAX) || !is_transient(&error) {
            return Err(error);
        }
        let wait = full_jitter(attempt, PAUSE_BASE, PAUSE_CAP, self.random.next_u64());
        self.clock.sleep(wait.max(error.retry_after.unwrap_or_default()).min(PAUSE_CAP)).await;
        Ok(())
    }
}

fn is_transient(error: &ApiError) -> bool {
    let by_kind = matches!(error.kind, ApiErrorKind::Throttled | ApiErrorKind::Unavailable);
    by_kind && error.retryable != Some(false)
}

/// The description with a token at its end.
fn tokened(description: Option<&str>, token: &str) -> String {
    let token: String = token.chars().take(TOKEN_DIGITS).collect();
    match description {
        Some(text) => format!("{text} [{token}]"),
        None => format!("[{token}]"),
    }
}

/// The description without the token that a registration put at its end.
pub fn without_token(description: &str) -> &str {
    let is_token = |text: &str| {
        text.len() == TOKEN_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let text = description.trim_end();
    let token = text.strip_suffix(']').and_then(|text| text.rsplit_once('['));
    token.filter(|(_, token)| is_token(token)).map_or(text, |(before, _)| before.trim_end())
}

#[cfg(test)]
mod tests;
