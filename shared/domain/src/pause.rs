//! Pauses: throttling and account trouble are facts about the account, not about one job.
//!
//! The end of a pause that the platform named is its end. The end of one for account trouble proves
//! nothing: it admits one probe, by whoever writes first that it is theirs, and everybody else goes
//! on pausing until its result is known or its time is over.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::WRITE_CONFLICTS_MAX;
use crate::ports::{Control, ControlRow, ErrorKind, PortError};
use crate::time::{Timestamp, after, between};

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
    /// Whether it ends only when a probe has shown that the account is in order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproved: bool,
}

/// Reasons that are trouble of the account, of which time alone proves nothing.
const ACCOUNT_TROUBLE: [&str; 4] = ["payment_required", "denied", "missing", "refused"];
/// The reason of a pause that a probe has ended.
const PROVED: &str = "proved";

/// Whether calls may be made now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Nothing is in the way.
    Open,
    /// A pause is, also one that another process's probe is to end.
    Paused(Pause),
    /// A pause has ended, and this call is the one that shows whether the account is in order
    /// again. What it finds is told by [`Pauses::lift`] or [`Pauses::extend`]; without a word,
    /// another probe is admitted when its time is over.
    Probe(Scope),
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
    /// Versions of the rows by which this process has probes, of all calls and of paying ones.
    probes: [Option<u64>; 2],
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

    const fn probe(&mut self, scope: Scope) -> &mut Option<u64> {
        let [all, paying] = &mut self.probes;
        match scope {
            Scope::All => all,
            Scope::Paying => paying,
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

    /// Whether calls of this scope may be made now. An ended pause for account trouble admits one
    /// of many callers, for at most `hold`.
    ///
    /// # Contract
    /// Two calls at once may both find it ended; one of them writes that the probe is its own. When
    /// that answer is lost nobody has it, and another is admitted after `hold`.
    ///
    /// # Errors
    /// Those of the ledger.
    pub async fn admit(
        &self,
        control: &dyn Control,
        scope: Scope,
        now: Timestamp,
        hold: Duration,
    ) -> Result<Admission, PortError> {
        if let Some(pause) = self.active(control, scope, now).await? {
            return Ok(Admission::Paused(pause));
        }
        let scopes: &[Scope] = match scope {
            Scope::All => &[Scope::All],
            Scope::Paying => &[Scope::All, Scope::Paying],
        };
        for scope in scopes {
            let is_unproved = |pause: &Pause| pause.unproved;
            if self.of(control, *scope, now).await?.as_ref().is_some_and(is_unproved) {
                match self.claim(control, *scope, now, hold).await? {
                    Admission::Open => {}
                    other => return Ok(other),
                }
            }
        }
        Ok(Admission::Open)
    }

    /// Takes the probe of a pause that was read as ended and unproved.
    async fn claim(
        &self,
        control: &dyn Control,
        scope: Scope,
        now: Timestamp,
        hold: Duration,
    ) -> Result<Admission, PortError> {
        for _ in 0..WRITE_CONFLICTS_MAX {
            let (version, pause) = load(control, scope).await?;
            let pause = match pause {
                Some(pause) if pause.until > now => {
                    self.forget();
                    return Ok(Admission::Paused(pause));
                }
                Some(pause) if pause.unproved => pause,
                _ => {
                    self.forget();
                    return Ok(Admission::Open);
                }
            };
            let taken = Pause { until: after(now, hold), ..pause };
            let written = write(control, scope, version, &taken).await;
            self.forget();
            if written? {
                *self.cached().probe(scope) = Some(version.saturating_add(1));
                return Ok(Admission::Probe(scope));
            }
        }
        Err(changing())
    }

    /// Ends a pause whose probe is this process's, since the account is in order. Nothing happens
    /// without such a probe, and where the pause was extended since.
    ///
    /// # Errors
    /// Those of the ledger; the pause then ends by another probe.
    pub async fn lift(
        &self,
        control: &dyn Control,
        scope: Scope,
        now: Timestamp,
    ) -> Result<(), PortError> {
        let Some(held) = self.cached().probe(scope).take() else { return Ok(()) };
        let (version, pause) = load(control, scope).await?;
        if version != held || pause.is_none() {
            return Ok(());
        }
        let proved = Pause { until: now, why: PROVED.to_owned(), unproved: false };
        let written = write(control, scope, version, &proved).await;
        self.forget();
        written.map(drop)
    }

    /// What was read may be old.
    fn forget(&self) {
        let mut cached = self.cached();
        let (writes, probes) = (cached.writes.wrapping_add(1), cached.probes);
        *cached = Cached { writes, probes, ..Cached::default() };
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

    /// Extends a pause; one that lasts longer already stays as long. Where the reason is trouble of
    /// the account, its end is to be proved, and a probe of this process's has failed: its hold
    /// gives way to what it found.
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
        let failed = ACCOUNT_TROUBLE.contains(&why);
        let held = if failed { self.cached().probe(scope).take() } else { None };
        let outcome = lengthen(control, scope, until, why, held).await;
        // Also after an error: the write may have happened.
        self.forget();
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
    held: Option<u64>,
) -> Result<(), PortError> {
    for _ in 0..WRITE_CONFLICTS_MAX {
        let (version, current) = load(control, scope).await?;
        let unproved =
            current.as_ref().is_some_and(|pause| pause.unproved) || ACCOUNT_TROUBLE.contains(&why);
        let is_hold = held == Some(version);
        let longer = current.as_ref().filter(|pause| !is_hold && pause.until >= until);
        if longer.is_some_and(|pause| pause.unproved == unproved) {
            return Ok(());
        }
        let until = longer.map_or(until, |pause| pause.until);
        let pause = Pause { until, why: why.to_owned(), unproved };
        if write(control, scope, version, &pause).await? {
            return Ok(());
        }
    }
    Err(changing())
}

/// Writes a pause over the row in this version; `false` if it is in another.
async fn write(
    control: &dyn Control,
    scope: Scope,
    version: u64,
    pause: &Pause,
) -> Result<bool, PortError> {
    let row = ControlRow {
        name: scope.row().to_owned(),
        version: version.saturating_add(1),
        value: serde_json::to_string(pause).unwrap_or_default(),
    };
    control.write_control(&row).await
}

fn changing() -> PortError {
    PortError::new("ledger", "write_control", ErrorKind::Unavailable)
        .with_source("the pause kept changing under this write")
}

/// The row's version (0 if there is none) and its pause. A value that does not decode counts as
/// no pause and is written over.
async fn load(control: &dyn Control, scope: Scope) -> Result<(u64, Option<Pause>), PortError> {
    let row = control.load_control(scope.row()).await?;
    Ok(row.map_or((0, None), |row| (row.version, serde_json::from_str(&row.value).ok())))
}

#[cfg(test)]
mod tests;
