use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;

use super::*;
use crate::envelope::EventType;
use crate::ports::{DeliveryPage, WebhookChange, WebhookPage};
use crate::signature::secret::Secret;
use crate::testing::{EventClock, MemoryWebhooks, SeededRandom, WebhookCall};

const SECOND: Duration = Duration::from_secs(1);

/// Webhooks whose creations are made and not answered, as often as it says.
struct Silent {
    inner: MemoryWebhooks,
    left: Mutex<u32>,
}

#[async_trait]
impl Webhooks for Silent {
    async fn create(
        &self,
        new: &NewWebhook,
        within: Duration,
    ) -> Result<CreatedWebhook, SubmitError> {
        let created = self.inner.create(new, within).await?;
        let mut left = self.left.lock().unwrap();
        if *left == 0 {
            return Ok(created);
        }
        *left -= 1;
        Err(SubmitError::Unanswered(ApiError::new(ApiErrorKind::Unavailable, "planned")))
    }

    async fn list(
        &self,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<WebhookPage, ApiError> {
        self.inner.list(page, page_size, within).await
    }

    async fn get(&self, id: &WebhookId, within: Duration) -> Result<Webhook, ApiError> {
        self.inner.get(id, within).await
    }

    async fn update(
        &self,
        id: &WebhookId,
        change: &WebhookChange,
        within: Duration,
    ) -> Result<Webhook, ApiError> {
        self.inner.update(id, change, within).await
    }

    async fn delete(&self, id: &WebhookId, within: Duration) -> Result<(), ApiError> {
        self.inner.delete(id, within).await
    }

    async fn rotate_secret(&self, id: &WebhookId, within: Duration) -> Result<Secret, SubmitError> {
        self.inner.rotate_secret(id, within).await
    }

    async fn deliveries(
        &self,
        id: &WebhookId,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<DeliveryPage, ApiError> {
        self.inner.deliveries(id, page, page_size, within).await
    }
}

struct Rig {
    clock: Arc<EventClock>,
    webhooks: Silent,
    random: SeededRandom,
}

impl Rig {
    fn new(silent: u32) -> Self {
        let clock = Arc::new(EventClock::default());
        let webhooks =
            Silent { inner: MemoryWebhooks::new(clock.clone()), left: Mutex::new(silent) };
        Self { clock, webhooks, random: SeededRandom::new(5) }
    }

    fn account(&self) -> Account<'_> {
        Account {
            webhooks: &self.webhooks,
            clock: &*self.clock,
            random: &self.random,
            within: SECOND,
            tries: TRIES_MAX,
        }
    }

    fn register(&self) -> Result<CreatedWebhook, ApiError> {
        let account = self.account();
        self.clock.run(account.register(&wanted())).unwrap()
    }
}

fn wanted() -> NewWebhook {
    NewWebhook {
        url: "https://example.org/".to_owned(),
        event_type: EventType::CrawlCompleted,
        description: Some("gleaner".to_owned()),
    }
}

/// S28: a creation whose answer was lost leaves no second webhook behind.
#[test]
fn an_unanswered_creation_is_undone_before_the_next() {
    for silent in [0, 1, 5] {
        let rig = Rig::new(silent);
        let created = rig.register().unwrap();
        let webhooks = rig.webhooks.inner.webhooks();
        assert_eq!(webhooks, [created.webhook], "{silent}");
        let description = webhooks[0].description.as_deref().unwrap();
        assert_eq!(without_token(description), "gleaner");
        assert_eq!(description.len(), "gleaner [0123456789ab]".len());
    }
}

#[test]
fn patience_ends() {
    let rig = Rig::new(u32::MAX);
    assert_eq!(rig.register().unwrap_err().kind, ApiErrorKind::Unavailable);
    assert!(rig.webhooks.inner.webhooks().is_empty());
    let creates = |call: &&WebhookCall| matches!(call, WebhookCall::Create(_));
    let made = rig.webhooks.inner.calls().iter().filter(creates).count();
    assert_eq!(made, usize::try_from(TRIES_MAX).unwrap());
}

#[test]
fn a_refusal_is_not_tried_again() {
    let rig = Rig::new(0);
    rig.webhooks.inner.fail(ApiError::new(ApiErrorKind::Refused, "planned"));
    assert_eq!(rig.register().unwrap_err().kind, ApiErrorKind::Refused);
    assert_eq!(rig.webhooks.inner.calls().len(), 1);
}

#[test]
fn what_is_gone_is_as_good_as_deleted() {
    let rig = Rig::new(0);
    let id = rig.register().unwrap().webhook.id;
    let account = rig.account();
    assert!(rig.clock.run(account.find(&id)).unwrap().unwrap().is_some());
    for _ in 0..2 {
        rig.clock.run(account.delete(&id)).unwrap().unwrap();
    }
    assert_eq!(rig.clock.run(account.find(&id)).unwrap().unwrap(), None);
}

#[test]
fn what_cannot_be_read_is_counted() {
    let rig = Rig::new(0);
    rig.register().unwrap();
    rig.webhooks.inner.set_unreadable(2);
    let listed = rig.clock.run(rig.account().list()).unwrap().unwrap();
    assert_eq!((listed.webhooks.len(), listed.unreadable), (1, 2));
}

#[test]
fn a_token_is_only_what_looks_like_one() {
    for (text, without) in [
        ("gleaner [0123456789ab]", "gleaner"),
        ("gleaner [prod]", "gleaner [prod]"),
        ("[0123456789ab]", ""),
        ("a [0123456789ag]", "a [0123456789ag]"),
        ("", ""),
        ("a [b] [0123456789ab] ", "a [b]"),
    ] {
        assert_eq!(without_token(text), without, "{text}");
    }
}
