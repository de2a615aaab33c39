//! Asking the job lists for many jobs at once: one page answers for a hundred.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::PAUSE_MIN;
use super::pace::{Bounds, Pace, Shown};
use crate::announce::announce;
use crate::backoff::full_jitter;
use crate::entry::{Cause, Counters, Entry, State};
use crate::job::{JobId, Kind};
use crate::limits::{LIST_PAGE_MAX, LIST_PAGES_MAX};
use crate::pause::Scope;
use crate::ports::{ApiError, Cursor, ListPage, ListQuery, PortError};
use crate::probe;
use crate::steps::Ports;
use crate::time::{Timestamp, after, before};
use crate::update::change;
use crate::work::Look;

/// Which expected jobs bulk polling asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Those whose announcement is overdue.
    Due,
    /// All that are open.
    Open,
}

/// What bulk polling found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BulkPolled {
    /// List pages read.
    pub pages: u32,
    /// Jobs that were asked for.
    pub asked: u32,
    /// Jobs that the list calls finished, now announced.
    pub announced: u32,
    /// Jobs that the list calls unfinished, put off.
    pub open: u32,
    /// Jobs that the list does not hold; the sweep looks at them one by one.
    pub unlisted: u32,
    /// What kept a list from being read whole.
    pub trouble: Option<ApiError>,
}

/// Most jobs asked for in one call.
const ASKED_MAX: usize = 20_000;
/// Below this many jobs of a kind, single looks are as cheap as a list page.
const BULK_MIN: usize = 2;

/// Asks the job lists for many expected jobs at once: one page answers for a hundred.
///
/// # Errors
/// Those of the ledger and the queue.
pub async fn bulk_poll(ports: Ports<'_>, asked: Asked) -> Result<BulkPolled, PortError> {
    let mut report = BulkPolled::default();
    let look = Look::Scheduled;
    if probe::held(ports, Scope::All, look).await?.is_some() {
        return Ok(report);
    }
    for (kind, jobs) in expected(ports, asked).await? {
        if jobs.len() < BULK_MIN && asked == Asked::Due {
            continue;
        }
        report.asked += number(jobs.len());
        let pages = &mut BTreeMap::new();
        let mut walk = Walk { ports, kind, look, is_wide: true, pages, report: &mut report };
        let walked = walk.whole(jobs).await?;
        let now = ports.clock.now();
        for entry in walked.open {
            put_off(ports, entry, now).await?;
        }
    }
    Ok(report)
}

/// How the pauses of [`Lists::ask`] are bounded, as multiples of base and cap of the back-off for
/// single jobs: a look at a list is one for many jobs, and may show the same again.
const BASES_MIN: f64 = 2.5;
const CAPS_MAX: u32 = 10;

/// What rounds over the job lists have learned, for the next one.
#[derive(Debug, Default)]
pub(super) struct Lists {
    by_kind: BTreeMap<Kind, Watched>,
}

/// One kind's list.
#[derive(Debug, Default)]
struct Watched {
    /// On which page each job was seen last.
    pages: BTreeMap<JobId, u32>,
    pace: Pace,
    /// Whether the narrow window missed a job, as when the platform's clock is ahead of ours.
    is_wide: bool,
    /// When the list is asked next.
    next_at: Option<Timestamp>,
    /// Looks in a row that were cut short by trouble.
    failures: u32,
}

impl Lists {
    /// Asks for all open jobs in those lists whose time has come, as far as time is left: no call
    /// begins at the deadline or goes beyond it.
    ///
    /// # Errors
    /// Those of the ledger and the queue.
    pub(super) async fn ask(
        &mut self,
        ports: Ports<'_>,
        patience: super::Patience,
    ) -> Result<BulkPolled, PortError> {
        let mut report = BulkPolled::default();
        let look = Look::Until(patience.deadline);
        if probe::held(ports, Scope::All, look).await?.is_some() {
            return Ok(report);
        }
        let open = expected(ports, Asked::Open).await?;
        self.by_kind.retain(|kind, _| open.contains_key(kind));
        for (kind, jobs) in open {
            let watched = self.by_kind.entry(kind).or_default();
            if watched.is_due(&jobs, ports.clock.now()) {
                report.asked += number(jobs.len());
                watched.ask(ports, kind, jobs, patience, &mut report).await?;
            }
        }
        Ok(report)
    }

    /// When the next list is to be asked; `None` when none is known.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.by_kind.values().filter_map(|watched| watched.next_at).min()
    }
}

impl Watched {
    /// Whether it is time to ask; a job that is new does not wait for the pauses of old ones.
    fn is_due(&self, jobs: &Wanted, now: Timestamp) -> bool {
        self.next_at.is_none_or(|next_at| next_at <= now)
            || (self.failures == 0 && jobs.values().any(|job| self.pace.is_news(created(job))))
    }

