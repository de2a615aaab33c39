//! The function by which Secrets Manager rotates signing secrets: one event for each step, with the
//! secret, the version that is to be made, and the step's name.
//!
//! A step may come twice, at once or long after, and may end anywhere; Secrets Manager calls again
//! until it is told that all is well. Secrets that the function was not given, versions that are
//! not the pending one, and secrets whose rotation is switched off are refused.

mod event;

use std::sync::Arc;

use domain::limits::Limits;
use domain::ports::{Clock, Control, PortError, Random, SlotId, Vault, Webhooks};
use domain::rotate::{RotateError, RotatePorts, Rotation, Staging, Strategy, rotate};
use domain::time::Timestamp;
use serde::Serialize;
use telemetry::{Metrics, tell};

pub use event::{Event, EventError};

/// What the function works with.
pub struct Rotator {
    /// The signing secrets that it may rotate.
    pub vault: Arc<dyn Vault>,
    /// The platform's webhooks.
    pub webhooks: Arc<dyn Webhooks>,
    /// Where claims and retirements are.
    pub control: Arc<dyn Control>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<dyn Random>,
    /// The bounds.
    pub limits: Limits,
    /// How a secret is replaced.
    pub strategy: Strategy,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// What is answered, for whoever invokes the function by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The step.
    pub step: &'static str,
    /// What became of it; the words of `domain::rotate::Done`.
    pub done: &'static str,
}

/// Why a step was not taken, or did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The event is none of Secrets Manager's.
    #[error(transparent)]
    Event(#[from] EventError),
    /// It names another secret.
    #[error("the secret is not among those that this function was given")]
    Unknown,
    /// The secrets could not be named.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The step.
    #[error(transparent)]
    Step(#[from] RotateError),
}

impl Rotator {
    /// Takes the step of an event, until shortly before `deadline`, at which Lambda ends the process.
    ///
    /// # Errors
    /// See [`StepError`]. Secrets Manager reads an error as a step to be taken again.
    pub async fn step(
        &self,
        event: &serde_json::Value,
        deadline: Timestamp,
    ) -> Result<Report, StepError> {
        let taken = self.take(event, deadline).await;
        let (secret, step) = event::told(event);
        let outcome = taken.as_ref().map(|report| report.done).map_err(|error| error as _);
        tell::rotated(&self.metrics, secret, step, outcome);
        taken
    }

    async fn take(
        &self,
        event: &serde_json::Value,
        deadline: Timestamp,
    ) -> Result<Report, StepError> {
        let event = Event::read(event)?;
        let slots = self.vault.slots().await?;
        let slot = slots.into_iter().find(|slot| is_same(slot, &event.slot));
        let rotation = Rotation {
            slot: slot.ok_or(StepError::Unknown)?,
            version: event.version,
            strategy: self.strategy,
            staging: Staging::ByStore,
        };
        let ports = RotatePorts {
            vault: &*self.vault,
            webhooks: &*self.webhooks,
            control: &*self.control,
            clock: &*self.clock,
            random: &*self.random,
            limits: &self.limits,
        };
        let done = rotate(ports, &rotation, event.step, deadline).await?;
        Ok(Report { step: event.step.as_str(), done: done.code() })
    }
}

/// Whether an event's secret, which is an ARN, is the one that the settings name, by its ARN or by
/// its name.
fn is_same(ours: &SlotId, theirs: &SlotId) -> bool {
    // Secrets Manager puts a hyphen and six characters after a name.
    let name = theirs.as_str().rsplit_once(":secret:").map(|(_, name)| name);
    let bare = name.and_then(|name| name.get(..name.len().checked_sub(7)?));
    ours == theirs || bare == Some(ours.as_str())
}
