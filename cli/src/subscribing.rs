//! Registering a webhook when answers may be lost.
//!
//! The platform shows a webhook's secret in the answer to its creation and never again. An answer
//! that was lost leaves a webhook whose secret nobody knows: it is found by a token in its
//! description and deleted before another one is made.

use std::future::Future;
use std::time::Duration;

use domain::backoff::full_jitter;
use domain::ports::{
    ApiError, ApiErrorKind, Clock, CreatedWebhook, NewWebhook, Random, SubmitError, Webhook,
    WebhookId, Webhooks,
};

/// Tries of one registration.
const TRIES_MAX: u32 = 12;
/// Base and cap of the pause between two tries.
const PAUSE_BASE: Duration = Duration::from_millis(200);
const PAUSE_CAP: Duration = Duration::from_secs(5);
/// Most webhooks of an account, and more than the ten that the platform allows.
const PAGE_SIZE: u32 = 100;

/// Registers a webhook; its description gets a token at its end.
///
/// # Errors
/// The last refusal, or the last lost answer when the webhook could not be looked for.
pub(crate) async fn subscribe(
    api: &dyn Webhooks,
    clock: &dyn Clock,
    random: &dyn Random,
    wanted: &NewWebhook,
    within: Duration,
) -> Result<CreatedWebhook, ApiError> {
    let mut attempt = 0;
    loop {
        let token: String = random.token().chars().take(12).collect();
        let description = match &wanted.description {
            Some(text) => format!("{text} [{token}]"),
            None => format!("[{token}]"),
        };
        let marked = NewWebhook { description: Some(description.clone()), ..wanted.clone() };
        let error = match api.create(&marked, within).await {
            Ok(created) => return Ok(created),
            Err(SubmitError::Refused(error)) => error,
            Err(SubmitError::Unanswered(error)) => {
                remove_orphan(api, clock, random, &description, within).await?;
                error
            }
        };
        attempt += 1;
        if attempt >= TRIES_MAX || !is_transient(&error) {
            return Err(error);
        }
        pause(clock, random, attempt, &error).await;
    }
}

async fn pause(clock: &dyn Clock, random: &dyn Random, attempt: u32, error: &ApiError) {
    let wait = full_jitter(attempt, PAUSE_BASE, PAUSE_CAP, random.next_u64());
    clock.sleep(wait.max(error.retry_after.unwrap_or_default()).min(PAUSE_CAP)).await;
}

fn is_transient(error: &ApiError) -> bool {
    let by_kind = matches!(error.kind, ApiErrorKind::Throttled | ApiErrorKind::Unavailable);
    by_kind && error.retryable != Some(false)
}

/// Deletes the webhook with this very description, if there is one.
async fn remove_orphan(
    api: &dyn Webhooks,
    clock: &dyn Clock,
    random: &dyn Random,
    description: &str,
    within: Duration,
) -> Result<(), ApiError> {
    patiently(clock, random, || try_remove(api, description, within)).await
}

/// Makes a call that may be repeated until it is answered, or is refused for good.
///
/// # Errors
/// The last one.
pub(crate) async fn patiently<T, F>(
    clock: &dyn Clock,
    random: &dyn Random,
    call: impl Fn() -> F,
) -> Result<T, ApiError>
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
        if attempt >= TRIES_MAX || !is_transient(&error) {
            return Err(error);
        }
        pause(clock, random, attempt, &error).await;
    }
}

async fn try_remove(
    api: &dyn Webhooks,
    description: &str,
    within: Duration,
) -> Result<(), ApiError> {
    let webhooks = all_webhooks(api, within).await?;
    let orphan =
        webhooks.iter().find(|webhook| webhook.description.as_deref() == Some(description));
    match orphan {
        None => Ok(()),
        Some(orphan) => delete(api, &orphan.id, within).await,
    }
}

/// Deletes a webhook; one that is gone already is as good.
pub(crate) async fn delete(
    api: &dyn Webhooks,
    id: &WebhookId,
    within: Duration,
) -> Result<(), ApiError> {
    match api.delete(id, within).await {
        Err(error) if error.kind != ApiErrorKind::Missing => Err(error),
        _ => Ok(()),
    }
}

/// All webhooks of the account.
pub(crate) async fn all_webhooks(
    api: &dyn Webhooks,
    within: Duration,
) -> Result<Vec<Webhook>, ApiError> {
    let page = api.list(1, PAGE_SIZE, within).await?;
    if page.unreadable > 0 {
        tracing::warn!(count = page.unreadable, "webhooks that cannot be read are left out");
    }
    Ok(page.webhooks)
}