    async fn ask(
        &mut self,
        ports: Ports<'_>,
        kind: Kind,
        jobs: Wanted,
        patience: super::Patience,
        report: &mut BulkPolled,
    ) -> Result<(), PortError> {
        let asked: Vec<_> =
            jobs.values().map(|job| (job.key.job_id.clone(), created(job))).collect();
        let look = Look::Until(patience.deadline);
        let Self { pages, is_wide, .. } = self;
        let mut walk = Walk { ports, kind, look, is_wide: *is_wide, pages, report };
        let walked = walk.known_first(jobs).await?;
        let now = ports.clock.now();
        let next_at =
            after(now, self.pause(&walked, &asked, now, patience, ports.random.next_u64()));
        self.next_at = Some(next_at);
        for entry in walked.open {
            put_off(ports, entry, next_at).await?;
        }
        Ok(())
    }

    /// How long to wait for the next look, after what this one showed of the jobs asked for.
    fn pause(
        &mut self,
        walked: &Walked,
        asked: &[(JobId, Timestamp)],
        now: Timestamp,
        patience: super::Patience,
        chance: u64,
    ) -> Duration {
        if !walked.is_whole {
            let pause = full_jitter(self.failures, patience.base, patience.cap, chance);
            self.failures = self.failures.saturating_add(1);
            return pause.max(PAUSE_MIN);
        }
        self.failures = 0;
        self.is_wide = walked.unlisted > 0;
        let mut shown = Shown::default();
        for (job_id, created) in asked {
            if walked.finished.contains(job_id) {
                shown.finished.push(*created);
                self.pages.remove(job_id);
            } else {
                shown.open.push(*created);
            }
        }
        let pages: BTreeSet<_> = self.pages.values().collect();
        shown.pages = number(pages.len());
        let bounds = Bounds {
            min: Duration::try_from_secs_f64(patience.base.as_secs_f64() * BASES_MIN)
                .unwrap_or(Duration::MAX)
                .max(PAUSE_MIN),
            max: patience.cap.saturating_mul(CAPS_MAX),
        };
        self.pace.pause(&shown, now, bounds, chance)
    }
}

type Wanted = BTreeMap<JobId, Entry>;

