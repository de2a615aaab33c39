//! The account's webhooks, asked with patience.

use std::time::Duration;

use domain::ports::{ApiError, Clock, CreatedWebhook, NewWebhook, Random, Webhooks};
use domain::subscribe::{Account, TRIES_MAX};
use system::{SystemClock, SystemRandom};

/// The account of a person who waits.
pub(crate) fn account(webhooks: &dyn Webhooks, within: Duration) -> Account<'_> {
    Account { webhooks, clock: &SystemClock, random: &SystemRandom, within, tries: TRIES_MAX }
}

/// Registers a webhook; its description gets a token at its end.
///
/// # Errors
/// The last refusal, or the last lost answer when the webhook could not be looked for.
pub(crate) async fn subscribe(
    webhooks: &dyn Webhooks,
    clock: &dyn Clock,
    random: &dyn Random,
    wanted: &NewWebhook,
    within: Duration,
) -> Result<CreatedWebhook, ApiError> {
    let account = Account { webhooks, clock, random, within, tries: TRIES_MAX };
    account.register(wanted).await
}
