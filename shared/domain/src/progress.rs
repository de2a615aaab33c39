//! How far a walk has come, kept in a control row.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::WRITE_CONFLICTS_MAX;
use crate::ports::{Control, ControlRow, ErrorKind, PortError};

/// Progress as it was read, and the version of its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress<T> {
    /// How far the walk has come.
    pub(crate) at: T,
    version: u64,
}

/// Reads progress; where there is none, or none that decodes, the walk begins anew, which costs
/// calls and loses nothing.
///
/// # Errors
/// Those of the ledger.
pub(crate) async fn load<T: Default + DeserializeOwned>(
    control: &(impl Control + ?Sized),
    name: &str,
) -> Result<Progress<T>, PortError> {
    let row = control.load_control(name).await?;
    Ok(row.map_or_else(
        || Progress { at: T::default(), version: 0 },
        |row| Progress {
            at: serde_json::from_str(&row.value).unwrap_or_default(),
            version: row.version,
        },
    ))
}

/// Writes progress. Where somebody else has written meanwhile, what is written is made by `merge`
/// of theirs and ours, so that nobody is set back.
///
/// # Contract
/// When the answer is lost it may be written; writing it again changes nothing.
///
/// # Errors
/// Those of the ledger; `Unavailable` after [`WRITE_CONFLICTS_MAX`] lost races.
pub(crate) async fn save<T>(
    control: &(impl Control + ?Sized),
    name: &str,
    progress: &mut Progress<T>,
    merge: impl Fn(T, &T) -> T + Send,
) -> Result<(), PortError>
where
    T: Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync,
{
    for _ in 0..WRITE_CONFLICTS_MAX {
        let row = ControlRow {
            name: name.to_owned(),
            version: progress.version.saturating_add(1),
            value: serde_json::to_string(&progress.at).unwrap_or_default(),
        };
        if control.write_control(&row).await? {
            progress.version = row.version;
            return Ok(());
        }
        // Lost to somebody else, or to this call's own try whose answer was lost below us.
        let theirs = load::<T>(control, name).await?;
        let at = merge(theirs.at.clone(), &progress.at);
        let is_there = at == theirs.at;
        *progress = Progress { at, version: theirs.version };
        if is_there {
            return Ok(());
        }
    }
    Err(PortError::new("ledger", "write_control", ErrorKind::Unavailable)
        .with_source("the progress of a walk kept changing under this write"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MemoryLedger;

    const NAME: &str = "reconcile/extract";

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as `save` hands it over")]
    fn higher(theirs: u32, ours: &u32) -> u32 {
        theirs.max(*ours)
    }

    #[tokio::test]
    async fn nobody_is_set_back_by_a_slower_one() {
        let ledger = MemoryLedger::new();
        let mut slow = load::<u32>(&ledger, NAME).await.unwrap();
        let mut fast = slow.clone();
        fast.at = 7;
        save(&ledger, NAME, &mut fast, higher).await.unwrap();
        slow.at = 3;
        save(&ledger, NAME, &mut slow, higher).await.unwrap();
        assert_eq!(slow.at, 7);
        slow.at = 9;
        save(&ledger, NAME, &mut slow, higher).await.unwrap();
        fast.at = 8;
        save(&ledger, NAME, &mut fast, higher).await.unwrap();
        assert_eq!(load::<u32>(&ledger, NAME).await.unwrap().at, 9);
    }

    #[tokio::test]
    async fn a_row_that_does_not_decode_is_written_over() {
        let ledger = MemoryLedger::new();
        let row = ControlRow { name: NAME.to_owned(), version: 1, value: "{".to_owned() };
        assert!(ledger.write_control(&row).await.unwrap());
        let mut progress = load::<u32>(&ledger, NAME).await.unwrap();
        assert_eq!(progress.at, 0);
        progress.at = 5;
        save(&ledger, NAME, &mut progress, higher).await.unwrap();
        assert_eq!(load::<u32>(&ledger, NAME).await.unwrap().at, 5);
    }
}
