//! Webhooks and their delivery logs.

use std::time::Duration;

use domain::envelope::EventType;
use domain::job::{JobId, JobIdError, Kind};
use domain::ports::{ApiError, SubmitError};
use domain::time::Timestamp;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Maybe, parse_object};
use crate::client::{Call, ScraperApi};
use crate::error_body::clean;
use crate::lists::{ListKey, parse_list};
use crate::redacted::Redacted;

/// Longest unknown word of the platform kept, in characters.
const WORD_CHARS_MAX: usize = 64;

/// A webhook's id. The rules are those of job ids: it must stay one path segment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebhookId(JobId);

impl WebhookId {
    /// Validates a text.
    ///
    /// # Errors
    /// As for job ids.
    pub fn parse(text: &str) -> Result<Self, JobIdError> {
        JobId::parse(text).map(Self)
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// Where deliveries go.
    pub url: String,
    /// Free text of its owner.
    pub description: Option<String>,
    /// Whether deliveries are made.
    pub is_active: bool,
    /// What is delivered.
    pub event_type: EventType,
    /// When it was created; `None` if absent or unreadable.
    pub created_at: Option<Timestamp>,
    /// When it was last changed; `None` if absent or unreadable.
    pub updated_at: Option<Timestamp>,
}

/// A webhook to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWebhook {
    /// Where deliveries shall go.
    pub url: String,
    /// What shall be delivered.
    pub event_type: EventType,
    /// Free text.
    pub description: Option<String>,
}

/// A webhook that was just created, with the only sight of its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedWebhook {
    /// The webhook.
    pub webhook: Webhook,
    /// Its signing secret; no other call shows it again.
    pub secret: Redacted<String>,
}

/// A change of a webhook; what is `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookChange {
    /// Where deliveries shall go.
    pub url: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// Whether deliveries shall be made.
    pub is_active: Option<bool>,
    /// What shall be delivered.
    pub event_type: Option<EventType>,
}

/// One page of webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookPage {
    /// The readable ones.
    pub webhooks: Vec<Webhook>,
    /// Entries that could not be read and were left out.
    pub unreadable: u32,
    /// How many pages there are, if the answer says so; not to be trusted.
    pub page_count: Option<u64>,
}

/// One row of a delivery log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The row's id; whether it is stable over attempts is not documented.
    pub id: String,
    /// What was delivered.
    pub event_type: EventType,
    /// The job; the platform may not name one.
    pub job_id: Option<JobId>,
    /// Which attempt this is, 1 being the first.
    pub attempt_number: Option<u32>,
    /// How it went.
    pub status: DeliveryStatus,
    /// What we answered, if we did.
    pub http_status: Option<u16>,
    /// When it was delivered.
    pub delivered_at: Option<Timestamp>,
    /// When the row was made.
    pub created_at: Option<Timestamp>,
}

/// How a delivery went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// Not tried yet, or being tried.
    Pending,
    /// Taken by the receiver.
    Success,
    /// This attempt failed.
    Failed,
    /// No further attempt will be made.
    Abandoned,
    /// A word that this version does not know.
    Unknown(String),
}

impl DeliveryStatus {
    /// The platform's word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
            Self::Unknown(text) => text,
        }
    }

    fn from_api(text: &str) -> Self {
        match text {
            "pending" => Self::Pending,
            "success" => Self::Success,
            "failed" => Self::Failed,
            "abandoned" => Self::Abandoned,
            other => Self::Unknown(clean(other, WORD_CHARS_MAX)),
        }
    }
}

/// One page of a delivery log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryPage {
    /// The readable rows, in no promised order.
    pub deliveries: Vec<Delivery>,
    /// Rows that could not be read and were left out.
    pub unreadable: u32,
    /// How many pages there are, if the answer says so; not to be trusted.
    pub page_count: Option<u64>,
}

#[derive(Serialize)]
struct WebhookBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_active: Option<bool>,
}

#[derive(Deserialize)]
struct WebhookFields {
    id: String,
    url: String,
    event_type: String,
    is_active: bool,
    #[serde(default)]
    description: Maybe<String>,
    #[serde(default)]
    created_at: Maybe<String>,
    #[serde(default)]
    updated_at: Maybe<String>,
}

#[derive(Deserialize)]
struct SecretField {
    secret: String,
}

#[derive(Deserialize)]
struct DeliveryFields {
    id: String,
    event_type: String,
    status: String,
    job_id: Option<String>,
    #[serde(default)]
    attempt_number: Maybe<u32>,
    #[serde(default)]
    http_status: Maybe<u16>,
    #[serde(default)]
    delivered_at: Maybe<String>,
    #[serde(default)]
    created_at: Maybe<String>,
}

impl ScraperApi {
    /// Creates a webhook. A second identical call creates a second one; an account may have ten.
    ///
    /// # Errors
    /// [`SubmitError::Unanswered`] when the webhook may exist all the same, with a secret that
    /// nobody has seen: look for it in the list and delete it.
    pub async fn create_webhook(
        &self,
        new: &NewWebhook,
        within: Duration,
    ) -> Result<CreatedWebhook, SubmitError> {
        let body = WebhookBody {
            url: Some(&new.url),
            event_type: Some(new.event_type.as_str()),
            description: new.description.as_deref(),
            is_active: None,
        };
        let answer = self.post(&["v1", "webhooks"], &body, within).await?;
        let webhook = read_webhook(&answer).map_err(SubmitError::Unanswered)?;
        let secret = read_secret(&answer).map_err(SubmitError::Unanswered)?;
        Ok(CreatedWebhook { webhook, secret })
    }

