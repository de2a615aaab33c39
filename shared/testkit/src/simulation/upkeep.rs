//! What the simulation does to webhooks and their secrets: rotations, retirements, subscriptions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::envelope::EventType;
use domain::job::Kind;
use domain::ports::{
    ApiError, Clock as _, NewWebhook, PortError, SlotId, Vault as _, VersionId, WebhookChange,
    Webhooks as _,
};
use domain::retire::{RetirePorts, Retired, rows, work_off};
use domain::rotate::{
    Others, RotateError, RotatePorts, Rotation, Staging, Step, Strategy, rotate, rotate_whole,
};
use domain::signature::secret::Stage;
use domain::subscribe::Account;
use domain::subscribe::ensure::{Kept, Need, Wish, plan};
use domain::testing::{EventClock, MemoryVault};
use domain::tick::{Part, Rules, Term, TickPorts, TickReport, tick};
use domain::time::after;

use super::process::Process;
use super::promises::Broken;
use super::witness::Witness;
use super::world::World;

/// Where all deliveries go.
pub(super) const URL: &str = "https://gleaner.example/webhook";
/// What a function is given for one step, a person's whole rotation takes at most, and a tick.
const STEP: Duration = Duration::from_mins(2);
const WHOLE: Duration = Duration::from_mins(8);
const TICK: Duration = Duration::from_mins(4);
/// Tries of a call in a subscription's check.
const TRIES: u32 = 4;

/// The rotations that have begun.
#[derive(Default)]
pub(super) struct Rotations(Mutex<State>);

#[derive(Default)]
struct State {
    /// By the store: which step comes next.
    begun: BTreeMap<Kind, Begun>,
    /// By a person, who has not seen their end.
    cut_short: BTreeSet<Kind>,
}

#[derive(Debug, Clone)]
struct Begun {
    rotation: Rotation,
    steps: usize,
}

/// Where the secret of a kind's webhook is.
fn slot(kind: Kind) -> SlotId {
    SlotId::parse(kind.as_str()).expect("a slot's name")
}

/// Registers a webhook for each kind and keeps its secret.
pub(super) fn subscribe(clock: &EventClock, witness: &Witness, vault: &MemoryVault) {
    for kind in Kind::ALL {
        let new = NewWebhook {
            url: URL.to_owned(),
            event_type: EventType::completed(kind),
            description: Some("gleaner".to_owned()),
        };
        let created = clock.run(witness.create(&new, STEP)).expect("the platform answers");
        let created = created.expect("a webhook");
        let secret = created.secret.with_webhook_id(created.webhook.id.as_str()).expect("an id");
        vault.type_in(&vault.make(kind.as_str()), &secret.to_stored());
    }
}

impl Rotations {
    /// The kinds whose rotation has not ended.
    pub(super) fn under_way(&self) -> Vec<Kind> {
        self.state().begun.keys().copied().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process<'_> {
    fn rotating(&self) -> RotatePorts<'_> {
        let ports = self.host.ports(self.world);
        RotatePorts {
            vault: &self.host.vault,
            webhooks: &self.host.webhooks,
            control: ports.ledger,
            clock: ports.clock,
            random: ports.random,
            limits: ports.limits,
        }
    }

    fn version(&self) -> VersionId {
        VersionId::parse(&format!("{:032}", self.host.number)).expect("a version's name")
    }

    /// The store begins a rotation, if none is under way.
    pub(super) async fn begin_rotation(&self, kind: Kind, strategy: Strategy) -> bool {
        let slot = slot(kind);
        let pending = self.world.vault.read(&slot).await.expect("a slot is read").pending;
        let mut state = self.world.rotations.state();
        if state.begun.contains_key(&kind) {
            return false;
        }
        // What a person did not bring to its end is taken over.
        let version = pending.map_or_else(
            || {
                let version = self.version();
                self.world.vault.announce(&slot, &version);
                version
            },
            |pending| pending.id,
        );
        let rotation = Rotation { slot, version, strategy, staging: Staging::ByStore };
        state.begun.insert(kind, Begun { rotation, steps: 0 });
        true
    }

    /// The store invokes the next step, or the last one once more.
    pub(super) async fn rotation_step(&self, kind: Kind, again: bool) -> Option<String> {
        let begun = self.world.rotations.state().begun.get(&kind).cloned()?;
        let at = if again { begun.steps.saturating_sub(1) } else { begun.steps };
        let step = *Step::ALL.get(at)?;
        let deadline = after(self.world.clock.now(), STEP);
        let taken = rotate(self.rotating(), &begun.rotation, step, deadline).await;
        let slot = self.world.vault.read(&begun.rotation.slot).await.expect("a slot is read");
        let labelled = [slot.pending, slot.current].into_iter().flatten();
        let is_alive = labelled.map(|it| it.id).any(|id| id == begun.rotation.version);
        let mut state = self.world.rotations.state();
        let now = state.begun.get_mut(&kind).filter(|now| now.rotation == begun.rotation)?;
        match &taken {
            Ok(_) if at + 1 == Step::ALL.len() => drop(state.begun.remove(&kind)),
            Ok(_) => now.steps = now.steps.max(at + 1),
            // The store begins the rotation again, with the same version, unless it was given up.
            Err(_) if is_alive => now.steps = 0,
            Err(_) => drop(state.begun.remove(&kind)),
        }
        Some(format!("{step}: {}", told(&taken)))
    }

