//! How far the comparison of one kind's list has come. Kept in the control row `reconcile/<kind>`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::window::Window;
use crate::job::Kind;
use crate::time::{Timestamp, after, before};

/// Version of the stored form; a row of another is not read, and the comparison begins anew.
const FORMAT: u32 = 1;
/// Walks over one window before what they could not make sure of is let go: a list that always
/// moves, or an entry that can never be read, must not hold up what comes after it.
const WALKS_MAX: u32 = 4;

/// Pause before a walk that ended early goes on.
pub(crate) const AGAIN: Duration = Duration::from_secs(30);

/// The name of a kind's control row.
pub(super) fn row_name(kind: Kind) -> String {
    format!("reconcile/{kind}")
}

/// How far the comparison has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved {
    format: Format,
    /// Every job that was created before this instant of the platform's clock was compared.
    pub(super) watermark: Option<Timestamp>,
    /// What the last walk would have as the watermark.
    pub(super) candidate: Option<Candidate>,
    /// A walk that has begun and not ended.
    pub(super) walk: Option<Walk>,
    /// When the list was last walked to its end.
    pub(super) walked_at: Option<Timestamp>,
    /// When a walk last ended early.
    pub(super) tried_at: Option<Timestamp>,
}

/// The one version that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
struct Format;

impl Default for Format {
    fn default() -> Self {
        Self
    }
}

impl From<Format> for u32 {
    fn from(_: Format) -> Self {
        FORMAT
    }
}

impl TryFrom<u32> for Format {
    type Error = &'static str;

    fn try_from(format: u32) -> Result<Self, Self::Error> {
        if format == FORMAT { Ok(Self) } else { Err("a version that this program does not know") }
    }
}

/// A watermark that another walk shall confirm. The pages of a list move while they are read, and
/// a job that jumps from one that is still to come to one that was read is seen by nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Candidate {
    pub(super) at: Timestamp,
    /// Walks that could not confirm it.
    pub(super) failures: u32,
}

/// A walk over one window; saved when it ends early, so that the next run goes on there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Walk {
    /// Pinned, so that what is created meanwhile does not move the pages.
    pub(super) window: Window,
    /// Whether the window reaches up to the present. What lies before it is walked again at once
    /// where that is needed; the last window is confirmed by the next run.
    pub(super) is_last: bool,
    /// The next page.
    pub(super) page: u32,
    /// How many times the window was walked before.
    pub(super) earlier: u32,
    /// The newest `created_at` in it.
    pub(super) newest: Option<Timestamp>,
    /// Jobs found that the ledger did not know, and that a walk before should have found.
    pub(super) missed: u32,
    /// Whether something in it could not be compared, or its end is doubtful.
    pub(super) is_flawed: bool,
    /// Whether it needed more than one page.
    pub(super) is_long: bool,
}

impl Walk {
    pub(super) const fn over(window: Window, is_last: bool) -> Self {
        Self {
            window,
            is_last,
            page: 1,
            earlier: 0,
            newest: None,
            missed: 0,
            is_flawed: false,
            is_long: false,
        }
    }

    /// Whether a job that nobody knew should have been found before.
    pub(super) fn should_be_known(
        &self,
        created_at: Option<Timestamp>,
        candidate: Option<Candidate>,
    ) -> bool {
        if self.is_last {
            let is_older = |candidate: Candidate| created_at.is_none_or(|at| at <= candidate.at);
            candidate.is_some_and(is_older)
        } else {
            self.earlier > 0
        }
    }
}

/// What comes after a walk that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum After {
    /// The window is done.
    Done {
        /// Whether it was let go without being sure.
        unsure: bool,
    },
    /// The window is walked once more, now.
    Again(Walk),
}

impl Saved {
    /// Whether it is time for a walk: what ended early goes on soon, and not at once, since it may
    /// have been the platform's trouble.
    pub(super) fn is_due(&self, every: Duration, now: Timestamp) -> bool {
        let is_over = |at: Option<Timestamp>, pause| at.is_none_or(|at| after(at, pause) <= now);
        let is_early = self.walk.is_some() || self.tried_at > self.walked_at;
        let again = every.min(AGAIN);
        is_over(self.tried_at, again) && (is_early || is_over(self.walked_at, every))
    }

    /// Takes in a walk that came to its end. The watermark is the platform's own time, less an
    /// overlap that is longer than its lists lag.
    pub(super) fn walked(&mut self, walk: &Walk, overlap: Duration, now: Timestamp) -> After {
        self.walk = None;
        let reached = walk.newest.map(|newest| before(newest, overlap));
        let is_sure = !walk.is_long && !walk.is_flawed;
        if walk.is_last {
            self.walked_at = Some(now);
            return After::Done { unsure: self.last_walked(walk, reached, is_sure) };
        }
        let is_confirmed = walk.earlier > 0 && walk.missed == 0 && !walk.is_flawed;
        let is_enough = walk.earlier.saturating_add(1) >= WALKS_MAX;
        if is_sure || is_confirmed || is_enough {
            self.raise(reached);
            return After::Done { unsure: !is_sure && !is_confirmed };
        }
        let earlier = walk.earlier.saturating_add(1);
        After::Again(Walk { earlier, ..Walk::over(walk.window, false) })
    }

    /// The part of [`Saved::walked`] for the window that reaches up to the present; whether
    /// something was let go.
    fn last_walked(&mut self, walk: &Walk, reached: Option<Timestamp>, is_sure: bool) -> bool {
        if is_sure {
            self.raise(reached);
            self.candidate = None;
            return false;
        }
        let mut unsure = false;
        if let Some(candidate) = self.candidate {
            let is_confirmed = walk.missed == 0 && !walk.is_flawed;
            let failures = candidate.failures.saturating_add(1);
            unsure = !is_confirmed && failures >= WALKS_MAX;
            if !is_confirmed && !unsure {
                self.candidate = Some(Candidate { failures, ..candidate });
                return false;
            }
            self.raise(Some(candidate.at));
        }
        // Also the part that was walked for the first time is to be confirmed.
        let is_beyond = |at: &Timestamp| self.watermark.is_none_or(|watermark| *at > watermark);
        let next = reached.filter(is_beyond);
        self.candidate = next.map(|at| Candidate { at, failures: 0 });
        unsure
    }

    /// Raises the watermark; it never falls.
    fn raise(&mut self, to: Option<Timestamp>) {
        self.watermark = self.watermark.max(to);
    }

    /// What is written where another run has written meanwhile: whoever is ahead.
    pub(super) fn merged(theirs: Self, ours: &Self) -> Self {
        let place = |saved: &Self| (saved.watermark, saved.walked_at);
        let walked_at = theirs.walked_at.max(ours.walked_at);
        let tried_at = theirs.tried_at.max(ours.tried_at);
        let ahead = if place(&theirs) >= place(ours) { theirs } else { ours.clone() };
        Self { walked_at, tried_at, ..ahead }
    }
}

#[cfg(test)]
mod tests;
