//! The parts of a batch or crawl: when each runs, how it ends, what a cancellation leaves.

use crate::dice::Key;
use crate::fate::{CANCELLED, Failure, Fate, Rules, Span};
use crate::moment::Moment;

/// Children run in at most this many waves, so that a large job is not endless.
const WAVES_MAX: u32 = 20;

/// Children of one wave, unless that would need more than [`WAVES_MAX`] waves.
const WAVE_WIDTH: u32 = 20;

/// Time between two waves, as a share of the median duration.
const WAVE_GAP: f64 = 0.5;

/// Links from one crawl page to others, unless the depth limit asks for more.
const FANOUT: u32 = 8;

/// Which counts and places the children of a parent have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All children are known from the start.
    List,
    /// Children are discovered as the crawl goes; each page links to `fanout` others.
    Tree { fanout: u32 },
}

/// The course of all children, reduced to what must be known without looking at each.
#[derive(Clone, Debug)]
pub(crate) struct Children {
    pub(crate) count: u32,
    pub(crate) shape: Shape,
    width: u32,
    ready: Moment,
    /// When the first child starts.
    pub(crate) starts: Moment,
    /// When the last child ends if nobody cancels.
    pub(crate) ends: Moment,
    /// When the last child ends, cancellation considered.
    pub(crate) drained: Moment,
    pub(crate) any_completes: bool,
}

/// State of one child at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildState {
    /// Not discovered (yet); crawl pages alone.
    Absent,
    Queued,
    Processing,
    Completed,
    Failed(&'static Failure),
    Cancelled,
}

/// One child at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    pub(crate) state: ChildState,
    pub(crate) reserved: bool,
    pub(crate) span: Span,
}

/// Counts over the children of a job at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Tally {
    pub(crate) total: u32,
    pub(crate) completed: u32,
    pub(crate) failed: u32,
    pub(crate) cancelled: u32,
    pub(crate) pending: u32,
    /// Tokens still held for queued, processing or settling children.
    pub(crate) reserved: u32,
}

impl Children {
    /// Lays out the course of `count` children of a job accepted at `created`.
    pub(crate) fn plan(
        key: Key,
        rules: &Rules,
        created: Moment,
        count: u32,
        shape: Shape,
        never_settles: bool,
    ) -> Self {
        let mut children = Self {
            count,
            shape,
            width: WAVE_WIDTH.max(count.div_ceil(WAVES_MAX)),
            ready: created,
            starts: Moment::NEVER,
            ends: created,
            drained: created,
            any_completes: false,
        };
        if matches!(shape, Shape::Tree { .. })
            && matches!(children.span(key, rules, 0).fate, Fate::Failed(_))
        {
            // Without its seed a crawl has nothing to follow.
            children.count = 1;
        }
        for index in 0..children.count {
            let span = children.span(key, rules, index);
            children.starts = children.starts.min(span.starts);
            children.ends = children.ends.max(span.ends);
            children.any_completes |= span.fate == Fate::Completed;
        }
        if never_settles {
            children.ends = Moment::NEVER;
        }
        children.drained = children.ends;
        children
    }

    /// Works out when the children in flight at a cancellation have drained.
    pub(crate) fn cancel(&mut self, key: Key, rules: &Rules, at: Moment) {
        self.drained = at;
        for index in 0..self.count {
            let span = self.span(key, rules, index);
            if span.starts <= at {
                self.drained = self.drained.max(span.ends);
            }
        }
    }

    fn span(&self, key: Key, rules: &Rules, index: u32) -> Span {
        let gap = rules.median.mul_f64(WAVE_GAP);
        let wave = index.checked_div(self.width).unwrap_or(0);
        let ready = self.ready.plus(gap * wave);
        rules.span(key.child(u64::from(index)), ready, false)
    }

