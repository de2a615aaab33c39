//! Webhook subscriptions and the delivery log.

use serde_json::{Value, json};

use crate::answer::{Answer, Problem};
use crate::delivery_log::LogRow;
use crate::dice::Key;
use crate::job::Kind;
use crate::moment::Moment;
use crate::platform::Platform;
use crate::query::Query;
use crate::submission::{Fields, is_fetchable};

/// Webhooks per account (contract 1.9).
pub const WEBHOOKS_MAX: usize = 10;

/// Largest page of the webhook list and of the delivery log (contract 1.12).
const PAGE_SIZE_MAX: u64 = 100;

/// A subscription: one URL, one event type, one secret.
pub(crate) struct Webhook {
    pub(crate) id: String,
    pub(crate) key: Key,
    pub(crate) url: String,
    pub(crate) kind: Kind,
    pub(crate) secret: String,
    pub(crate) is_active: bool,
    pub(crate) is_deleted: bool,
    pub(crate) log: Vec<LogRow>,
    description: Option<String>,
    created_at: Moment,
    updated_at: Moment,
    rotations: u64,
}

impl std::fmt::Debug for Webhook {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Webhook {
    fn json(&self) -> Value {
        json!({
            "id": self.id, "url": self.url, "description": self.description,
            "is_active": self.is_active, "event_type": self.kind.event_type(),
            "created_at": self.created_at, "updated_at": self.updated_at,
        })
    }
}

fn parse_event_type(text: &str) -> Option<Kind> {
    [Kind::Extract, Kind::Batch, Kind::Crawl].into_iter().find(|kind| kind.event_type() == text)
}

fn refused(problems: &[Problem]) -> Answer {
    let text = problems.iter().map(|p| p.message.clone()).collect::<Vec<_>>().join("; ");
    Answer::flat(422, "VALIDATION_ERROR", &text, false)
}

fn not_found() -> Answer {
    Answer::flat(404, "WEBHOOK_NOT_FOUND", "No such webhook", false)
}

impl Platform {
    fn webhook_index(&self, id: &str) -> Option<usize> {
        let id = id.to_ascii_lowercase();
        self.webhooks.iter().position(|webhook| webhook.id == id && !webhook.is_deleted)
    }

    fn webhook(&self, id: &str) -> Option<&Webhook> {
        self.webhook_index(id).and_then(|index| self.webhooks.get(index))
    }

    fn webhook_mut(&mut self, id: &str) -> Option<&mut Webhook> {
        self.webhook_index(id).and_then(|index| self.webhooks.get_mut(index))
    }

    fn new_secret(&self, key: Key, rotation: u64) -> String {
        let id = self.dice.uuid("secret", key.child(rotation));
        format!("whsec_{}", id.replace('-', ""))
    }

    pub(crate) fn create_webhook(&mut self, body: &[u8]) -> Answer {
        let request = Fields::read(body).and_then(|mut fields| {
            let url = fields.text("url");
            let event_type = fields.text("event_type");
            let description = fields.optional_text("description");
            fields.finish((url, event_type, description))
        });
        let (url, event_type, description) = match request {
            Ok(request) => request,
            Err(problems) => return refused(&problems),
        };
        let Some(kind) = parse_event_type(&event_type) else {
            return Answer::flat(422, "VALIDATION_ERROR", "event_type: unknown event type", false);
        };
        if !is_fetchable(&url) {
            return Answer::flat(422, "VALIDATION_ERROR", "url: not an absolute URL", false);
        }
        if self.webhooks.iter().filter(|webhook| !webhook.is_deleted).count() >= WEBHOOKS_MAX {
            let message = "The account already has 10 webhooks";
            return Answer::flat(422, "WEBHOOK_LIMIT_REACHED", message, false);
        }
        let ordinal = u64::try_from(self.webhooks.len()).unwrap_or(u64::MAX);
        let key = Key::of(b"webhook").child(ordinal);
        let webhook = Webhook {
            id: self.dice.uuid("webhook", key),
            key,
            url,
            kind,
            secret: self.new_secret(key, 0),
            is_active: true,
            is_deleted: false,
            log: Vec::new(),
            description,
            created_at: self.now,
            updated_at: self.now,
            rotations: 0,
        };
        let mut answer = webhook.json();
        if let Some(object) = answer.as_object_mut() {
            object.insert("secret".to_owned(), json!(webhook.secret));
        }
        self.webhooks.push(webhook);
        Answer::json(201, answer)
    }

