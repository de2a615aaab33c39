//! What `gleaner rotate` prints.

use std::fmt;

use serde::Serialize;

use super::Subscription;

/// One subscription.
#[derive(Serialize)]
pub(super) struct Row {
    version: u32,
    r#type: &'static str,
    /// `rotated` or `begun`.
    outcome: &'static str,
    /// Where the secret is kept.
    slot: String,
    event: Option<String>,
    /// The webhook whose secret was the current one.
    webhook_id: Option<String>,
    /// The webhook whose secret is the current one now; the same one in place.
    successor_id: Option<String>,
}

impl Row {
    pub(super) fn rotated(subscription: &Subscription, successor: Option<String>) -> Self {
        Self { successor_id: successor, ..Self::of(subscription, "rotated") }
    }

    pub(super) fn begun(subscription: &Subscription) -> Self {
        Self::of(subscription, "begun")
    }

    fn of(subscription: &Subscription, outcome: &'static str) -> Self {
        Self {
            version: 1,
            r#type: "rotation",
            outcome,
            slot: subscription.slot.as_str().to_owned(),
            event: subscription.event.clone(),
            webhook_id: subscription.webhook.clone(),
            successor_id: None,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let name = self.slot.rsplit(':').next().unwrap_or(&self.slot);
        write!(out, "{}\t{name}\t{}\t{}", self.outcome, text(&self.event), text(&self.webhook_id))?;
        match &self.successor_id {
            Some(successor) => write!(out, "\t{successor}"),
            None => Ok(()),
        }
    }
}
