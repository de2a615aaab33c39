//! The platform's webhooks under a witness, who sees what becomes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::job::Kind;
use domain::ports::{
    ApiError, CreatedWebhook, DeliveryPage, NewWebhook, SecretSource as _, SubmitError, Webhook,
    WebhookChange, WebhookId, WebhookPage, Webhooks,
};
use domain::signature::secret::{Secret, Stage};
use domain::testing::MemoryVault;

use super::promises::Broken;
use crate::platform::PlatformJobs;

/// The webhooks as the product calls them, with what each of them signs with.
pub(super) struct Witness {
    platform: Arc<PlatformJobs>,
    vault: Arc<MemoryVault>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    signing: BTreeMap<WebhookId, Secret>,
    kinds: BTreeMap<WebhookId, Kind>,
    /// Kinds whose webhook had its secret replaced: there is a gap, and its log makes up for it.
    replaced: BTreeSet<Kind>,
    /// Kinds of which somebody else switched a webhook off.
    meddled: BTreeSet<Kind>,
    broken: Option<Broken>,
}

/// A webhook that is delivering, and the stage of the secret that it signs with, if receivers may
/// know it.
struct Delivering {
    webhook: Webhook,
    stage: Option<Stage>,
}

impl Witness {
    pub(super) fn new(platform: Arc<PlatformJobs>, vault: Arc<MemoryVault>) -> Self {
        Self { platform, vault, seen: Mutex::default() }
    }

    /// The kinds whose secrets only ever overlapped.
    pub(super) fn overlapping(&self) -> BTreeSet<Kind> {
        let seen = self.seen();
        Kind::ALL.into_iter().filter(|kind| !seen.replaced.contains(kind)).collect()
    }

    /// The secrets that every receiver must know by now: of kinds whose secrets only ever
    /// overlapped those that are, or were, the current ones.
    pub(super) async fn known_for_long(&self) -> Vec<Secret> {
        let secrets = self.vault.load().await.expect("secrets are read").secrets;
        let overlapping = self.overlapping();
        let seen = self.seen();
        let kind = |secret: &Secret| {
            let id = WebhookId::parse(secret.webhook_id()?).ok()?;
            seen.kinds.get(&id).copied()
        };
        let is_known = |secret: &Secret| {
            secret.stage() != Stage::Pending
                && kind(secret).is_some_and(|kind| overlapping.contains(&kind))
        };
        secrets.into_iter().filter(is_known).collect()
    }

    /// The webhook of a kind that somebody else may switch off, since another one delivers what it
    /// does.
    pub(super) async fn spare(&self, kind: Kind) -> Option<WebhookId> {
        let delivering = self.delivering(kind).await;
        let known: Vec<_> = delivering.iter().filter(|it| it.stage.is_some()).collect();
        let current = known.iter().find(|it| it.stage == Some(Stage::Current))?;
        (known.len() > 1).then(|| {
            self.seen().meddled.insert(kind);
            current.webhook.id.clone()
        })
    }

    /// The promises about webhooks: at each instant each event is delivered by one whose secret
    /// receivers can find, and nothing that we do takes the last such one away.
    pub(super) async fn broken(&self) -> Option<Broken> {
        if let Some(broken) = self.seen().broken.clone() {
            return Some(broken);
        }
        for kind in self.overlapping() {
            let is_known = self.delivering(kind).await.iter().any(|it| it.stage.is_some());
            if !is_known && !self.seen().meddled.contains(&kind) {
                return Some(Broken(format!("no {kind} event would be accepted")));
            }
        }
        None
    }

    /// What must be so in the end: of each event one webhook delivers, by the current secret.
    pub(super) async fn unsettled(&self) -> Option<Broken> {
        for kind in Kind::ALL {
            let delivering = self.delivering(kind).await;
            let stages: Vec<_> = delivering.iter().map(|it| it.stage).collect();
            if stages != [Some(Stage::Current)] {
                return Some(Broken(format!("{kind} events are delivered by {stages:?}")));
            }
        }
        None
    }

    async fn delivering(&self, kind: Kind) -> Vec<Delivering> {
        let webhooks = self.platform.webhooks().expect("the webhooks are listed");
        let secrets = self.vault.load().await.expect("secrets are read").secrets;
        let seen = self.seen();
        let active = webhooks
            .into_iter()
            .filter(|webhook| webhook.is_active && webhook.event_type.kind() == Some(kind));
        let delivering = active.map(|webhook| {
            let signing = seen.signing.get(&webhook.id);
            let found = secrets.iter().find(|it| signing.is_some_and(|s| it.same_text(s)));
            Delivering { stage: found.map(Secret::stage), webhook }
        });
        delivering.collect()
    }

    /// What `call` does must not take away the last webhook that is believed.
    async fn watch<T>(
        &self,
        id: &WebhookId,
        call: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let webhooks = self.platform.webhooks().unwrap_or_default();
        let kind = webhooks.iter().find(|it| it.id == *id).and_then(|it| it.event_type.kind());
        let Some(kind) = kind else { return call.await };
        let relied_on = |delivering: &[Delivering]| {
            // A secret that is pending is another one's successor.
            let stages = [Some(Stage::Current), Some(Stage::Previous)];
            delivering.iter().any(|it| it.webhook.id == *id && stages.contains(&it.stage))
        };
        let was_relied_on = relied_on(&self.delivering(kind).await);
        let answer = call.await;
        let left = self.delivering(kind).await;
        let is_gone = left.iter().all(|it| it.webhook.id != *id);
        let is_last = left.iter().all(|it| it.stage.is_none());
        if was_relied_on && is_gone && is_last && self.overlapping().contains(&kind) {
            let text = format!("the last webhook that delivers {kind} events was taken away");
            self.seen().broken = Some(Broken(text));
        }
        answer
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Webhooks for Witness {
    async fn create(
        &self,
        new: &NewWebhook,
        within: Duration,
    ) -> Result<CreatedWebhook, SubmitError> {
        let created = self.platform.create(new, within).await?;
        let mut seen = self.seen();
        let id = &created.webhook.id;
        seen.signing.insert(id.clone(), created.secret.clone());
        seen.kinds.extend(created.webhook.event_type.kind().map(|kind| (id.clone(), kind)));
        drop(seen);
        Ok(created)
    }

    async fn list(
        &self,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<WebhookPage, ApiError> {
        Webhooks::list(&*self.platform, page, page_size, within).await
    }

    async fn get(&self, id: &WebhookId, within: Duration) -> Result<Webhook, ApiError> {
        Webhooks::get(&*self.platform, id, within).await
    }

    async fn update(
        &self,
        id: &WebhookId,
        change: &WebhookChange,
        within: Duration,
    ) -> Result<Webhook, ApiError> {
        self.watch(id, self.platform.update(id, change, within)).await
    }

    async fn delete(&self, id: &WebhookId, within: Duration) -> Result<(), ApiError> {
        self.watch(id, self.platform.delete(id, within)).await
    }

    async fn rotate_secret(&self, id: &WebhookId, within: Duration) -> Result<Secret, SubmitError> {
        let webhooks = self.platform.webhooks().unwrap_or_default();
        let kind = webhooks.iter().find(|it| it.id == *id).and_then(|it| it.event_type.kind());
        self.seen().replaced.extend(kind);
        let answer = self.platform.rotate_secret(id, within).await;
        if let Ok(secret) = &answer {
            self.seen().signing.insert(id.clone(), secret.clone());
        }
        answer
    }

    async fn deliveries(
        &self,
        id: &WebhookId,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<DeliveryPage, ApiError> {
        self.platform.deliveries(id, page, page_size, within).await
    }
}