    /// Looks at one child.
    pub(crate) fn look(
        &self,
        key: Key,
        rules: &Rules,
        index: u32,
        cancelled_at: Option<Moment>,
        now: Moment,
    ) -> Child {
        let span = self.span(key, rules, index);
        let gap = rules.median.mul_f64(WAVE_GAP);
        let is_tree = matches!(self.shape, Shape::Tree { .. });
        let undiscovered = is_tree && index > 0 && now < span.starts.minus(gap);
        if let Some(at) = cancelled_at.filter(|at| *at <= now)
            && span.starts > at
        {
            let known = !is_tree || index == 0 || span.starts.minus(gap) <= at;
            let state = if known { ChildState::Cancelled } else { ChildState::Absent };
            return Child { state, reserved: known && now < at.plus(rules.settle), span };
        }
        // The last child of a job that never settles never ends, until somebody cancels.
        let ended = now >= span.ends && !self.hangs(index, cancelled_at, now);
        let state = match span.fate {
            _ if undiscovered => ChildState::Absent,
            _ if now < span.starts => ChildState::Queued,
            _ if !ended => ChildState::Processing,
            Fate::Failed(failure) => ChildState::Failed(failure),
            Fate::Completed | Fate::Cancelled | Fate::NeverSettles => ChildState::Completed,
        };
        let reserved =
            state != ChildState::Absent && (!ended || now < span.ends.plus(rules.settle));
        Child { state, reserved, span }
    }

    fn hangs(&self, index: u32, cancelled_at: Option<Moment>, now: Moment) -> bool {
        let cancelled = cancelled_at.is_some_and(|at| at <= now);
        self.ends == Moment::NEVER && !cancelled && index.saturating_add(1) == self.count
    }

    /// Counts all children.
    pub(crate) fn tally(
        &self,
        key: Key,
        rules: &Rules,
        cancelled_at: Option<Moment>,
        now: Moment,
    ) -> Tally {
        let mut tally = Tally::default();
        for index in 0..self.count {
            let child = self.look(key, rules, index, cancelled_at, now);
            tally.total += u32::from(child.state != ChildState::Absent);
            tally.reserved += u32::from(child.reserved);
            match child.state {
                ChildState::Absent => {}
                ChildState::Queued | ChildState::Processing => tally.pending += 1,
                ChildState::Completed => tally.completed += 1,
                ChildState::Failed(_) => tally.failed += 1,
                ChildState::Cancelled => tally.cancelled += 1,
            }
        }
        tally
    }

    /// Lists the pages that a crawl page links to.
    pub(crate) fn links(&self, index: u32) -> std::ops::Range<u32> {
        let Shape::Tree { fanout } = self.shape else { return 0..0 };
        let first = index.saturating_mul(fanout).saturating_add(1).min(self.count);
        first..first.saturating_add(fanout).min(self.count)
    }

    /// Finds the page that a crawl page was discovered on, and the page's depth (the seed: 1).
    ///
    /// A failed page shows no links, so its tree children count as found on its own parent.
    pub(crate) fn place(&self, key: Key, rules: &Rules, index: u32) -> (Option<u32>, u32) {
        let Shape::Tree { fanout } = self.shape else { return (None, 1) };
        let tree_parent = |page: u32| page.saturating_sub(1).checked_div(fanout).unwrap_or(0);
        let living_parent = |page: u32| {
            let mut parent = tree_parent(page);
            while parent > 0 && matches!(self.span(key, rules, parent).fate, Fate::Failed(_)) {
                parent = tree_parent(parent);
            }
            parent
        };
        if index == 0 {
            return (None, 1);
        }
        let found_on = living_parent(index);
        let mut depth = 2;
        let mut page = found_on;
        while page > 0 {
            page = living_parent(page);
            depth += 1;
        }
        (Some(found_on), depth)
    }
}

impl ChildState {
    /// The status word of a finished child; `None` while it is not finished.
    pub(crate) fn finished(self) -> Option<(&'static str, Option<&'static Failure>)> {
        match self {
            Self::Absent | Self::Queued | Self::Processing => None,
            Self::Completed => Some(("completed", None)),
            Self::Failed(failure) => Some(("failed", Some(failure))),
            Self::Cancelled => Some(("cancelled", Some(&CANCELLED))),
        }
    }
}

/// Finds the least number of links per page that places `count` pages within `depth` levels.
pub(crate) fn fanout(count: u32, depth: u32) -> u32 {
    let capacity = |fanout: u32| {
        let mut level = 1_u64;
        let mut total = 1_u64;
        for _ in 1..depth {
            level = level.saturating_mul(u64::from(fanout));
            total = total.saturating_add(level);
        }
        total
    };
    let mut fanout = FANOUT;
    while capacity(fanout) < u64::from(count) && fanout < count {
        fanout = fanout.saturating_mul(2);
    }
    fanout
}
