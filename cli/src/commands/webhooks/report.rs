//! What `gleaner webhooks` prints.

use std::fmt;

use domain::ports::{Webhook, WebhookId};
use serde::Serialize;

/// One webhook.
#[derive(Serialize)]
pub(super) struct Row {
    version: u32,
    r#type: &'static str,
    id: String,
    /// `listed`, `created`, `kept`, `updated` or `deleted`.
    outcome: &'static str,
    event: Option<String>,
    url: Option<String>,
    active: Option<bool>,
    description: Option<String>,
    /// Whether the secrets file has its secret; when deleted, whether it had.
    secret_known: bool,
    /// The signing secret, when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl Row {
    pub(super) fn of(webhook: &Webhook, outcome: &'static str, secret_known: bool) -> Self {
        Self {
            version: 1,
            r#type: "webhook",
            id: webhook.id.as_str().to_owned(),
            outcome,
            event: Some(webhook.event_type.as_str().to_owned()),
            url: Some(webhook.url.clone()),
            active: Some(webhook.is_active),
            description: webhook.description.clone(),
            secret_known,
            secret: None,
        }
    }

    pub(super) fn deleted(id: &WebhookId, secret_known: bool) -> Self {
        Self {
            version: 1,
            r#type: "webhook",
            id: id.as_str().to_owned(),
            outcome: "deleted",
            event: None,
            url: None,
            active: None,
            description: None,
            secret_known,
            secret: None,
        }
    }

    /// The row with the secret itself.
    pub(super) fn showing(mut self, secret: &str) -> Self {
        self.secret = Some(secret.to_owned());
        self
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What comes from the platform keeps to its column.
        let plain = |text: &str| -> String { text.chars().filter(|c| !c.is_control()).collect() };
        write!(out, "{}\t{}", self.outcome, self.id)?;
        if let (Some(event), Some(active), Some(url)) = (&self.event, self.active, &self.url) {
            let active = if active { "active" } else { "inactive" };
            write!(out, "\t{}\t{active}\t{}", plain(event), plain(url))?;
        }
        let secret = if self.secret_known { "secret known" } else { "secret unknown" };
        write!(out, "\t{secret}")?;
        if let Some(description) = &self.description {
            write!(out, "\t{}", plain(description))?;
        }
        match &self.secret {
            Some(secret) => write!(out, "\t{secret}"),
            None => Ok(()),
        }
    }
}
