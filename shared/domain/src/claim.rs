//! Claims: one holder at a time, for work that is harmless twice and wasteful.

use serde::{Deserialize, Serialize};

use crate::ports::{Control, ControlRow, PortError};
use crate::time::Timestamp;

/// A claim that is held until it is released or its time is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    name: String,
    version: u64,
    holder: String,
}

/// The claim's control row.
#[derive(Debug, Serialize, Deserialize)]
struct Held {
    holder: String,
    until: Timestamp,
}

/// Takes a claim until an instant; `None` while somebody else has it. `holder` is a token of this
/// call's own.
///
/// # Contract
/// Two calls at once may both find it free; one of them takes it. When the answer is lost it may
/// be taken until its time is over. A row that does not decode counts as free.
///
/// # Errors
/// Those of the ledger.
pub async fn take(
    control: &dyn Control,
    name: &str,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<Claim>, PortError> {
    let (version, held) = load(control, name).await?;
    if held.is_some_and(|held| held.until > now) {
        return Ok(None);
    }
    write_next(control, name, version, holder, until).await
}

/// Takes a claim until an instant, whoever has it: for callers with proof that its holder has ended.
///
/// # Contract
/// As [`take`]; `None` if somebody else took it in the same moment.
///
/// # Errors
/// Those of the ledger.
pub async fn take_over(
    control: &dyn Control,
    name: &str,
    holder: &str,
    until: Timestamp,
) -> Result<Option<Claim>, PortError> {
    let (version, _) = load(control, name).await?;
    write_next(control, name, version, holder, until).await
}

async fn write_next(
    control: &dyn Control,
    name: &str,
    version: u64,
    holder: &str,
    until: Timestamp,
) -> Result<Option<Claim>, PortError> {
    let claim = Claim {
        name: name.to_owned(),
        version: version.saturating_add(1),
        holder: holder.to_owned(),
    };
    if write(control, &claim, until).await? {
        return Ok(Some(claim));
    }
    // Lost to somebody else, or to this call's own try whose answer was lost below us.
    let (version, held) = load(control, name).await?;
    let is_ours = version == claim.version && held.is_some_and(|held| held.holder == holder);
    Ok(is_ours.then_some(claim))
}

/// Gives a claim back: it is free by whatever clock. Nothing happens if its time was over and
/// somebody else has it.
///
/// # Errors
/// Those of the ledger; the claim then ends when its time is over.
pub async fn release(control: &dyn Control, claim: Claim) -> Result<(), PortError> {
    let next = Claim { version: claim.version.saturating_add(1), ..claim };
    write(control, &next, Timestamp::UNIX_EPOCH).await.map(|_| ())
}

async fn write(control: &dyn Control, claim: &Claim, until: Timestamp) -> Result<bool, PortError> {
    let held = Held { holder: claim.holder.clone(), until };
    let value = serde_json::to_string(&held).unwrap_or_default();
    let row = ControlRow { name: claim.name.clone(), version: claim.version, value };
    control.write_control(&row).await
}

async fn load(control: &dyn Control, name: &str) -> Result<(u64, Option<Held>), PortError> {
    let row = control.load_control(name).await?;
    Ok(row.map_or((0, None), |row| (row.version, serde_json::from_str(&row.value).ok())))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;

    use super::*;
    use crate::testing::MemoryLedger;
    use crate::time::after;

    const NAME: &str = "claim/tick";

    fn at(second: u64) -> Timestamp {
        after(Timestamp::UNIX_EPOCH, Duration::from_secs(second))
    }

    async fn take_at(ledger: &dyn Control, holder: &str, second: u64) -> Option<Claim> {
        take(ledger, NAME, holder, at(second), at(second + 10)).await.unwrap()
    }

    #[tokio::test]
    async fn a_claim_has_one_holder_until_it_ends() {
        let ledger = MemoryLedger::new();
        let first = take_at(&ledger, "a", 0).await.unwrap();
        assert_eq!(take_at(&ledger, "b", 9).await, None);
        let second = take_at(&ledger, "b", 10).await.unwrap();
        // Whoever held it before changes nothing any more.
        release(&ledger, first).await.unwrap();
        assert_eq!(take_at(&ledger, "c", 12).await, None);
        release(&ledger, second).await.unwrap();
        assert!(take_at(&ledger, "c", 12).await.is_some());
    }

    #[tokio::test]
    async fn a_row_that_does_not_decode_holds_nobody_up() {
        let ledger = MemoryLedger::new();
        let row = ControlRow { name: NAME.to_owned(), version: 1, value: "{".to_owned() };
        assert!(ledger.write_control(&row).await.unwrap());
        assert!(take_at(&ledger, "a", 0).await.is_some());
    }

    /// A ledger each of whose writes is made twice, since its first answer is lost on the way.
    struct Repeating(MemoryLedger);

    #[async_trait]
    impl Control for Repeating {
        async fn load_control(&self, name: &str) -> Result<Option<ControlRow>, PortError> {
            self.0.load_control(name).await
        }

        async fn write_control(&self, row: &ControlRow) -> Result<bool, PortError> {
            self.0.write_control(row).await?;
            self.0.write_control(row).await
        }
    }

    #[tokio::test]
    async fn a_write_that_was_repeated_below_is_ours() {
        let repeating = Repeating(MemoryLedger::new());
        let claim = take_at(&repeating, "a", 0).await.unwrap();
        assert_eq!(take_at(&repeating, "b", 1).await, None);
        release(&repeating, claim).await.unwrap();
        assert!(take_at(&repeating, "b", 1).await.is_some());
    }

    #[tokio::test]
    async fn of_many_takers_at_once_one_has_it() {
        let ledger = MemoryLedger::new();
        let takers = ["a", "b", "c", "d"].map(|holder| take_at(&ledger, holder, 0));
        let [a, b, c, d] = takers;
        let taken = tokio::join!(a, b, c, d);
        let taken = [taken.0, taken.1, taken.2, taken.3];
        assert_eq!(taken.iter().flatten().count(), 1);
    }
}
