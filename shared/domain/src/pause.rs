//! Pauses: throttling and account trouble are facts about the account, not about one job.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::WRITE_CONFLICTS_MAX;
use crate::ports::{Control, ControlRow, ErrorKind, PortError};
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

/// Reads pauses, and believes what it read for a second.
#[derive(Debug, Default)]
pub struct Pauses {
    cached: Mutex<Cached>,
}

#[derive(Debug, Default)]
struct Cached {
    all: Known,
    paying: Known,
    /// Counts this process's own writes: what was read before one is not kept after it.
    writes: u64,
}

/// What is known of one scope.
#[derive(Debug, Default, Clone)]
struct Known {
    read_at: Option<Timestamp>,
    pause: Option<Pause>,
}

impl Cached {
    fn known(&mut self, scope: Scope) -> &mut Known {
        match scope {
            Scope::All => &mut self.all,
            Scope::Paying => &mut self.paying,
        }
    }
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
        let all = self.of(control, Scope::All, now).await?;
        let longest = match scope {
            Scope::All => all,
            Scope::Paying => {
                let paying = self.of(control, Scope::Paying, now).await?;
                [all, paying].into_iter().flatten().max_by_key(|pause| pause.until)
            }
        };
        Ok(longest.filter(|pause| pause.until > now))
    }

    /// The pause of one scope, as it was read within the last second.
    async fn of(
        &self,
        control: &dyn Control,
        scope: Scope,
        now: Timestamp,
    ) -> Result<Option<Pause>, PortError> {
        let (known, writes) = {
            let mut cached = self.cached();
            (cached.known(scope).clone(), cached.writes)
        };
        if known.read_at.is_some_and(|at| at <= now && between(at, now) < CACHED_FOR) {
            return Ok(known.pause);
        }
        let pause = load(control, scope).await?.1;
        let mut cached = self.cached();
        if cached.writes == writes {
            *cached.known(scope) = Known { read_at: Some(now), pause: pause.clone() };
        }
        Ok(pause)
    }

    /// Extends a pause; one that lasts longer already stays as it is.
    ///
    /// # Errors
    /// Those of the ledger; `Unavailable` after [`WRITE_CONFLICTS_MAX`] lost races.
    pub async fn extend(
        &self,
        control: &dyn Control,
        scope: Scope,
        until: Timestamp,
        why: &str,
    ) -> Result<(), PortError> {
        let outcome = lengthen(control, scope, until, why).await;
        // Also after an error: the write may have happened.
        let mut cached = self.cached();
        *cached = Cached { writes: cached.writes.wrapping_add(1), ..Cached::default() };
        outcome
    }

    fn cached(&self) -> MutexGuard<'_, Cached> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn lengthen(
    control: &dyn Control,
    scope: Scope,
    until: Timestamp,
    why: &str,
) -> Result<(), PortError> {
    for _ in 0..WRITE_CONFLICTS_MAX {
        let (version, current) = load(control, scope).await?;
        if current.is_some_and(|pause| pause.until >= until) {
            return Ok(());
        }
        let pause = Pause { until, why: why.to_owned() };
        let row = ControlRow {
            name: scope.row().to_owned(),
            version: version.saturating_add(1),
            value: serde_json::to_string(&pause).unwrap_or_default(),
        };
        if control.write_control(&row).await? {
            return Ok(());
        }
    }
    Err(PortError::new("ledger", "write_control", ErrorKind::Unavailable)
        .with_source("the pause kept changing under this write"))
}

/// The row's version (0 if there is none) and its pause. A value that does not decode counts as
/// no pause and is written over.
async fn load(control: &dyn Control, scope: Scope) -> Result<(u64, Option<Pause>), PortError> {
    let row = control.load_control(scope.row()).await?;
    Ok(row.map_or((0, None), |row| (row.version, serde_json::from_str(&row.value).ok())))
}

#[cfg(test)]
mod tests;
