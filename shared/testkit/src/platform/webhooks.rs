//! Webhooks of the simulated platform as a port.

use std::time::Duration;

use async_trait::async_trait;
use domain::envelope::EventType;
use domain::job::{JobId, Kind};
use domain::ports::{
    ApiError, CreatedWebhook, Delivery, DeliveryPage, DeliveryStatus, NewWebhook, SubmitError,
    Webhook, WebhookChange, WebhookId, WebhookPage, Webhooks,
};
use domain::signature::secret::Secret;
use domain::time::{Timestamp, parse_lenient};
use serde_json::{Value, json};
use simulator::Faults;

use super::PlatformJobs;
use super::reading::{rows, text, unreadable};
use super::travel::{self, Failure};

impl PlatformJobs {
    /// All webhooks as they are, whatever goes wrong with calls: for a judge.
    ///
    /// # Errors
    /// When the platform does not list them.
    pub fn webhooks(&self) -> Result<Vec<Webhook>, ApiError> {
        let mut platform = self.platform();
        let faults = platform.faults().clone();
        let none = Faults::none();
        platform.set_faults(Faults { api: none.api, lists: none.lists, ..faults.clone() });
        let call = self.call("GET", "/v1/webhooks", "page=1&page_size=100", b"");
        let answer = platform.call(&call, self.now());
        platform.set_faults(faults);
        let answer = travel::read(answer.status, answer.body, None).map_err(Failure::error)?;
        Ok(rows(&answer, "items", webhook)?.0)
    }
}

#[async_trait]
impl Webhooks for PlatformJobs {
    async fn create(
        &self,
        new: &NewWebhook,
        within: Duration,
    ) -> Result<CreatedWebhook, SubmitError> {
        let body = json!({
            "url": new.url,
            "event_type": new.event_type.as_str(),
            "description": new.description,
        });
        let body = body.to_string();
        let answer = self.ask(self.call("POST", "/v1/webhooks", "", body.as_bytes()), within).await;
        let answer = answer.map_err(Failure::submit_error)?;
        let read = || Some((webhook(&answer)?, shown(&answer)?));
        let (webhook, secret) = read().ok_or_else(|| {
            SubmitError::Unanswered(unreadable("the answer has no usable webhook"))
        })?;
        Ok(CreatedWebhook { webhook, secret })
    }

    async fn list(
        &self,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<WebhookPage, ApiError> {
        let query = format!("page={page}&page_size={page_size}");
        let answer = self.get("/v1/webhooks", &query, within).await?;
        let (webhooks, unreadable) = rows(&answer, "items", webhook)?;
        Ok(WebhookPage { webhooks, unreadable, page_count: page_count(&answer) })
    }

    async fn get(&self, id: &WebhookId, within: Duration) -> Result<Webhook, ApiError> {
        let answer = self.get(&path(id, ""), "", within).await?;
        webhook(&answer).ok_or_else(|| unreadable("the answer has no usable webhook"))
    }

    async fn update(
        &self,
        id: &WebhookId,
        change: &WebhookChange,
        within: Duration,
    ) -> Result<Webhook, ApiError> {
        let fields = [
            ("url", change.url.as_ref().map(|url| json!(url))),
            ("description", change.description.as_ref().map(|text| json!(text))),
            ("is_active", change.is_active.map(|is_active| json!(is_active))),
            ("event_type", change.event_type.as_ref().map(|event| json!(event.as_str()))),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let body = Value::Object(fields.collect()).to_string();
        let call_path = path(id, "");
        let call = self.call("PATCH", &call_path, "", body.as_bytes());
        let answer = self.ask(call, within).await.map_err(Failure::error)?;
        webhook(&answer).ok_or_else(|| unreadable("the answer has no usable webhook"))
    }

    async fn delete(&self, id: &WebhookId, within: Duration) -> Result<(), ApiError> {
        let call_path = path(id, "");
        let call = self.call("DELETE", &call_path, "", b"");
        match self.ask(call, within).await.map_err(Failure::error) {
            // An empty answer is what is promised here.
            Err(error) if error.status == Some(204) => Ok(()),
            answer => answer.map(drop),
        }
    }

    async fn rotate_secret(&self, id: &WebhookId, within: Duration) -> Result<Secret, SubmitError> {
        let call_path = path(id, "/rotate-secret");
        let call = self.call("POST", &call_path, "", b"");
        let answer = self.ask(call, within).await.map_err(Failure::submit_error)?;
        shown(&answer)
            .ok_or_else(|| SubmitError::Unanswered(unreadable("the answer has no `secret`")))
    }

    async fn deliveries(
        &self,
        id: &WebhookId,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<DeliveryPage, ApiError> {
        let query = format!("page={page}&page_size={page_size}");
        let answer = self.get(&path(id, "/deliveries"), &query, within).await?;
        let (deliveries, unreadable) = rows(&answer, "items", delivery)?;
        Ok(DeliveryPage { deliveries, unreadable, page_count: page_count(&answer) })
    }
}

fn path(id: &WebhookId, below: &str) -> String {
    format!("/v1/webhooks/{}{below}", id.as_str())
}

fn page_count(answer: &Value) -> Option<u64> {
    answer.get("page_count").and_then(Value::as_u64)
}

fn shown(answer: &Value) -> Option<Secret> {
    Secret::new(text(answer, "secret")?).ok()
}

fn instant(value: &Value, name: &str) -> Option<Timestamp> {
    text(value, name).and_then(parse_lenient)
}

fn event_type(value: &Value) -> Option<EventType> {
    let name = text(value, "event_type")?;
    let known = Kind::ALL.into_iter().map(EventType::completed);
    let found = known.into_iter().find(|event| event.as_str() == name);
    Some(found.unwrap_or_else(|| EventType::Unknown(name.to_owned())))
}

fn webhook(value: &Value) -> Option<Webhook> {
    Some(Webhook {
        id: WebhookId::parse(text(value, "id")?).ok()?,
        url: text(value, "url")?.to_owned(),
        description: text(value, "description").map(str::to_owned),
        is_active: value.get("is_active")?.as_bool()?,
        event_type: event_type(value)?,
        created_at: instant(value, "created_at"),
        updated_at: instant(value, "updated_at"),
    })
}

fn delivery(value: &Value) -> Option<Delivery> {
    let job_id = match value.get("job_id") {
        None | Some(Value::Null) => None,
        Some(id) => Some(JobId::parse(id.as_str()?).ok()?),
    };
    let status = text(value, "status")?;
    let known = DeliveryStatus::KNOWN.into_iter().find(|known| known.as_str() == status);
    let number = |name: &str| value.get(name).and_then(Value::as_u64);
    Some(Delivery {
        id: text(value, "id")?.to_owned(),
        event_type: event_type(value)?,
        job_id,
        attempt_number: number("attempt_number").and_then(|number| number.try_into().ok()),
        status: known.unwrap_or_else(|| DeliveryStatus::Unknown(status.to_owned())),
        http_status: number("http_status").and_then(|number| number.try_into().ok()),
        delivered_at: instant(value, "delivered_at"),
        created_at: instant(value, "created_at"),
    })
}