    pub(crate) fn list_webhooks(&self, query: &Query) -> Result<Answer, Vec<Problem>> {
        let paging = query.paging(PAGE_SIZE_MAX, PAGE_SIZE_MAX)?;
        let live: Vec<Value> =
            self.webhooks.iter().filter(|w| !w.is_deleted).map(Webhook::json).collect();
        let items: Vec<&Value> = live.iter().skip(paging.offset()).take(paging.len()).collect();
        Ok(Answer::json(
            200,
            json!({ "items": items, "page": paging.page, "page_size": paging.size,
                    "page_count": paging.count(live.len()) }),
        ))
    }

    pub(crate) fn get_webhook(&self, id: &str) -> Answer {
        self.webhook(id).map_or_else(not_found, |webhook| Answer::json(200, webhook.json()))
    }

    pub(crate) fn update_webhook(&mut self, id: &str, body: &[u8]) -> Answer {
        let now = self.now;
        let Some(webhook) = self.webhook_mut(id) else { return not_found() };
        let request = Fields::read(body).and_then(|mut fields| {
            let url = fields.has("url").then(|| fields.text("url"));
            let event_type = fields.optional_text("event_type");
            let is_active = fields.switch("is_active");
            let description = fields.optional_text("description");
            fields.finish((url, event_type, is_active, description))
        });
        let (url, event_type, is_active, description) = match request {
            Ok(request) => request,
            Err(problems) => return refused(&problems),
        };
        let kind = event_type.as_deref().map(parse_event_type);
        if kind == Some(None) || url.as_deref().is_some_and(|url| !is_fetchable(url)) {
            let message = "url or event_type: not valid";
            return Answer::flat(422, "VALIDATION_ERROR", message, false);
        }
        webhook.kind = kind.flatten().unwrap_or(webhook.kind);
        webhook.is_active = is_active.unwrap_or(webhook.is_active);
        if let Some(url) = url {
            webhook.url = url;
        }
        if description.is_some() {
            webhook.description = description;
        }
        webhook.updated_at = now;
        Answer::json(200, webhook.json())
    }

    pub(crate) fn delete_webhook(&mut self, id: &str) -> Answer {
        let Some(webhook) = self.webhook_mut(id) else { return not_found() };
        webhook.is_deleted = true;
        webhook.is_active = false;
        // The log goes with the webhook; the contract leaves it open, this is the worse case.
        webhook.log = Vec::new();
        Answer::empty(204)
    }

    pub(crate) fn rotate_secret(&mut self, id: &str) -> Answer {
        let now = self.now;
        let Some(webhook) = self.webhook(id) else { return not_found() };
        let rotations = webhook.rotations + 1;
        let secret = self.new_secret(webhook.key, rotations);
        if let Some(webhook) = self.webhook_mut(id) {
            webhook.rotations = rotations;
            webhook.secret.clone_from(&secret);
            webhook.updated_at = now;
        }
        Answer::json(200, json!({ "secret": secret }))
    }

    /// Answers the delivery log, newest row first.
    pub(crate) fn list_deliveries(&self, id: &str, query: &Query) -> Result<Answer, Vec<Problem>> {
        let paging = query.paging(PAGE_SIZE_MAX, PAGE_SIZE_MAX)?;
        let Some(webhook) = self.webhook(id) else { return Ok(not_found()) };
        let status = query.get("status");
        let rows =
            || webhook.log.iter().rev().filter(|row| status.is_none_or(|s| row.status.name() == s));
        let total = if status.is_some() { rows().count() } else { webhook.log.len() };
        let items: Vec<Value> = rows()
            .skip(paging.offset())
            .take(paging.len())
            .map(|row| self.log_row_json(webhook, row))
            .collect();
        Ok(Answer::json(
            200,
            json!({ "items": items, "page": paging.page, "page_size": paging.size,
                    "page_count": paging.count(total) }),
        ))
    }
}
