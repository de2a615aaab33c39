//! Spans of `created_at`, and what the pages of a list over one of them say.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::job::JobId;
use crate::limits::{LIST_PAGE_MAX, LIST_PAGES_MAX};
use crate::ports::ListPage;
use crate::time::{Timestamp, after, before, between};

/// Pages of one window: a list that has more is read in halves, so that what is remembered of it
/// stays small, and so that what was read counts before all of it was.
const WINDOW_PAGES_MAX: u32 = 100;
/// A window that is not split: the platform's own examples give `created_at` in whole seconds.
const WINDOW_MIN: Duration = Duration::from_secs(2);
/// How far outside of its window a job may be listed, since dates are sent in microseconds.
const ROUNDING: Duration = Duration::from_secs(1);

/// A span of `created_at`, both ends in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Window {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

impl Window {
    /// The two halves, which share the instant in the middle; `None` if it is too short.
    pub(crate) fn halves(self) -> Option<(Self, Self)> {
        let length = between(self.from, self.to);
        if length < WINDOW_MIN {
            return None;
        }
        let middle = after(self.from, length / 2);
        Some((Self { to: middle, ..self }, Self { from: middle, ..self }))
    }

    pub(crate) fn holds(self, at: Timestamp) -> bool {
        self.from <= at && at <= self.to
    }

    fn nearly_holds(self, at: Timestamp) -> bool {
        before(self.from, ROUNDING) <= at && at <= after(self.to, ROUNDING)
    }
}

/// What comes after a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next page.
    Page,
    /// The list over the window was read to its end.
    End {
        /// Whether something speaks against it.
        doubtful: bool,
    },
    /// The list over this window cannot be read whole: its halves can.
    Halves,
}

/// What was seen of the list over one window. Order is not relied upon, nor is any count of pages:
/// a list ends with an empty page, or with one that holds nothing new.
#[derive(Debug)]
pub(crate) struct Pages {
    window: Window,
    /// Hashes of ids: a hundred thousand of them are a few megabytes, and one that collides only
    /// makes a job look seen, which is compared all the same.
    seen: BTreeSet<u64>,
    /// Whether a job was listed that the window does not hold: the dates are ignored, and halves
    /// would be no shorter.
    has_strays: bool,
}

impl Pages {
    pub(crate) const fn new(window: Window) -> Self {
        Self { window, seen: BTreeSet::new(), has_strays: false }
    }

    /// Notes a page, and says what comes next.
    pub(crate) fn note(&mut self, page: u32, list: &ListPage) -> Next {
        if list.is_empty() {
            return Next::End { doubtful: false };
        }
        let before = self.seen.len();
        for listed in &list.jobs {
            self.seen.insert(hash(&listed.job_id));
            let is_stray = |at| !self.window.nearly_holds(at);
            self.has_strays |= listed.created_at.is_some_and(is_stray);
        }
        let entries = list.jobs.len().saturating_add(usize::try_from(list.unreadable).unwrap_or(0));
        let is_full = u32::try_from(entries).is_ok_and(|entries| entries >= LIST_PAGE_MAX);
        let pages = list.page_count.unwrap_or(0);
        let repeats = self.seen.len() == before && !list.jobs.is_empty();
        // A repeated page ends a list, unless it may hide what comes after it.
        let hides = repeats && (is_full || pages > u64::from(page));
        let is_long = page >= WINDOW_PAGES_MAX
            || (page == 1 && is_full && (list.is_capped || pages > u64::from(WINDOW_PAGES_MAX)));
        if (hides || is_long) && !self.has_strays && self.window.halves().is_some() {
            return Next::Halves;
        }
        if repeats {
            return Next::End { doubtful: hides };
        }
        if page >= LIST_PAGES_MAX { Next::End { doubtful: true } } else { Next::Page }
    }
}

/// The same for the same id, in each process.
fn hash(id: &JobId) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
