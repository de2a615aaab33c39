//! Why a step of a rotation is not taken. Shows no secret.

use crate::ports::{VersionId, WebhookId};
use crate::signature::secret::SecretError;

/// Why a step is not taken. Trying again helps only where the text says so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The store does not let the secret be rotated.
    #[error("rotation is not switched on for this secret")]
    NotEnabled,
    /// The version is not the one that is to be made.
    #[error("this version is not labelled as the pending one")]
    NotStaged,
    /// Another rotation of the same subscription is under way.
    #[error("version {0} of this secret is pending: let its rotation end, or give it up, first")]
    OtherPending(VersionId),
    /// There is nothing to rotate.
    #[error("the secret has no current value; make its webhook with `gleaner webhooks ensure`")]
    NoCurrent,
    /// A value that is no secret.
    #[error("a value in this secret cannot be used")]
    Unusable(#[source] SecretError),
    /// Nobody can tell which webhook is to be rotated.
    #[error(
        "the secret does not say which webhook it belongs to; store it as a JSON object with \
         `secret` and `webhook_id`"
    )]
    NoWebhook,
    /// The webhook is not there.
    #[error("webhook {} does not exist any more", .0.as_str())]
    Gone(WebhookId),
    /// A later step came before the first one was done.
    #[error("the pending version has no value yet; the first step must be done before")]
    NotCreated,
    /// The new webhook cannot take over.
    #[error("webhook {} {why}, so that it cannot take the old one's place", webhook.as_str())]
    Unfit {
        /// The new webhook.
        webhook: WebhookId,
        /// What it is or does.
        why: &'static str,
    },
    /// The platform allows no second webhook.
    #[error(
        "the platform refuses a second webhook ({0}); delete one that is not needed, or rotate in \
         place"
    )]
    NoRoom(String),
    /// Another try of the same step kept a secret that the platform has replaced since.
    #[error(
        "the platform may sign with a secret that nobody knows, since two tries of this step met; \
         rotate again"
    )]
    Overtaken,
    /// Somebody put a new value into the secret meanwhile.
    #[error("the secret's current value was changed meanwhile; rotate again")]
    CurrentChanged,
}

impl Refusal {
    /// A stable code for logs and metrics.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotEnabled => "not_enabled",
            Self::NotStaged => "not_staged",
            Self::OtherPending(_) => "other_pending",
            Self::NoCurrent => "no_current",
            Self::Unusable(_) => "unusable",
            Self::NoWebhook => "no_webhook",
            Self::Gone(_) => "gone",
            Self::NotCreated => "not_created",
            Self::Unfit { .. } => "unfit",
            Self::NoRoom(_) => "no_room",
            Self::Overtaken => "overtaken",
            Self::CurrentChanged => "current_changed",
        }
    }
}
