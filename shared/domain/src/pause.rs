//! Pauses: throttling and account trouble are facts about the account, not about one job.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::WRITE_CONFLICTS_MAX;
use crate::ports::{Control, ControlRow, PortError};
use crate::time::{Timestamp, between};

/// What a pause covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Paid POSTs only.
    Paying,
    /// Every call.
    All,
}

impl Scope {
    const fn row(self) -> &'static str {
        match self {
            Self::Paying => "pause/paying",
            Self::All => "pause/all",
        }
    }
}

/// A time in which the API is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When it ends.
    pub until: Timestamp,
    /// Why, as a short code: `throttled`, `payment_required`, `denied` or `missing`.
    pub why: String,
}

/// How long a pause that was read is believed.
const CACHED_FOR: Duration = Duration::from_secs(1);

/// Reads pauses, at most once a second and process.
#[derive(Debug, Default)]
pub struct Pauses {
    cached: Mutex<Cached>,
}

#[derive(Debug, Default, Clone)]
struct Cached {
    read_at: Option<Timestamp>,
    all: Option<Pause>,
    paying: Option<Pause>,
}

impl Pauses {
    /// The pause that covers `scope` now, if there is one.
    ///
    /// # Errors
    /// Those of the ledger.
    pub async fn active(
        &self,
        control: &dyn Control,
        scope: Scope,
        now: Timestamp,
    ) -> Result<Option<Pause>, PortError> {
        let cached = self.locked(|cached| cached.clone());
        let fresh = cached.read_at.is_some_and(|at| at <= now && between(at, now) < CACHED_FOR);
        let cached = if fresh {
            cached
        } else {
            let read = Cached {
                read_at: Some(now),
                all: load(control, Scope::All).await?.1,
                paying: load(control, Scope::Paying).await?.1,
            };
            self.locked(|cached| *cached = read.clone());
            read
        };
        let longest = match scope {
            Scope::All => cached.all,
            Scope::Paying => {
                [cached.all, cached.paying].into_iter().flatten().max_by_key(|p| p.until)
            }
        };
        Ok(longest.filter(|pause| pause.until > now))
    }

    /// Extends a pause; one that lasts longer already stays as it is.
    ///
    /// # Errors
    /// Those of the ledger.
    pub async fn extend(
        &self,
        control: &dyn Control,
        scope: Scope,
        until: Timestamp,
        why: &str,
    ) -> Result<(), PortError> {
        for _ in 0..WRITE_CONFLICTS_MAX {
            let (version, current) = load(control, scope).await?;
            if current.is_some_and(|pause| pause.until >= until) {
                break;
            }
            let pause = Pause { until, why: why.to_owned() };
            let row = ControlRow {
                name: scope.row().to_owned(),
                version: version + 1,
                value: serde_json::to_string(&pause).unwrap_or_default(),
            };
            if control.write_control(&row).await? {
                break;
            }
        }
        self.locked(|cached| cached.read_at = None);
        Ok(())
    }

    fn locked<T>(&self, act: impl FnOnce(&mut Cached) -> T) -> T {
        act(&mut self.cached.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The row's version (0 if there is none) and its pause. A value that does not decode counts as
/// no pause and is written over.
async fn load(control: &dyn Control, scope: Scope) -> Result<(u64, Option<Pause>), PortError> {
    let row = control.load_control(scope.row()).await?;
    Ok(row.map_or((0, None), |row| (row.version, serde_json::from_str(&row.value).ok())))
}
