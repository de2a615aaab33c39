use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use domain::announce::AnnouncePorts;
use domain::envelope::EventType;
use domain::limits::Limits;
use domain::ports::{
    Clock, Ledger, NewWebhook, SecretSource, SlotId, Vault, VersionId, Webhook, Webhooks,
};
use domain::retire::{RetirePorts, rows, work_off};
use domain::rotate::{
    Done, Others, RotatePorts, Rotation, Staging, Step, Strategy, rotate, rotate_whole,
};
use domain::signature::secret::Secret;
use domain::testing::{
    ManualClock, MemoryLedger, MemoryQueue, MemoryVault, MemoryWebhooks, SeededRandom,
};
use domain::time::after;

use super::super::process::{Brief, Ended, Process};
use crate::faulty::{FaultPlan, FaultyLedger, FaultyVault, FaultyWebhooks};

const MINUTE: Duration = Duration::from_mins(1);
/// What a function is given for one step.
const STEP: Duration = Duration::from_mins(2);
/// Tries of one step before something is called endless.
const TRIES_MAX: u32 = 12;
/// Ticks after which nothing may be left of a rotation.
const TICKS_MAX: u32 = 12;
const TICK: Duration = Duration::from_mins(5);

/// Labels a version as pending that has no value yet.
type Stage = Box<dyn Fn(&SlotId, &VersionId)>;

/// A vault that is tried, with the secret of one webhook, and the rest of the world in memory.
pub struct RotationWorld {
    clock: Arc<ManualClock>,
    vault: Arc<dyn Vault>,
    source: Arc<dyn SecretSource>,
    slot: SlotId,
    stage: Option<Stage>,
    webhooks: Arc<MemoryWebhooks>,
    ledger: Arc<dyn Ledger>,
    queue: MemoryQueue,
    random: SeededRandom,
    limits: Limits,
    kept: Vec<Box<dyn Any>>,
}

pub(super) fn version(name: &str) -> VersionId {
    VersionId::parse(&format!("{name:-<32}")).unwrap()
}

impl RotationWorld {
    /// A world whose webhook has its secret in a slot that `lay` makes; `source` is how a receiver
    /// reads it.
    pub async fn new(
        clock: Arc<ManualClock>,
        vault: Arc<dyn Vault>,
        source: Arc<dyn SecretSource>,
        lay: impl FnOnce(&Secret) -> SlotId,
    ) -> Self {
        let webhooks = Arc::new(MemoryWebhooks::new(clock.clone()));
        let new = NewWebhook {
            url: "https://example.org/webhook".to_owned(),
            event_type: EventType::ExtractCompleted,
            description: Some("gleaner".to_owned()),
        };
        let created = webhooks.create(&new, MINUTE).await.unwrap();
        let secret = created.secret.with_webhook_id(created.webhook.id.as_str()).unwrap();
        Self {
            slot: lay(&secret),
            vault,
            source,
            stage: None,
            webhooks,
            ledger: Arc::new(MemoryLedger::new()),
            queue: MemoryQueue::new(clock.clone()),
            random: SeededRandom::new(11),
            limits: Limits::default(),
            kept: Vec::new(),
            clock,
        }
    }

    /// A world whose vault is in memory.
    pub async fn in_memory(clock: Arc<ManualClock>) -> Self {
        let vault = Arc::new(MemoryVault::new(clock.clone()));
        let (laid, staged) = (vault.clone(), vault.clone());
        let world = Self::new(clock, vault.clone(), vault, |secret| {
            let slot = laid.make("extract");
            laid.type_in(&slot, &secret.to_stored());
            slot
        });
        world.await.staging(move |slot, version| staged.announce(slot, version))
    }

    /// With a store that labels a version before the first step.
    #[must_use]
    pub fn staging(mut self, stage: impl Fn(&SlotId, &VersionId) + 'static) -> Self {
        self.stage = Some(Box::new(stage));
        self
    }

