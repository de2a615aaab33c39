//! The slots of the secrets file, for rotations.
//!
//! A subscription keeps its slot when it gets another webhook: the slot is named after its first
//! one. A version is an entry; what has lost its label is not kept.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::ports::{
    ErrorKind, Holds, PortError, Promoted, PutPending, Slot, SlotId, Vault, Version, VersionId,
};
use domain::signature::secret::{Secret, Stage};
use domain::time::{Timestamp, after};
use tokio::sync::Mutex;

use super::file::{SecretsFile, SecretsFileError, StoredSecret};

/// The port's name in errors.
const VAULT: &str = "vault";
/// What the name of a version begins with that no rotation made.
const UNROTATED: &str = "current-secret-of-webhook:";

/// A secrets file as a vault. Changes are one at a time; while another process makes one, the error
/// is transient.
#[derive(Debug, Clone)]
pub struct FileVault {
    file: SecretsFile,
    // The file's own lock refuses and does not wait.
    turn: Arc<Mutex<()>>,
    previous_grace: Duration,
}

/// Why a slot is not changed.
#[derive(Debug, thiserror::Error)]
#[error("the secrets file holds no current secret of the subscription {0}")]
struct NoSlot(SlotId);

impl FileVault {
    /// The slots of a file, which need not exist; what is replaced is accepted for `previous_grace`.
    pub fn new(file: SecretsFile, previous_grace: Duration) -> Self {
        Self { file, turn: Arc::default(), previous_grace }
    }

    /// Does something with the file, away from the threads that must not wait for a disk.
    async fn with_file<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&SecretsFile) -> Result<T, SecretsFileError> + Send + 'static,
    ) -> Result<T, PortError> {
        let _turn = self.turn.lock().await;
        let file = self.file.clone();
        match tokio::task::spawn_blocking(move || work(&file)).await {
            Ok(done) => done.map_err(|error| failed(operation, error.kind(), error)),
            Err(error) => Err(failed(operation, ErrorKind::Unavailable, error)),
        }
    }

    /// Changes a slot that has a current version.
    async fn change<T: Send + 'static>(
        &self,
        operation: &'static str,
        slot: &SlotId,
        change: impl FnOnce(&mut Vec<StoredSecret>, &SlotId, StoredSecret) -> T + Send + 'static,
    ) -> Result<T, PortError> {
        let own = slot.clone();
        let changed = self.with_file(operation, move |file| {
            file.change(|secrets| {
                let current = find(secrets, &own, Stage::Current).cloned();
                Ok(current.map(|current| change(secrets, &own, current)))
            })
        });
        changed.await?.ok_or_else(|| absent(operation, slot))
    }
}

fn failed(
    operation: &'static str,
    kind: ErrorKind,
    source: impl Error + Send + Sync + 'static,
) -> PortError {
    PortError::new(VAULT, operation, kind).with_source(source)
}

fn absent(operation: &'static str, slot: &SlotId) -> PortError {
    failed(operation, ErrorKind::Denied, NoSlot(slot.clone()))
}

/// The slot that a secret belongs to; none for one that names no webhook.
fn slot_of(stored: &StoredSecret) -> Option<SlotId> {
    let name = stored.slot.as_deref().or(stored.secret.webhook_id())?;
    SlotId::parse(name).ok()
}

fn is_of(stored: &StoredSecret, slot: &SlotId, stage: Stage) -> bool {
    stored.secret.stage() == stage && slot_of(stored).as_ref() == Some(slot)
}

fn find<'a>(secrets: &'a [StoredSecret], slot: &SlotId, stage: Stage) -> Option<&'a StoredSecret> {
    secrets.iter().find(|stored| is_of(stored, slot, stage))
}

/// The name of a secret's version. One that no rotation made is named after its webhook, which has
/// but one such secret.
fn version_of(stored: &StoredSecret) -> Option<VersionId> {
    if let Some(version) = &stored.version {
        return VersionId::parse(version).ok();
    }
    let webhook = stored.secret.webhook_id()?.replace(' ', "_");
    let name = format!("{UNROTATED:-<32}{webhook}");
    // The end of a long id tells more than its beginning.
    VersionId::parse(name.get(name.len().saturating_sub(64)..)?).ok()
}

