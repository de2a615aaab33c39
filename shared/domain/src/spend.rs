//! The day's spend: tokens reserved before each paid POST.

use serde::{Deserialize, Serialize};

use crate::limits::WRITE_CONFLICTS_MAX;
use crate::ports::{ControlRow, ErrorKind, PortError};
use crate::steps::Ports;
use crate::time::utc_date;

#[derive(Default, Serialize, Deserialize)]
struct Spent {
    tokens: u64,
}

/// Reserves tokens of today's spend; `false` when they would pass the limit. Without a limit
/// nothing is counted. A reservation whose POST was refused is not given back, but serves the same
/// decision's next POST of that day: the limit is a guard, not a ledger of money.
///
/// # Errors
/// Those of the ledger.
pub async fn reserve(ports: Ports<'_>, tokens: u64) -> Result<bool, PortError> {
    let Some(limit) = ports.limits.spend_per_day else { return Ok(true) };
    let name = format!("spend/{}", utc_date(ports.clock.now()));
    for _ in 0..WRITE_CONFLICTS_MAX {
        let row = ports.ledger.load_control(&name).await?;
        let spent: Spent = match &row {
            None => Spent::default(),
            Some(row) => serde_json::from_str(&row.value).map_err(|error| {
                PortError::new("ledger", "load_control", ErrorKind::Corrupt).with_source(error)
            })?,
        };
        let total = spent.tokens.saturating_add(tokens);
        if total > limit {
            return Ok(false);
        }
        let next = ControlRow {
            name: name.clone(),
            version: row.map_or(1, |row| row.version.saturating_add(1)),
            value: serde_json::to_string(&Spent { tokens: total }).unwrap_or_default(),
        };
        if ports.ledger.write_control(&next).await? {
            return Ok(true);
        }
    }
    Err(PortError::new("ledger", "write_control", ErrorKind::Unavailable)
        .with_source("the day's spend kept changing under this write"))
}

#[cfg(test)]
mod tests;
