use std::fmt;

use async_trait::async_trait;

use super::PortError;
use crate::signature::secret::{Secret, SecretError};
use crate::time::Timestamp;

/// The signing secrets as a rotation sees them: one slot per subscription, in versions, of which
/// up to three are labelled.
///
/// The rules are those of AWS Secrets Manager: a version never changes once it has a value; the
/// caller names a new version; a label is on one version at a time.
#[async_trait]
pub trait Vault: Send + Sync {
    /// Names the slots that have a current version, or may get one.
    ///
    /// # Errors
    /// Those of [`Vault::read`].
    async fn slots(&self) -> Result<Vec<SlotId>, PortError>;

    /// Reads a slot, consistently with what was written before.
    ///
    /// # Errors
    /// `Denied` where the slot is not there or may not be read; `Corrupt` where the store does not
    /// decode. A version whose value is no secret is none of these: see [`Holds::Unusable`].
    async fn read(&self, slot: &SlotId) -> Result<Slot, PortError>;

    /// Gives a version its value and the pending label, which is taken from any other version.
    ///
    /// # Contract
    /// Atomic and durable, and the secret is in force when it returns: a receiver that reads its
    /// secrets after that finds it. A second call with the same version and secret changes
    /// nothing and no label, and says [`PutPending::Kept`]; when the answer is lost, the version
    /// may have its value. The secret's stage is not looked at. Its text and webhook id come back
    /// as they were given.
    ///
    /// # Errors
    /// As [`Vault::read`]; `Invalid` where the store has no room for it.
    async fn put_pending(
        &self,
        slot: &SlotId,
        version: &VersionId,
        secret: &Secret,
    ) -> Result<PutPending, PortError>;

    /// Makes a version the current one, if the one that is there is still `over`, which becomes
    /// the previous one and is in force for
    /// [`previous_grace`](crate::limits::Limits::previous_grace) from `now` on. What was the
    /// previous one is in force no longer. The pending label may stay on the version.
    ///
    /// # Contract
    /// Atomic and durable. A second identical call finds the version current, changes nothing and
    /// says [`Promoted::Done`]; when the answer is lost, it may be current. The version has a
    /// value: to promote one without is the caller's mistake.
    ///
    /// # Errors
    /// As [`Vault::read`].
    async fn promote(
        &self,
        slot: &SlotId,
        version: &VersionId,
        over: &VersionId,
        now: Timestamp,
    ) -> Result<Promoted, PortError>;

    /// Takes the pending label from a version, whose secret is then in force no longer. A second
    /// call, or one for a version without the label, changes nothing.
    ///
    /// # Contract
    /// Atomic and durable. When the answer is lost, the label may be gone.
    ///
    /// # Errors
    /// As [`Vault::read`].
    async fn give_up(&self, slot: &SlotId, version: &VersionId) -> Result<(), PortError>;
}

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutPending {
    /// The version holds it, from now on or from an earlier call.
    Kept,
    /// The version holds another value, which is left as it is.
    Taken,
}

/// What became of a promotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promoted {
    /// The version is the current one.
    Done,
    /// Another version is the current one than was expected; nothing is changed.
    Conflict,
}

/// A slot as it was read.
#[derive(Debug, Clone)]
pub struct Slot {
    /// Its name.
    pub id: SlotId,
    /// Whether the store lets it be rotated by a function; `true` where stores know no such switch.
    pub is_rotated: bool,
    /// The version by which deliveries are signed.
    pub current: Option<Version>,
    /// The version by which they will be signed; never the current one.
    pub pending: Option<Version>,
    /// The version by which they were signed; never one of the others. It may be out of force.
    pub previous: Option<Version>,
}

impl Slot {
    /// A slot whose labels are as they were found: a pending label that was left on the current
    /// version says nothing.
    #[must_use]
    pub fn of(id: SlotId, is_rotated: bool, versions: [Option<Version>; 3]) -> Self {
        let [current, pending, previous] = versions;
        let named = |version: &Option<Version>| version.as_ref().map(|version| version.id.clone());
        let (now, next) = (named(&current), named(&pending));
        let pending = pending.filter(|version| Some(&version.id) != now.as_ref());
        let previous =
            previous.filter(|version| ![now, next].iter().flatten().any(|id| *id == version.id));
        Self { id, is_rotated, current, pending, previous }
    }

    /// The labelled versions.
    pub fn versions(&self) -> impl Iterator<Item = &Version> {
        [&self.current, &self.pending, &self.previous].into_iter().flatten()
    }
}

/// A version of a slot.
#[derive(Debug, Clone)]
pub struct Version {
    /// Its name.
    pub id: VersionId,
    /// What it holds.
    pub holds: Holds,
}

/// What a version holds.
#[derive(Debug, Clone)]
pub enum Holds {
    /// No value yet: a label that went ahead of it.
    Nothing,
    /// A value that is no secret.
    Unusable(SecretError),
    /// A secret.
    Secret(Secret),
}

impl Version {
    /// The secret, if it holds one.
    pub fn secret(&self) -> Option<&Secret> {
        match &self.holds {
            Holds::Secret(secret) => Some(secret),
            Holds::Nothing | Holds::Unusable(_) => None,
        }
    }
}

/// A slot's name: of a secret of AWS Secrets Manager its name or ARN.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotId(String);

/// A version's name. One name means one value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionId(String);

/// Why a text names no slot or version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No slot.
    #[error("a secret is named by 1 to 2048 printable ASCII characters without spaces")]
    Slot,
    /// No version.
    #[error("a version of a secret is named by 32 to 64 printable ASCII characters without spaces")]
    Version,
}

impl SlotId {
    /// Checks a name. Bound: AWS Secrets Manager, `SecretId`.
    ///
    /// # Errors
    /// [`NameError::Slot`].
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let is_name = (1..=2_048).contains(&text.len()) && is_graphic(text);
        is_name.then(|| Self(text.to_owned())).ok_or(NameError::Slot)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl VersionId {
    /// Checks a name. Bound: AWS Secrets Manager, `ClientRequestToken`.
    ///
    /// # Errors
    /// [`NameError::Version`].
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let is_name = (32..=64).contains(&text.len()) && is_graphic(text);
        is_name.then(|| Self(text.to_owned())).ok_or(NameError::Version)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_graphic(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl fmt::Display for SlotId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
