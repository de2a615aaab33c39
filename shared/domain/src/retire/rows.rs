//! Which webhooks are to go. One control row holds them all: an account has ten at most.

use serde::{Deserialize, Serialize};

use crate::limits::WRITE_CONFLICTS_MAX;
use crate::ports::{Control, ControlRow, ErrorKind, PortError, SlotId, WebhookId};
use crate::time::Timestamp;

/// The control row.
pub const ROW: &str = "retirements";
/// The version of its format.
const FORMAT: u32 = 1;
/// Most retirements at a time: three times the webhooks of an account.
const RETIREMENTS_MAX: usize = 30;

/// A webhook that has been replaced, or is about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retirement {
    /// The slot of its subscription.
    pub slot: String,
    /// The webhook.
    pub webhook_id: WebhookId,
    /// The one that takes its place.
    pub successor: WebhookId,
    /// How far it is.
    pub phase: Phase,
    /// When somebody must look at it.
    pub due_at: Timestamp,
    /// When it began.
    pub since: Timestamp,
    /// The page of its delivery log at which the last look goes on.
    pub page: u32,
}

/// How far a retirement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The successor's secret is about to become the current one. Nothing is done to the webhook.
    Prepared,
    /// The webhook is to be switched off, once its successor is seen to be in force.
    Leaving,
    /// It is switched off; what was under way to us comes to its end.
    Draining,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    retirements: Vec<Retirement>,
}

impl Retirement {
    /// One that waits for the successor's secret to become the current one.
    pub fn prepared(
        slot: &SlotId,
        webhook_id: WebhookId,
        successor: WebhookId,
        now: Timestamp,
    ) -> Self {
        Self {
            slot: slot.as_str().to_owned(),
            webhook_id,
            successor,
            phase: Phase::Prepared,
            due_at: now,
            since: now,
            page: 1,
        }
    }
}

/// All retirements.
///
/// # Errors
/// `Corrupt` if the row does not decode; otherwise those of the ledger.
pub async fn list(control: &dyn Control) -> Result<Vec<Retirement>, PortError> {
    Ok(load(control).await?.1)
}

/// Puts a retirement in the place of any other of the same webhook.
///
/// # Errors
/// As [`list`]; `Invalid` beyond 30 of them.
pub async fn put(control: &dyn Control, retirement: &Retirement) -> Result<(), PortError> {
    change(control, |rows| {
        rows.retain(|row| row.webhook_id != retirement.webhook_id);
        rows.push(retirement.clone());
    })
    .await
}

/// Ends a retirement, if it is still as it was read.
///
/// # Errors
/// As [`list`].
pub async fn remove(control: &dyn Control, retirement: &Retirement) -> Result<(), PortError> {
    change(control, |rows| rows.retain(|row| row != retirement)).await
}

/// Replaces a retirement, if it is still as it was read.
///
/// # Errors
/// As [`list`].
pub async fn replace(
    control: &dyn Control,
    from: &Retirement,
    to: &Retirement,
) -> Result<(), PortError> {
    change(control, |rows| {
        for row in rows.iter_mut().filter(|row| *row == from) {
            row.clone_from(to);
        }
    })
    .await
}

/// Settles which of a slot's prepared retirements take place: those whose successor is in force.
/// The others are forgotten. Gives those that are to leave now.
///
/// # Errors
/// As [`list`].
pub async fn confirm(
    control: &dyn Control,
    slot: &SlotId,
    current: &WebhookId,
    now: Timestamp,
) -> Result<Vec<Retirement>, PortError> {
    let mut leaving = Vec::new();
    change(control, |rows| {
        let is_ours = |row: &Retirement| row.slot == slot.as_str();
        let is_idle = |row: &Retirement| row.phase == Phase::Prepared && row.successor != *current;
        rows.retain(|row| !is_ours(row) || !is_idle(row));
        for row in rows.iter_mut().filter(|row| is_ours(row)) {
            if row.phase == Phase::Prepared {
                row.phase = Phase::Leaving;
                row.due_at = now;
            } else if row.phase == Phase::Leaving && row.successor != *current {
                // Its successor was replaced before it could take over: what is in force now did.
                row.successor.clone_from(current);
                row.due_at = now;
            }
        }
        let is_leaving = |row: &&Retirement| is_ours(row) && row.phase == Phase::Leaving;
        leaving = rows.iter().filter(is_leaving).cloned().collect();
    })
    .await?;
    Ok(leaving)
}

async fn load(control: &dyn Control) -> Result<(u64, Vec<Retirement>), PortError> {
    let Some(row) = control.load_control(ROW).await? else { return Ok((0, Vec::new())) };
    let stored: Stored = serde_json::from_str(&row.value).map_err(|error| corrupt(error.into()))?;
    if stored.version != FORMAT {
        let text = format!("the row has format version {}; use a newer gleaner", stored.version);
        return Err(corrupt(text.into()));
    }
    Ok((row.version, stored.retirements))
}

fn corrupt(source: Box<dyn std::error::Error + Send + Sync>) -> PortError {
    PortError::new("ledger", "load_control", ErrorKind::Corrupt).with_source(source)
}

/// Reads, changes and writes the row until nobody else wrote it meanwhile. The change may be made
/// several times, once upon another's outcome, also its own.
async fn change(
    control: &dyn Control,
    mut make: impl FnMut(&mut Vec<Retirement>),
) -> Result<(), PortError> {
    for _ in 0..WRITE_CONFLICTS_MAX {
        let (version, before) = load(control).await?;
        let mut after = before.clone();
        make(&mut after);
        if after == before {
            return Ok(());
        }
        if after.len() > RETIREMENTS_MAX {
            return Err(PortError::new("ledger", "write_control", ErrorKind::Invalid)
                .with_source("more webhooks are to go than an account has"));
        }
        let stored = Stored { version: FORMAT, retirements: after };
        let value = serde_json::to_string(&stored).unwrap_or_default();
        let row = ControlRow { name: ROW.to_owned(), version: version.saturating_add(1), value };
        if control.write_control(&row).await? {
            return Ok(());
        }
    }
    Err(PortError::new("ledger", "write_control", ErrorKind::Unavailable)
        .with_source("too many others change the retirements"))
}
