use std::sync::Arc;
use std::time::Duration;

use crate::envelope::EventType;
use crate::limits::Limits;
use crate::ports::{
    Clock as _, NewWebhook, SecretSource as _, Slot, SlotId, Vault as _, VersionId, Webhook,
    WebhookChange, WebhookId, Webhooks as _,
};
use crate::rotate::{Done, RotateError, RotatePorts, Rotation, Staging, Step, Strategy, rotate};
use crate::testing::{EventClock, MemoryLedger, MemoryVault, MemoryWebhooks, SeededRandom};
use crate::time::{Timestamp, after};

pub(super) const URL: &str = "https://example.org/webhook";
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// A subscription whose secret is in a slot.
pub(super) struct Rig {
    pub(super) clock: Arc<EventClock>,
    pub(super) vault: MemoryVault,
    pub(super) webhooks: MemoryWebhooks,
    pub(super) ledger: MemoryLedger,
    pub(super) random: SeededRandom,
    pub(super) limits: Limits,
    pub(super) slot: SlotId,
    pub(super) old: WebhookId,
}

pub(super) fn version(name: &str) -> VersionId {
    VersionId::parse(&format!("{name:-<32}")).unwrap()
}

pub(super) fn new_webhook() -> NewWebhook {
    NewWebhook {
        url: URL.to_owned(),
        event_type: EventType::ExtractCompleted,
        description: Some("gleaner [abcdef012345]".to_owned()),
    }
}

impl Rig {
    pub(super) fn new() -> Self {
        let clock = Arc::new(EventClock::default());
        let vault = MemoryVault::new(clock.clone());
        let webhooks = MemoryWebhooks::new(clock.clone());
        let slot = vault.make("extract");
        let created = clock.run(webhooks.create(&new_webhook(), SECOND)).unwrap().unwrap();
        let old = created.webhook.id;
        let secret = created.secret.with_webhook_id(old.as_str()).unwrap();
        vault.type_in(&slot, &secret.to_stored());
        let (ledger, random) = (MemoryLedger::new(), SeededRandom::new(3));
        webhooks.clear_calls();
        Self { clock, vault, webhooks, ledger, random, limits: Limits::default(), slot, old }
    }

    pub(super) fn ports(&self) -> RotatePorts<'_> {
        RotatePorts {
            vault: &self.vault,
            webhooks: &self.webhooks,
            control: &self.ledger,
            clock: &*self.clock,
            random: &self.random,
            limits: &self.limits,
        }
    }

    pub(super) fn rotation(&self, name: &str, strategy: Strategy) -> Rotation {
        let (slot, version) = (self.slot.clone(), version(name));
        Rotation { slot, version, strategy, staging: Staging::ByStore }
    }

    pub(super) fn deadline(&self) -> Timestamp {
        after(self.clock.now(), Duration::from_mins(2))
    }

    pub(super) fn step(&self, rotation: &Rotation, step: Step) -> Result<Done, RotateError> {
        let deadline = self.deadline();
        self.clock.run(rotate(self.ports(), rotation, step, deadline)).unwrap()
    }

    /// All steps, after the store has labelled the version.
    pub(super) fn steps(&self, rotation: &Rotation) -> Vec<Done> {
        self.vault.announce(&self.slot, &rotation.version);
        Step::ALL.map(|step| self.step(rotation, step).unwrap()).into()
    }

    pub(super) fn read(&self) -> Slot {
        self.clock.run(self.vault.read(&self.slot)).unwrap().unwrap()
    }

    /// The webhooks that the slot's versions name: current, pending, previous.
    pub(super) fn named(&self) -> [Option<String>; 3] {
        let slot = self.read();
        [slot.current, slot.pending, slot.previous].map(|version| {
            version?.secret().and_then(|secret| secret.webhook_id().map(str::to_owned))
        })
    }

    pub(super) fn webhook(&self, id: &str) -> Option<Webhook> {
        self.webhooks.webhooks().into_iter().find(|webhook| webhook.id.as_str() == id)
    }

    pub(super) fn change(&self, id: &WebhookId, change: &WebhookChange) {
        self.clock.run(self.webhooks.update(id, change, SECOND)).unwrap().unwrap();
    }

    pub(super) fn pass(&self, duration: Duration) {
        self.clock.run(self.clock.sleep(duration)).unwrap();
    }

    /// The webhooks that are active and sign with a secret that is not in force, which must be none.
    pub(super) fn unverifiable(&self) -> Vec<String> {
        let loaded = self.clock.run(self.vault.load()).unwrap().unwrap();
        let in_force = |webhook: &&Webhook| {
            let signing = self.webhooks.secret(&webhook.id).unwrap();
            loaded.secrets.iter().any(|secret| secret.same_text(&signing))
        };
        let webhooks = self.webhooks.webhooks();
        let active = webhooks.iter().filter(|webhook| webhook.is_active);
        active.filter(|it| !in_force(it)).map(|it| it.id.as_str().to_owned()).collect()
    }
}