    /// Reads one page of the account's webhooks.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn list_webhooks(
        &self,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<WebhookPage, ApiError> {
        let call =
            Call::get(&["v1", "webhooks"]).query("page", &page).query("page_size", &page_size);
        let answer = self.send(call, within).await?;
        let list = parse_list(&answer, ListKey::Items, |raw| parse_webhook(parse_object(raw)?))?;
        Ok(WebhookPage {
            webhooks: list.readable,
            unreadable: list.unreadable,
            page_count: list.page_count,
        })
    }

    /// Reads a webhook.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn webhook(&self, id: &WebhookId, within: Duration) -> Result<Webhook, ApiError> {
        let path = ["v1", "webhooks", id.as_str()];
        let answer = self.send(Call::get(&path), within).await?;
        checked_webhook(&answer, id)
    }

    /// Changes a webhook. May be repeated.
    ///
    /// # Errors
    /// See [`ApiError`]; after `Unavailable` the change may have been made.
    pub async fn update_webhook(
        &self,
        id: &WebhookId,
        change: &WebhookChange,
        within: Duration,
    ) -> Result<Webhook, ApiError> {
        let body = WebhookBody {
            url: change.url.as_deref(),
            event_type: change.event_type.as_ref().map(EventType::as_str),
            description: change.description.as_deref(),
            is_active: change.is_active,
        };
        let path = ["v1", "webhooks", id.as_str()];
        let answer = self.send(Call::new(Method::PATCH, &path).body(&body)?, within).await?;
        checked_webhook(&answer, id)
    }

    /// Deletes a webhook. May be repeated; a second call finds it `Missing`.
    ///
    /// # Errors
    /// See [`ApiError`]; after `Unavailable` it may be gone.
    pub async fn delete_webhook(&self, id: &WebhookId, within: Duration) -> Result<(), ApiError> {
        let path = ["v1", "webhooks", id.as_str()];
        self.send(Call::new(Method::DELETE, &path), within).await?;
        Ok(())
    }

    /// Replaces a webhook's secret. The old one stops signing at once.
    ///
    /// # Errors
    /// [`SubmitError::Unanswered`] when the old secret may be replaced by one that nobody has
    /// seen: rotate again.
    pub async fn rotate_secret(
        &self,
        id: &WebhookId,
        within: Duration,
    ) -> Result<Redacted<String>, SubmitError> {
        let path = ["v1", "webhooks", id.as_str(), "rotate-secret"];
        let answer = self.send(Call::new(Method::POST, &path), within).await?;
        read_secret(&answer).map_err(SubmitError::Unanswered)
    }

    /// Reads one page of a webhook's delivery log.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn list_deliveries(
        &self,
        id: &WebhookId,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<DeliveryPage, ApiError> {
        let path = ["v1", "webhooks", id.as_str(), "deliveries"];
        let call = Call::get(&path).query("page", &page).query("page_size", &page_size);
        let answer = self.send(call, within).await?;
        let list = parse_list(&answer, ListKey::Items, |raw| parse_delivery(parse_object(raw)?))?;
        Ok(DeliveryPage {
            deliveries: list.readable,
            unreadable: list.unreadable,
            page_count: list.page_count,
        })
    }
}

fn read_webhook(answer: &Answer) -> Result<Webhook, ApiError> {
    parse_webhook(answer.read()?).ok_or_else(|| answer.unreadable("the answer has no usable `id`"))
}

fn checked_webhook(answer: &Answer, asked: &WebhookId) -> Result<Webhook, ApiError> {
    let webhook = read_webhook(answer)?;
    if webhook.id == *asked {
        Ok(webhook)
    } else {
        Err(answer.unreadable("the answer speaks of another webhook"))
    }
}

fn read_secret(answer: &Answer) -> Result<Redacted<String>, ApiError> {
    let field: SecretField = answer.read()?;
    if field.secret.trim().is_empty() {
        return Err(answer.unreadable("the answer's `secret` is empty"));
    }
    Ok(Redacted::new(field.secret))
}

fn parse_webhook(fields: WebhookFields) -> Option<Webhook> {
    Some(Webhook {
        id: WebhookId::parse(&fields.id).ok()?,
        created_at: fields.created_at.timestamp(),
        updated_at: fields.updated_at.timestamp(),
        url: fields.url,
        description: fields.description.0,
        is_active: fields.is_active,
        event_type: event_type(&fields.event_type),
    })
}

fn parse_delivery(fields: DeliveryFields) -> Option<Delivery> {
    let job_id = match fields.job_id {
        Some(text) => Some(JobId::parse(&text).ok()?),
        None => None,
    };
    Some(Delivery {
        job_id,
        delivered_at: fields.delivered_at.timestamp(),
        created_at: fields.created_at.timestamp(),
        event_type: event_type(&fields.event_type),
        attempt_number: fields.attempt_number.0,
        status: DeliveryStatus::from_api(&fields.status),
        http_status: fields.http_status.0,
        id: fields.id,
    })
}

fn event_type(text: &str) -> EventType {
    Kind::ALL
        .into_iter()
        .map(EventType::completed)
        .find(|event| event.as_str() == text)
        .unwrap_or_else(|| EventType::Unknown(clean(text, WORD_CHARS_MAX)))
}

#[cfg(test)]
mod tests;