/// The expected jobs that are asked for, by kind.
async fn expected(ports: Ports<'_>, asked: Asked) -> Result<BTreeMap<Kind, Wanted>, PortError> {
    let until = match asked {
        Asked::Due => ports.clock.now(),
        // Every open row is due one day; one that does not decode is left out of this list and
        // keeps none of the others waiting.
        Asked::Open => Timestamp::MAX,
    };
    let mut found: BTreeMap<Kind, Wanted> = BTreeMap::new();
    let mut left = ASKED_MAX;
    let mut cursor: Option<Cursor> = None;
    while left > 0 {
        let page = ports.ledger.list_due(until, cursor.as_ref(), LIST_PAGE_MAX).await?;
        for entry in page.items.into_iter().filter(|entry| entry.state == State::Expected) {
            found.entry(entry.key.kind).or_default().insert(entry.key.job_id.clone(), entry);
            left = left.saturating_sub(1);
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(found)
}

/// When a job was created, as far as is known.
fn created(entry: &Entry) -> Timestamp {
    entry.job_created_at.unwrap_or(entry.first_seen)
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// One walk over a kind's list.
struct Walk<'a> {
    ports: Ports<'a>,
    kind: Kind,
    look: Look,
    /// Whether the window ends now, and not soon after the newest wanted job was created.
    is_wide: bool,
    /// On which page each job was seen last.
    pages: &'a mut BTreeMap<JobId, u32>,
    report: &'a mut BulkPolled,
}

#[derive(Default)]
struct Walked {
    finished: BTreeSet<JobId>,
    /// Those that the list calls unfinished.
    open: Vec<Entry>,
    unlisted: u32,
    /// Whether the list was read as far as it had to be.
    is_whole: bool,
}

/// What a walk has left to find, and where it has been.
struct Trail {
    wanted: Wanted,
    from: Option<Timestamp>,
    to: Timestamp,
    seen: BTreeSet<JobId>,
    read: BTreeSet<u32>,
    walked: Walked,
}

/// What a page showed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    /// Jobs that no page before it held.
    News,
    /// Nothing of the kind: the list has ended, or repeats itself.
    End,
    /// It could not be read.
    Trouble,
}

impl Walk<'_> {
    /// Walks the list over the window in which the wanted jobs were created.
    async fn whole(&mut self, wanted: Wanted) -> Result<Walked, PortError> {
        let mut trail = self.trail(wanted);
        self.rest(&mut trail).await?;
        Ok(self.end(trail))
    }

    /// Reads the pages that held the wanted jobs last, and the others if one is not there any more
    /// or was in none.
    async fn known_first(&mut self, wanted: Wanted) -> Result<Walked, PortError> {
        self.pages.retain(|job_id, _| wanted.contains_key(job_id));
        if self.pages.len() < wanted.len() {
            return self.whole(wanted).await;
        }
        let known: BTreeSet<u32> = self.pages.values().copied().collect();
        let mut trail = self.trail(wanted);
        for page in known {
            if trail.wanted.is_empty() {
                break;
            }
            if self.page(page, &mut trail).await? == Page::Trouble {
                return Ok(self.end(trail));
            }
        }
        self.rest(&mut trail).await?;
        Ok(self.end(trail))
    }

    fn trail(&self, wanted: Wanted) -> Trail {
        let slack = self.ports.limits.adoption_margin;
        let now = self.ports.clock.now();
        let oldest = wanted.values().map(created).min();
        let newest = wanted.values().map(created).max();
        Trail {
            from: oldest.map(|oldest| before(oldest, slack)),
            // Later jobs of the account would only push the wanted ones to later pages.
            to: newest
                .filter(|_| !self.is_wide)
                .map_or(now, |newest| after(newest, slack).min(now)),
            wanted,
            seen: BTreeSet::new(),
            read: BTreeSet::new(),
            walked: Walked::default(),
        }
    }

    /// Reads the pages that were not read yet, in order, until nothing is wanted any more.
    async fn rest(&mut self, trail: &mut Trail) -> Result<(), PortError> {
        for page in 1..=LIST_PAGES_MAX {
            if trail.wanted.is_empty() {
                break;
            }
            if trail.read.contains(&page) {
                continue;
            }
            match self.page(page, trail).await? {
                Page::News => {}
                Page::End => break,
                Page::Trouble => return Ok(()),
            }
        }
        trail.walked.is_whole = true;
        Ok(())
    }

    fn end(&mut self, mut trail: Trail) -> Walked {
        if trail.walked.is_whole {
            trail.walked.unlisted = number(trail.wanted.len());
            self.report.unlisted += trail.walked.unlisted;
        }
        for job_id in trail.wanted.keys() {
            self.pages.remove(job_id);
        }
        trail.walked
    }

    /// Reads one page, and announces what has finished.
    async fn page(&mut self, page: u32, trail: &mut Trail) -> Result<Page, PortError> {
        let Some(list) = self.list(page, trail).await? else { return Ok(Page::Trouble) };
        self.report.pages += 1;
        trail.read.insert(page);
        let known = trail.seen.len();
        for listed in list.jobs {
            trail.seen.insert(listed.job_id.clone());
            let Some(entry) = trail.wanted.remove(&listed.job_id) else { continue };
            self.pages.insert(listed.job_id.clone(), page);
            if listed.status.is_terminal() {
                announce(self.ports.announcing(), &entry.key, Cause::Poll, None).await?;
                self.report.announced += 1;
                trail.walked.finished.insert(listed.job_id);
            } else {
                trail.walked.open.push(entry);
                self.report.open += 1;
            }
        }
        Ok(if trail.seen.len() == known { Page::End } else { Page::News })
    }

    /// A page of the list; `None`, and reported, if it cannot be had.
    async fn list(&mut self, page: u32, trail: &Trail) -> Result<Option<ListPage>, PortError> {
        let Self { ports, .. } = *self;
        let Some(within) = self.look.within(ports.clock.now(), ports.limits.call_timeout) else {
            return Ok(None);
        };
        let query = ListQuery {
            page,
            page_size: LIST_PAGE_MAX,
            created_from: trail.from,
            created_to: Some(trail.to),
        };
        match ports.jobs.list(self.kind, &query, within).await {
            Ok(list) => Ok(Some(list)),
            Err(error) => {
                if let Some(wait) = error.retry_after {
                    let wait = wait.min(ports.limits.retry_after_clamp);
                    let until = after(ports.clock.now(), wait);
                    let why = error.kind.as_str();
                    ports.pauses.extend(ports.ledger, Scope::All, until, why).await?;
                }
                self.report.trouble = Some(error);
                Ok(None)
            }
        }
    }
}

/// Moves the time at which somebody must look at a job that the list calls unfinished, unless that
/// lies well behind the next look at the list already.
async fn put_off(ports: Ports<'_>, entry: Entry, next_at: Timestamp) -> Result<(), PortError> {
    let now = ports.clock.now();
    if after(entry.first_seen, ports.limits.max_age) <= now {
        // Too old: the sweep sends a worker, who gives it up.
        return Ok(());
    }
    let least = ports.limits.announce_grace / 8;
    let is_soon = |due_at| due_at < after(next_at, least);
    if entry.counters.sweeps == 0 && !entry.due_at.is_none_or(is_soon) {
        return Ok(());
    }
    let seen = entry.seen();
    let counters = Counters {
        put_offs: entry.counters.put_offs.saturating_add(1),
        sweeps: 0,
        ..entry.counters.clone()
    };
    let cap = ports.limits.backoff_cap;
    let base = ports.limits.announce_grace / 4;
    let wait = full_jitter(counters.put_offs, base, cap, ports.random.next_u64()).max(least);
    change(ports.ledger, Some(entry), now, |row| {
        row.filter(|row| row.seen() == seen).map(|row| {
            let mut next = row.put_off(now, counters.clone(), ports.limits);
            next.due_at = Some(after(next_at, wait));
            next
        })
    })
    .await?;
    Ok(())
}