    /// With this ledger, which is empty.
    #[must_use]
    pub fn on(self, ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, ..self }
    }

    /// Keeps something, such as a temporary folder, as long as the world stands.
    #[must_use]
    pub fn keeping(mut self, keep: impl Any) -> Self {
        self.kept.push(Box::new(keep));
        self
    }

    fn rotation(&self, name: &str, strategy: Strategy) -> Rotation {
        let staging = if self.stage.is_some() { Staging::ByStore } else { Staging::ByUs };
        Rotation { slot: self.slot.clone(), version: version(name), strategy, staging }
    }

    /// Begins a rotation, where the store does.
    pub(super) async fn stage(&self, version: &VersionId) {
        let slot = self.vault.read(&self.slot).await.unwrap();
        let is_there = slot.versions().any(|there| there.id == *version);
        if let Some(stage) = self.stage.as_ref().filter(|_| !is_there) {
            stage(&self.slot, version);
        }
    }

    /// One process takes one step; `None` if it was killed or did not come to its end.
    pub(super) async fn step(
        &self,
        name: &str,
        strategy: Strategy,
        step: Step,
        plan: &Arc<FaultPlan>,
    ) -> Option<Done> {
        match self.process(name, strategy, step, plan).await {
            Ended::With(done) => done,
            Ended::Killed => None,
        }
    }

    async fn process(
        &self,
        name: &str,
        strategy: Strategy,
        step: Step,
        plan: &Arc<FaultPlan>,
    ) -> Ended<Option<Done>> {
        let process = Process::new(plan, &self.clock);
        let vault = FaultyVault::new(self.vault.clone(), process.surroundings());
        let webhooks = FaultyWebhooks::new(self.webhooks.clone(), process.surroundings());
        let ledger = FaultyLedger::new(self.ledger.clone(), process.surroundings());
        let clock = Brief(self.clock.clone());
        let ports = RotatePorts {
            vault: &vault,
            webhooks: &webhooks,
            control: &ledger,
            clock: &clock,
            random: &self.random,
            limits: &self.limits,
        };
        let (rotation, until) = (self.rotation(name, strategy), after(self.clock.now(), STEP));
        process.run(Box::pin(async { rotate(ports, &rotation, step, until).await.ok() })).await
    }

    /// One process takes all steps, and knows that no other is at work; whether it came to its end.
    pub(super) async fn rotate_alone(
        &self,
        name: &str,
        strategy: Strategy,
        plan: &Arc<FaultPlan>,
    ) -> bool {
        let process = Process::new(plan, &self.clock);
        let vault = FaultyVault::new(self.vault.clone(), process.surroundings());
        let webhooks = FaultyWebhooks::new(self.webhooks.clone(), process.surroundings());
        let ledger = FaultyLedger::new(self.ledger.clone(), process.surroundings());
        let clock = Brief(self.clock.clone());
        let ports = RotatePorts {
            vault: &vault,
            webhooks: &webhooks,
            control: &ledger,
            clock: &clock,
            random: &self.random,
            limits: &self.limits,
        };
        let rotation = Rotation { staging: Staging::ByUs, ..self.rotation(name, strategy) };
        let until = after(self.clock.now(), STEP);
        let whole = rotate_whole(ports, &rotation, until, Others::Excluded, |_, _| {});
        process.run(Box::pin(async { whole.await.is_ok() })).await == Ended::With(true)
    }

    /// The rotation that is gone on with: the one that is pending, else a new one.
    pub(super) async fn name_after<'a>(&self, killed: &'a str, next: &'a str) -> &'a str {
        let slot = self.vault.read(&self.slot).await.unwrap();
        if slot.pending.is_some_and(|pending| pending.id == version(killed)) {
            killed
        } else {
            next
        }
    }

    /// Each webhook is the one in force, or one that is leaving and says so in the ledger.
    pub(super) async fn assert_no_orphan(&self, told: &str) {
        let leaving = rows::list(&*self.ledger).await.unwrap();
        let slot = self.vault.read(&self.slot).await.unwrap();
        let current = slot.current.unwrap();
        let current = current.secret().unwrap().webhook_id();
        for webhook in self.webhooks.webhooks() {
            let is_leaving = leaving.iter().any(|row| row.webhook_id == webhook.id);
            let is_current = Some(webhook.id.as_str()) == current;
            assert!(is_current || (is_leaving && !webhook.is_active), "{told}: {webhook:?}");
        }
    }

    /// Takes steps, each again and again until it is done.
    pub(super) async fn rotate(
        &self,
        name: &str,
        strategy: Strategy,
        steps: &[Step],
        plan: &Arc<FaultPlan>,
    ) {
        self.stage(&version(name)).await;
        for step in steps {
            let mut tries = 0;
            while self.step(name, strategy, *step, plan).await.is_none() {
                tries += 1;
                let calls = plan.calls();
                assert!(tries < TRIES_MAX, "{strategy}: {step} is never done: {calls:?}");
                self.assert_covered(strategy, step.as_str()).await;
                self.clock.advance(MINUTE);
            }
            self.assert_covered(strategy, step.as_str()).await;
        }
    }

    /// Takes steps until one of them is killed; whether none was.
    pub(super) async fn rotate_until_killed(
        &self,
        name: &str,
        strategy: Strategy,
        plan: &Arc<FaultPlan>,
    ) -> bool {
        self.stage(&version(name)).await;
        for step in Step::ALL {
            if self.process(name, strategy, step, plan).await == Ended::Killed {
                self.clock.advance(STEP);
                return false;
            }
        }
        true
    }

    /// An operator gives a rotation up.
    pub(super) async fn give_up(&self, name: &str) {
        self.vault.give_up(&self.slot, &version(name)).await.unwrap();
    }

    /// Whether a receiver accepts what a webhook signs.
    async fn is_accepted(&self, webhook: &Webhook) -> bool {
        let secrets = self.source.load().await.unwrap().secrets;
        let signing = self.webhooks.secret(&webhook.id).unwrap();
        secrets.iter().any(|secret| secret.same_text(&signing))
    }

    /// With a second webhook, there is at each instant one that delivers and is believed.
    pub(super) async fn assert_covered(&self, strategy: Strategy, when: &str) {
        if strategy == Strategy::InPlace {
            return;
        }
        for webhook in self.webhooks.webhooks() {
            if webhook.is_active && self.is_accepted(&webhook).await {
                return;
            }
        }
        panic!("{when}: nothing that is delivered would be accepted");
    }

    /// Lets ticks take away what is left, and looks at what there is then.
    pub(super) async fn end(&self, name: &str, strategy: Strategy, told: &str) {
        for _ in 0..TICKS_MAX {
            self.clock.advance(TICK);
            let retired = work_off(self.retiring(), MINUTE).await.unwrap();
            assert!(retired.troubles.is_empty(), "{told}: {retired:?}");
            assert!(retired.blocked.is_empty(), "{told}: {retired:?}");
            self.assert_covered(strategy, told).await;
        }
        assert_eq!(rows::list(&*self.ledger).await.unwrap(), [], "{told}");
        let slot = self.vault.read(&self.slot).await.unwrap();
        let current = slot.current.unwrap();
        assert_eq!(current.id, version(name), "{told}");
        assert!(slot.pending.is_none(), "{told}");
        let webhooks = self.webhooks.webhooks();
        let [webhook] = webhooks.as_slice() else { panic!("{told}: {webhooks:?}") };
        assert!(webhook.is_active, "{told}: {webhook:?}");
        let kept = current.secret().unwrap();
        assert_eq!(kept.webhook_id(), Some(webhook.id.as_str()), "{told}");
        let signing = self.webhooks.secret(&webhook.id).unwrap();
        assert!(kept.same_text(&signing), "{told}: what is kept is not what is signed with");
        assert_eq!(
            self.source.load().await.unwrap().secrets.len(),
            1,
            "{told}: nothing else is accepted"
        );
    }

    fn retiring(&self) -> RetirePorts<'_> {
        RetirePorts {
            announcing: AnnouncePorts {
                entries: &*self.ledger,
                queue: &self.queue,
                clock: &*self.clock,
                random: &self.random,
                limits: &self.limits,
            },
            webhooks: &*self.webhooks,
            control: &*self.ledger,
        }
    }
}
