//! One process at a time is at work on a slot.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::apply::RELEASE_TIME;
use super::{RotateError, RotatePorts};
use crate::claim::{self, Claim};
use crate::ports::{PortError, SlotId};
use crate::time::{Timestamp, between};

/// Looks at a claim that somebody else has, and the pause between two: together as long as a step
/// takes that meets no trouble.
const CLAIM_LOOKS: u32 = 20;
const CLAIM_PAUSE: Duration = Duration::from_secs(1);
/// Waits a little for whoever is at work on the slot: most often it is the same step, delivered
/// twice.
pub(super) async fn hold(
    ports: RotatePorts<'_>,
    slot: &SlotId,
    deadline: Timestamp,
) -> Result<Claim, RotateError> {
    for _ in 0..CLAIM_LOOKS {
        let now = ports.clock.now();
        if between(now, deadline) <= RELEASE_TIME {
            break;
        }
        if let Some(claim) = take(ports, slot, now, deadline).await? {
            return Ok(claim);
        }
        ports.clock.sleep(CLAIM_PAUSE).await;
    }
    Err(RotateError::Busy)
}

pub(super) async fn take(
    ports: RotatePorts<'_>,
    slot: &SlotId,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<Claim>, PortError> {
    claim::take(ports.control, &claim_of(slot), &ports.random.token(), now, until).await
}

/// Takes the claim from a process that has ended.
pub(super) async fn take_over(
    ports: RotatePorts<'_>,
    slot: &SlotId,
    until: Timestamp,
) -> Result<Option<Claim>, PortError> {
    claim::take_over(ports.control, &claim_of(slot), &ports.random.token(), until).await
}

/// The control row by which one process at a time is at work on a slot.
pub(super) fn claim_of(slot: &SlotId) -> String {
    // The name of a slot may be as long as a key of the ledger.
    format!("claim/rotation/{}", hex::encode(Sha256::digest(slot.as_str())))
}

pub(super) async fn release(ports: RotatePorts<'_>, claim: Claim) {
    // If it cannot be given back it ends by itself, at the deadline.
    let _ = claim::release(ports.control, claim).await;
}
