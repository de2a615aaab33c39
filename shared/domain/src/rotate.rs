//! Rotating the signing secret of one subscription without losing a delivery.
//!
//! The steps are those of AWS Secrets Manager: `createSecret`, `setSecret`, `testSecret`,
//! `finishSecret`. Each may be delivered twice and may end anywhere; [`plan`] decides it from what
//! is known, and [`rotate`] and [`rotate_whole`] apply it under a claim, so that one process at a
//! time is at work on a subscription.
//!
//! With [`Strategy::Overlap`] a second webhook delivers the same events, first beside the old one
//! and then in its place; [`crate::retire`] takes the old one away. With [`Strategy::InPlace`] the
//! platform replaces the secret of the webhook, and what it signed before receivers knew the new
//! one is found in its delivery log.
//!
//! A secret that the platform shows is kept before anything else is done. Where that fails, the
//! next try gets a new one: the webhook that is left behind is an orphan, which is switched off as
//! soon as it is seen, and deleted when nobody can be about to keep its secret any more.

mod apply;
mod hold;
pub mod mark;
pub mod plan;
mod refusal;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::limits::Limits;
use crate::ports::{
    ApiError, Clock, Control, PortError, Random, SlotId, Vault, VersionId, WebhookId, Webhooks,
};

pub use apply::{rotate, rotate_whole};
pub use refusal::Refusal;

/// How long an orphan is left alone: the longest time from a webhook's registration to the end of
/// the step that registered it. Source: AWS Lambda, longest time-out.
pub const PROTECTED: Duration = Duration::from_mins(15);

/// What a rotation needs.
#[derive(Clone, Copy)]
pub struct RotatePorts<'a> {
    /// The secrets.
    pub vault: &'a dyn Vault,
    /// The platform's webhooks.
    pub webhooks: &'a dyn Webhooks,
    /// Where claims and retirements are.
    pub control: &'a dyn Control,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Chance.
    pub random: &'a dyn Random,
    /// The bounds.
    pub limits: &'a Limits,
}

/// One rotation of one subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// The subscription's slot.
    pub slot: SlotId,
    /// The version that is to be made; it names the rotation.
    pub version: VersionId,
    /// How.
    pub strategy: Strategy,
    /// Who begins it.
    pub staging: Staging,
}

/// How a secret is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// A second webhook takes the place of the first.
    #[default]
    Overlap,
    /// The webhook gets a new secret.
    InPlace,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 2] = [Self::Overlap, Self::InPlace];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overlap => "overlap",
            Self::InPlace => "in-place",
        }
    }
}

/// Whether another process may be at work on a slot of the same vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// It may.
    Possible,
    /// None is, nor can begin: the caller holds a lock that each of them takes, and that the system
    /// takes from a process however it ends.
    Excluded,
}

/// Who labels the version that is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Staging {
    /// The store, before the first step: a version without the label is nobody's rotation.
    ByStore,
    /// The first step.
    ByUs,
}

/// A step of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Gets a new secret and keeps it as the pending version.
    Create,
    /// Brings the new webhook into force.
    Set,
    /// Looks whether the new webhook can take over.
    Test,
    /// Makes the pending version the current one.
    Finish,
}

impl Step {
    /// All steps, in their order.
    pub const ALL: [Self; 4] = [Self::Create, Self::Set, Self::Test, Self::Finish];

    /// The word of Secrets Manager.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "createSecret",
            Self::Set => "setSecret",
            Self::Test => "testSecret",
            Self::Finish => "finishSecret",
        }
    }
}

/// A word that names nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct UnknownWord(&'static str);

impl FromStr for Strategy {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|strategy| strategy.as_str() == text);
        found.ok_or(UnknownWord("`overlap` or `in-place`"))
    }
}

impl FromStr for Step {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|step| step.as_str() == text);
        found.ok_or(UnknownWord("one of createSecret, setSecret, testSecret, finishSecret"))
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// The rotation had ended before.
    AlreadyCurrent,
    /// The new secret was kept before.
    AlreadyPending,
    /// A second webhook was registered and its secret kept.
    Registered(WebhookId),
    /// The webhook has a new secret, which was kept.
    Replaced(WebhookId),
    /// The new webhook was in force already.
    InForce,
    /// The new webhook was brought into force.
    Brought(WebhookId),
    /// The new webhook can take over.
    Sound,
    /// The new secret is the current one.
    Promoted,
}

impl Done {
    /// A stable code for logs and output.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::AlreadyCurrent => "already_current",
            Self::AlreadyPending => "already_pending",
            Self::Registered(_) => "registered",
            Self::Replaced(_) => "replaced",
            Self::InForce => "in_force",
            Self::Brought(_) => "brought",
            Self::Sound => "sound",
            Self::Promoted => "promoted",
        }
    }
}

/// Why a step did not come to its end. The step may be taken again.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The secrets or the ledger failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The platform failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// It must not be taken.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Another process is at work on this subscription.
    #[error("another rotation of this subscription is at work; try again in some minutes")]
    Busy,
    /// The time was over.
    #[error("the time for this step was over")]
    OutOfTime,
}

#[cfg(test)]
mod tests;
