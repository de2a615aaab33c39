//! Webhooks and their delivery logs.

use std::time::Duration;

use async_trait::async_trait;
use domain::envelope::EventType;
use domain::job::{JobId, Kind};
use domain::ports::{
    ApiError, CreatedWebhook, Delivery, DeliveryPage, DeliveryStatus, NewWebhook, SubmitError,
    Webhook, WebhookChange, WebhookId, WebhookPage, Webhooks,
};
use domain::signature::secret::Secret;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Maybe, parse_object};
use crate::client::{Call, ScraperApi};
use crate::error_body::clean;
use crate::lists::{ListKey, parse_list};

/// Longest unknown word of the platform kept, in characters.
const WORD_CHARS_MAX: usize = 64;

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

#[async_trait]
impl Webhooks for ScraperApi {
    async fn create(
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

    async fn list(
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

    async fn get(&self, id: &WebhookId, within: Duration) -> Result<Webhook, ApiError> {
        let path = ["v1", "webhooks", id.as_str()];
        let answer = self.send(Call::get(&path), within).await?;
        checked_webhook(&answer, id)
    }

    async fn update(
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

    async fn delete(&self, id: &WebhookId, within: Duration) -> Result<(), ApiError> {
        let path = ["v1", "webhooks", id.as_str()];
        self.send(Call::new(Method::DELETE, &path), within).await?;
        Ok(())
    }

    async fn rotate_secret(&self, id: &WebhookId, within: Duration) -> Result<Secret, SubmitError> {
        let path = ["v1", "webhooks", id.as_str(), "rotate-secret"];
        let answer = self.send(Call::new(Method::POST, &path), within).await?;
        read_secret(&answer).map_err(SubmitError::Unanswered)
    }

    async fn deliveries(
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

fn read_secret(answer: &Answer) -> Result<Secret, ApiError> {
    let field: SecretField = answer.read()?;
    Secret::new(&field.secret).map_err(|error| answer.unreadable(&error.to_string()))
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
        status: delivery_status(&fields.status),
        http_status: fields.http_status.0,
        id: fields.id,
    })
}

fn delivery_status(text: &str) -> DeliveryStatus {
    DeliveryStatus::KNOWN
        .into_iter()
        .find(|status| status.as_str() == text)
        .unwrap_or_else(|| DeliveryStatus::Unknown(clean(text, WORD_CHARS_MAX)))
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
