use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::lock;
use crate::limits::Limits;
use crate::ports::{
    Clock, ErrorKind, Holds, LoadedSecrets, PortError, Promoted, PutPending, SecretSource, Slot,
    SlotId, Vault, Version, VersionId,
};
use crate::signature::secret::{Secret, Stage};
use crate::time::{Timestamp, between};

/// Slots of signing secrets in memory, with the rules of AWS Secrets Manager: a version keeps its
/// value, and the pending label stays where a promotion left it. It is a source of secrets, too.
pub struct MemoryVault {
    clock: Arc<dyn Clock>,
    slots: Mutex<BTreeMap<SlotId, Kept>>,
}

#[derive(Default)]
struct Kept {
    /// Values in stored form; `None` for a version that has none yet.
    versions: BTreeMap<VersionId, Option<String>>,
    labels: BTreeMap<Stage, VersionId>,
    promoted_at: Option<Timestamp>,
}

impl Kept {
    fn version(&self, stage: Stage) -> Option<Version> {
        let id = self.labels.get(&stage)?;
        let holds = match self.versions.get(id)? {
            None => Holds::Nothing,
            Some(text) => match Secret::parse_stored(text) {
                Ok(secret) => Holds::Secret(secret.with_stage(stage)),
                Err(error) => Holds::Unusable(error),
            },
        };
        Some(Version { id: id.clone(), holds })
    }

    fn slot(&self, id: &SlotId) -> Slot {
        let stages = [Stage::Current, Stage::Pending, Stage::Previous];
        Slot::of(id.clone(), true, stages.map(|stage| self.version(stage)))
    }

    fn make_current(&mut self, version: &VersionId, at: Timestamp) {
        if let Some(loser) = self.labels.insert(Stage::Current, version.clone()) {
            self.labels.insert(Stage::Previous, loser);
        }
        self.promoted_at = Some(at);
    }
}

impl MemoryVault {
    /// A vault without slots.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, slots: Mutex::default() }
    }

    /// Makes a slot without a value, as a stack does.
    ///
    /// # Panics
    /// When the name is none.
    pub fn make(&self, slot: &str) -> SlotId {
        #[expect(clippy::expect_used, reason = "a test names its slots")]
        let id = SlotId::parse(slot).expect("a slot's name");
        lock(&self.slots).entry(id.clone()).or_default();
        id
    }

    /// Puts a stored form as a new current version, as a person does; gives the version's name.
    ///
    /// # Panics
    /// When there is no such slot.
    #[expect(clippy::expect_used, reason = "a test makes its slots first")]
    pub fn type_in(&self, slot: &SlotId, text: &str) -> VersionId {
        let now = self.clock.now();
        let mut slots = lock(&self.slots);
        let kept = slots.get_mut(slot).expect("the slot is there");
        let id = VersionId::parse(&format!("typed-{:032}", kept.versions.len())).expect("a name");
        kept.versions.insert(id.clone(), Some(text.to_owned()));
        kept.make_current(&id, now);
        id
    }

    /// Labels a version as pending that has no value yet, as the beginning of a rotation does.
    ///
    /// # Panics
    /// When there is no such slot.
    #[expect(clippy::expect_used, reason = "a test makes its slots first")]
    pub fn announce(&self, slot: &SlotId, version: &VersionId) {
        let mut slots = lock(&self.slots);
        let kept = slots.get_mut(slot).expect("the slot is there");
        kept.versions.entry(version.clone()).or_default();
        kept.labels.insert(Stage::Pending, version.clone());
    }
}

fn absent(operation: &'static str) -> PortError {
    PortError::new("vault", operation, ErrorKind::Denied).with_source("no such slot")
}

#[async_trait]
impl Vault for MemoryVault {
    async fn slots(&self) -> Result<Vec<SlotId>, PortError> {
        Ok(lock(&self.slots).keys().cloned().collect())
    }

    async fn read(&self, slot: &SlotId) -> Result<Slot, PortError> {
        let slots = lock(&self.slots);
        slots.get(slot).map(|kept| kept.slot(slot)).ok_or_else(|| absent("read"))
    }

    async fn put_pending(
        &self,
        slot: &SlotId,
        version: &VersionId,
        secret: &Secret,
    ) -> Result<PutPending, PortError> {
        let mut slots = lock(&self.slots);
        let kept = slots.get_mut(slot).ok_or_else(|| absent("put_pending"))?;
        let text = secret.to_stored();
        match kept.versions.get(version) {
            Some(Some(there)) if *there == text => return Ok(PutPending::Kept),
            Some(Some(_)) => return Ok(PutPending::Taken),
            Some(None) | None => {}
        }
        kept.versions.insert(version.clone(), Some(text));
        kept.labels.insert(Stage::Pending, version.clone());
        Ok(PutPending::Kept)
    }

    async fn promote(
        &self,
        slot: &SlotId,
        version: &VersionId,
        over: &VersionId,
        now: Timestamp,
    ) -> Result<Promoted, PortError> {
        let mut slots = lock(&self.slots);
        let kept = slots.get_mut(slot).ok_or_else(|| absent("promote"))?;
        let current = kept.labels.get(&Stage::Current);
        if current == Some(version) {
            return Ok(Promoted::Done);
        }
        if current != Some(over) || !kept.versions.contains_key(version) {
            return Ok(Promoted::Conflict);
        }
        kept.make_current(version, now);
        Ok(Promoted::Done)
    }

    async fn give_up(&self, slot: &SlotId, version: &VersionId) -> Result<(), PortError> {
        let mut slots = lock(&self.slots);
        let kept = slots.get_mut(slot).ok_or_else(|| absent("give_up"))?;
        // A label that a promotion left on the current version is none.
        let is_current = kept.labels.get(&Stage::Current) == Some(version);
        if kept.labels.get(&Stage::Pending) == Some(version) && !is_current {
            kept.labels.remove(&Stage::Pending);
        }
        Ok(())
    }
}

#[async_trait]
impl SecretSource for MemoryVault {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        let (now, grace) = (self.clock.now(), Limits::default().previous_grace);
        let mut secrets = Vec::new();
        for (id, kept) in lock(&self.slots).iter() {
            let mut slot = kept.slot(id);
            let is_grace = kept.promoted_at.is_some_and(|at| between(at, now) < grace);
            slot.previous = slot.previous.filter(|_| is_grace);
            secrets.extend(slot.versions().filter_map(Version::secret).cloned());
        }
        Ok(secrets.into())
    }
}