fn version(stored: &StoredSecret) -> Option<Version> {
    let id = version_of(stored)?;
    Some(Version { id, holds: Holds::Secret(stored.secret.clone()) })
}

#[async_trait]
impl Vault for FileVault {
    async fn slots(&self) -> Result<Vec<SlotId>, PortError> {
        let secrets = self.with_file("slots", SecretsFile::list).await?;
        let current = secrets.iter().filter(|stored| stored.secret.stage() == Stage::Current);
        let mut slots: Vec<SlotId> = current.filter_map(slot_of).collect();
        slots.sort();
        slots.dedup();
        Ok(slots)
    }

    async fn read(&self, slot: &SlotId) -> Result<Slot, PortError> {
        let secrets = self.with_file("read", SecretsFile::list).await?;
        let stages = [Stage::Current, Stage::Pending, Stage::Previous];
        let versions = stages.map(|stage| find(&secrets, slot, stage).and_then(version));
        let [current, ..] = &versions;
        if current.is_none() {
            return Err(absent("read", slot));
        }
        Ok(Slot::of(slot.clone(), true, versions))
    }

    async fn put_pending(
        &self,
        slot: &SlotId,
        version: &VersionId,
        secret: &Secret,
    ) -> Result<PutPending, PortError> {
        let (version, secret) = (version.clone(), secret.clone().with_stage(Stage::Pending));
        self.change("put_pending", slot, move |secrets, slot, current| {
            let of_slot = |stored: &&StoredSecret| slot_of(stored).as_ref() == Some(slot);
            let mut own = secrets.iter().filter(of_slot);
            if let Some(there) = own.find(|stored| version_of(stored).as_ref() == Some(&version)) {
                let is_same = there.secret.same_text(&secret)
                    && there.secret.webhook_id() == secret.webhook_id();
                return if is_same { PutPending::Kept } else { PutPending::Taken };
            }
            secrets.retain(|stored| !is_of(stored, slot, Stage::Pending));
            secrets.push(StoredSecret {
                url: current.url,
                event_type: current.event_type,
                slot: Some(slot.as_str().to_owned()),
                version: Some(version.as_str().to_owned()),
                ..StoredSecret::new(secret)
            });
            PutPending::Kept
        })
        .await
    }

    async fn promote(
        &self,
        slot: &SlotId,
        version: &VersionId,
        over: &VersionId,
        now: Timestamp,
    ) -> Result<Promoted, PortError> {
        let (version, over) = (version.clone(), over.clone());
        let until = after(now, self.previous_grace);
        self.change("promote", slot, move |secrets, slot, current| {
            let name = |stored: &StoredSecret| version_of(stored);
            if name(&current).as_ref() == Some(&version) {
                return Promoted::Done;
            }
            let pending = find(secrets, slot, Stage::Pending);
            let pending = pending.filter(|stored| name(stored).as_ref() == Some(&version));
            let Some(pending) = pending.cloned().filter(|_| name(&current) == Some(over)) else {
                return Promoted::Conflict;
            };
            // What is out of force is of no use to anybody.
            secrets.retain(|stored| slot_of(stored).as_ref() != Some(slot) && stored.is_valid(now));
            let promoted = pending.secret.clone().with_stage(Stage::Current);
            secrets.push(StoredSecret { secret: promoted, ..pending });
            let replaced = name(&current).map(|version| version.as_str().to_owned());
            secrets.push(StoredSecret {
                secret: current.secret.clone().with_stage(Stage::Previous),
                until: Some(until),
                slot: Some(slot.as_str().to_owned()),
                version: replaced,
                ..current
            });
            Promoted::Done
        })
        .await
    }

    async fn give_up(&self, slot: &SlotId, version: &VersionId) -> Result<(), PortError> {
        let version = version.clone();
        self.change("give_up", slot, move |secrets, slot, _current| {
            secrets.retain(|stored| {
                !is_of(stored, slot, Stage::Pending)
                    || version_of(stored).as_ref() != Some(&version)
            });
        })
        .await
    }
}
