//! Which page of a delivery log is read next: decided from the times on the pages that were read.
//!
//! A log has no dates to ask by, no promised order, and no end of growth. It is read whole at
//! first, and once a day; in between only as far as there is something new in it, from the end that
//! the whole reading has shown to be the newer one.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::LIST_PAGES_MAX;
use crate::ports::DeliveryPage;
use crate::time::{Timestamp, after};

/// How far rows may be out of order and still be called ordered.
const JITTER: Duration = Duration::from_mins(1);
/// Pages in a row that hold nothing but rows that were seen: the page number is ignored, and the
/// log ends. One or two are no sign of that, since new rows push old ones on while they are read.
const REPEATS_MAX: u32 = 3;

/// In which order a log comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// In none that was recognised.
    #[default]
    Unknown,
    /// What is new is on the first pages.
    NewestFirst,
    /// What is new is on the last pages.
    OldestFirst,
}

/// How a log is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// From the first page to the last.
    Whole,
    /// From the first page to one that holds nothing new.
    Front,
    /// Back from what was the last page to one that holds nothing new, then on to the last.
    Back {
        /// What was the last page.
        tail: u32,
    },
}

/// What is known of the times on the pages so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Evidence {
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    rises: bool,
    falls: bool,
}

impl Evidence {
    /// Notes the newest row of a page that comes after those before.
    fn note(&mut self, newest: Timestamp) {
        if let Some(last) = self.last {
            self.rises |= newest > after(last, JITTER);
            self.falls |= last > after(newest, JITTER);
        }
        self.first = self.first.or(Some(newest));
        self.last = Some(newest);
    }

    const fn order(self) -> Order {
        match (self.rises, self.falls) {
            (false, true) => Order::NewestFirst,
            (true, false) => Order::OldestFirst,
            _ => Order::Unknown,
        }
    }
}

/// A reading of one log; saved when it ends early, so that the next run goes on there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reading {
    pub(super) mode: Mode,
    /// The next page.
    pub(super) page: u32,
    /// Rows from this instant on are new.
    pub(super) read_to: Option<Timestamp>,
    /// When it began, by our clock.
    pub(super) began: Timestamp,
    /// The newest row.
    pub(super) newest: Option<Timestamp>,
    /// The oldest row that is still being delivered, and is left alone.
    pub(super) pending: Option<Timestamp>,
    /// The last page that held rows.
    pub(super) tail: u32,
    pub(super) repeats: u32,
    pub(super) evidence: Evidence,
    /// Jobs that were found and that a reading before should have found.
    pub(super) missed: u32,
    /// Whether something in it could not be looked at.
    pub(super) is_flawed: bool,
    /// Whether it needed more than one page.
    pub(super) is_long: bool,
}

/// What comes after a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Another page.
    Page,
    /// All that may be new was read.
    End,
}

impl Reading {
    pub(super) fn begin(mode: Mode, read_to: Option<Timestamp>, now: Timestamp) -> Self {
        let page = match mode {
            Mode::Whole | Mode::Front => 1,
            Mode::Back { tail } => tail.max(1),
        };
        Self {
            mode,
            page,
            read_to,
            began: now,
            newest: None,
            pending: None,
            tail: 1,
            repeats: 0,
            evidence: Evidence::default(),
            missed: 0,
            is_flawed: false,
            is_long: false,
        }
    }

    /// The order that a whole reading has shown; `None` after any other.
    pub(super) fn order(&self) -> Option<Order> {
        (self.mode == Mode::Whole).then(|| self.evidence.order())
    }

    /// Notes the page that was read, and says what comes next. `repeats` says that no row of it is
    /// seen for the first time.
    pub(super) fn note(&mut self, page: &DeliveryPage, repeats: bool) -> Next {
        let is_empty = page.deliveries.is_empty() && page.unreadable == 0;
        let dates = || page.deliveries.iter().filter_map(|row| row.created_at);
        let newest = dates().max();
        if !is_empty {
            self.is_long |= self.page > 1;
            self.tail = self.tail.max(self.page);
        }
        self.newest = self.newest.max(newest);
        self.repeats = if repeats && !is_empty { self.repeats.saturating_add(1) } else { 0 };
        if self.repeats >= REPEATS_MAX || self.page >= LIST_PAGES_MAX {
            self.is_flawed = true;
            return Next::End;
        }
        // What has no time may be new.
        let is_old = |at: Timestamp| self.read_to.is_some_and(|read_to| at < read_to);
        let is_dated = dates().count() == page.deliveries.len() && page.unreadable == 0;
        let has_news = !(is_dated && newest.is_none_or(is_old));
        match self.mode {
            Mode::Back { tail } => return self.back(tail, is_empty, has_news),
            Mode::Whole | Mode::Front => {}
        }
        if let Some(newest) = newest {
            self.evidence.note(newest);
        }
        if self.mode == Mode::Front && self.evidence.rises {
            // It is not as it was thought to be: the rest is read as well.
            self.mode = Mode::Whole;
        }
        let is_enough = is_empty || (self.mode == Mode::Front && !has_news);
        if is_enough {
            return Next::End;
        }
        self.page = self.page.saturating_add(1);
        Next::Page
    }

    fn back(&mut self, tail: u32, is_empty: bool, has_news: bool) -> Next {
        if self.page <= tail {
            // Also where a page is empty: the log has become shorter.
            let goes_back = (is_empty || has_news) && self.page > 1;
            self.page =
                if goes_back { self.page.saturating_sub(1) } else { tail.saturating_add(1) };
            return Next::Page;
        }
        if is_empty {
            return Next::End;
        }
        self.page = self.page.saturating_add(1);
        Next::Page
    }
}

#[cfg(test)]
mod tests;