    /// A person rotates, and takes over what is pending.
    pub(super) async fn rotate_whole(&self, kind: Kind, strategy: Strategy) -> String {
        let slot = slot(kind);
        let pending = match self.rotating().vault.read(&slot).await {
            Ok(slot) => slot.pending,
            Err(error) => return error.to_string(),
        };
        let version = pending.map_or_else(|| self.version(), |pending| pending.id);
        let rotation = Rotation { slot, version, strategy, staging: Staging::ByUs };
        let deadline = after(self.world.clock.now(), WHOLE);
        self.world.rotations.state().cut_short.insert(kind);
        let taken =
            rotate_whole(self.rotating(), &rotation, deadline, Others::Possible, |_, _| {}).await;
        if taken.is_ok() {
            self.world.rotations.state().cut_short.remove(&kind);
        }
        told(&taken)
    }

    pub(super) async fn retire(&self) -> Result<Retired, PortError> {
        let ports = self.host.ports(self.world);
        let announcing = ports.announcing();
        let control = ports.ledger;
        let ports = RetirePorts { announcing, webhooks: &self.host.webhooks, control };
        work_off(ports, STEP).await
    }

    pub(super) async fn tick(&self) -> Result<TickReport, PortError> {
        let steps = self.host.ports(self.world);
        let until = after(self.world.clock.now(), TICK);
        let term = Term { until, claimed_until: Some(until) };
        let ports = TickPorts { steps, webhooks: &self.host.webhooks };
        tick(ports, &Rules::default(), &mut Part::default(), term).await
    }

    /// As `gleaner webhooks ensure` does for webhooks that are there.
    pub(super) async fn ensure(&self) -> Result<u32, ApiError> {
        let ports = self.host.ports(self.world);
        let account = Account {
            webhooks: &self.host.webhooks,
            clock: ports.clock,
            random: ports.random,
            within: ports.limits.call_timeout,
            tries: TRIES,
        };
        let mut kept = Kept::default();
        for kind in Kind::ALL {
            let Ok(slot) = self.rotating().vault.read(&slot(kind)).await else { return Ok(0) };
            for secret in slot.versions().filter_map(|version| version.secret()) {
                let is_current = secret.stage() == Stage::Current;
                let ids = if is_current { &mut kept.current } else { &mut kept.others };
                ids.extend(secret.webhook_id().map(str::to_owned));
            }
        }
        let present = account.list().await?.webhooks;
        let mut changed = 0;
        for (_, need) in plan(Wish { url: URL, kinds: &Kind::ALL }, &present, &kept).needs {
            let Need::Change(webhook, change) = need else { continue };
            let within = account.within;
            account.patiently(|| account.webhooks.update(&webhook.id, &change, within)).await?;
            changed += 1;
        }
        Ok(changed)
    }

    /// Somebody switches a webhook off that is not the last of its kind.
    pub(super) async fn meddle(&self, kind: Kind) -> bool {
        let Some(id) = self.world.witness.spare(kind).await else { return false };
        let off = WebhookChange { is_active: Some(false), ..WebhookChange::default() };
        self.world.platform.update(&id, &off, STEP).await.is_ok()
    }
}

/// The end of a step, without what only chance decides about.
fn told(taken: &Result<impl Debug, RotateError>) -> String {
    match taken {
        Ok(done) => format!("{done:?}"),
        Err(error) => error.to_string(),
    }
}

impl World {
    /// The kinds whose rotation has not come to its end, whoever began it.
    pub(super) fn unfinished_rotations(&self) -> Vec<Kind> {
        let begun = self.rotations.under_way();
        let is_pending = |kind: &Kind| {
            let slot = self.clock.run(self.vault.read(&slot(*kind)));
            slot.and_then(Result::ok).is_some_and(|slot| slot.pending.is_some())
        };
        Kind::ALL.into_iter().filter(|kind| begun.contains(kind) || is_pending(kind)).collect()
    }

    /// The kinds whose last rotation by a person was cut short, which that person repeats.
    pub(super) fn cut_short(&self) -> Vec<Kind> {
        let unfinished = self.unfinished_rotations();
        let cut = self.rotations.state().cut_short.clone();
        cut.into_iter().filter(|kind| !unfinished.contains(kind)).collect()
    }

    /// Whether a rotation or a retirement has not come to its end.
    pub(super) fn is_in_rotation(&self) -> bool {
        let retirements = self.clock.run(rows::list(&*self.ledger));
        let is_retiring = retirements.and_then(Result::ok).is_some_and(|rows| !rows.is_empty());
        let is_rotating = !self.unfinished_rotations().is_empty() || !self.cut_short().is_empty();
        is_retiring || is_rotating
    }

    /// Rotations and retirements that have not come to their end, in words.
    pub(super) fn open_upkeep(&self) -> Vec<String> {
        let rows = self.clock.run(rows::list(&*self.ledger)).and_then(Result::ok);
        let rotations =
            self.unfinished_rotations().into_iter().map(|kind| format!("{kind} rotates"));
        rotations.chain(rows.unwrap_or_default().iter().map(|row| format!("{row:?}"))).collect()
    }

    /// What is not as it must be when no rotation is under way.
    pub(super) fn unsettled(&self) -> Option<Broken> {
        self.clock.run(self.witness.unsettled()).flatten()
    }
}
