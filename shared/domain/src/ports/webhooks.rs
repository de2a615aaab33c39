use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{ApiError, SubmitError};
use crate::envelope::EventType;
use crate::job::{JobId, JobIdError};
use crate::signature::secret::Secret;
use crate::time::Timestamp;

/// The platform's webhooks and their delivery logs.
///
/// Every call ends within `within`, the body included. None costs tokens. Lists come in no promised
/// order, and rows may move between pages while they are read.
#[async_trait]
pub trait Webhooks: Send + Sync {
    /// Creates a webhook. A second identical call creates a second one; an account may have
    /// [`crate::limits::WEBHOOKS_MAX`].
    ///
    /// # Errors
    /// [`SubmitError::Unanswered`] when the webhook may exist all the same, with a secret that
    /// nobody has seen: look for it in the list and delete it.
    async fn create(
        &self,
        new: &NewWebhook,
        within: Duration,
    ) -> Result<CreatedWebhook, SubmitError>;

    /// Reads one page of the account's webhooks.
    ///
    /// # Errors
    /// See [`ApiError`]; an answer without the list is `Unreadable`, never an empty list.
    async fn list(
        &self,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<WebhookPage, ApiError>;

    /// Reads a webhook.
    ///
    /// # Errors
    /// See [`ApiError`]; `Missing` once it is deleted.
    async fn get(&self, id: &WebhookId, within: Duration) -> Result<Webhook, ApiError>;

    /// Changes a webhook. May be repeated.
    ///
    /// # Errors
    /// See [`ApiError`]; after `Unavailable` the change may have been made.
    async fn update(
        &self,
        id: &WebhookId,
        change: &WebhookChange,
        within: Duration,
    ) -> Result<Webhook, ApiError>;

    /// Deletes a webhook. May be repeated; a second call finds it `Missing`. Whether its delivery
    /// log can be read afterwards is not documented.
    ///
    /// # Errors
    /// See [`ApiError`]; after `Unavailable` it may be gone.
    async fn delete(&self, id: &WebhookId, within: Duration) -> Result<(), ApiError>;

    /// Replaces a webhook's secret. The old one stops signing at once; a second call replaces the
    /// first one's.
    ///
    /// # Errors
    /// [`SubmitError::Unanswered`] when the old secret may be replaced by one that nobody has
    /// seen: rotate again.
    async fn rotate_secret(&self, id: &WebhookId, within: Duration) -> Result<Secret, SubmitError>;

    /// Reads one page of a webhook's delivery log.
    ///
    /// # Errors
    /// See [`ApiError`]; `Missing` once the webhook is deleted.
    async fn deliveries(
        &self,
        id: &WebhookId,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<DeliveryPage, ApiError>;
}

/// A webhook's id. The rules are those of job ids: it must stay one path segment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
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
#[derive(Debug, Clone)]
pub struct CreatedWebhook {
    /// The webhook.
    pub webhook: Webhook,
    /// Its signing secret; no other call shows it again.
    pub secret: Secret,
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
    /// All that this version knows.
    pub const KNOWN: [Self; 4] = [Self::Pending, Self::Success, Self::Failed, Self::Abandoned];

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
