//! The job lists' side.

use std::collections::BTreeMap;

use super::books::Books;
use super::judge::{Listing, Named, Row, facts, judge};
use super::rows::{Fresh, once_more};
use super::{Discrepancy, Period, Sheet, Unproved, trouble};
use crate::job::{JobId, JobKey, JobStatus, Kind};
use crate::limits::LIST_PAGE_MAX;
use crate::ports::{ApiError, ListPage, ListQuery, PortError};
use crate::reconcile::window::{Next, Pages, Window};
use crate::steps::Ports;
use crate::subscribe::Account;
use crate::time::Timestamp;

/// Walks over a window before its list counts as one that does not come to rest.
const WALKS_MAX: u32 = 4;

/// Jobs of one window. A window of many pages is read in halves, so that these are few.
type Seen = BTreeMap<JobId, Sighting>;

/// A job as its list shows it.
struct Sighting {
    status: JobStatus,
    /// Whether it is so young that it need not have a row.
    is_left: bool,
}

/// Reads a kind's list over the period. A list of more than a page is walked until a walk shows
/// nothing new: whatever moved between pages is on one of them then.
pub(super) async fn read(
    ports: Ports<'_>,
    account: Account<'_>,
    (kind, left_from): (Kind, Timestamp),
    books: &mut Books,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    let Period { from, to } = books.period;
    let mut left = vec![Window { from, to }];
    while let Some(window) = left.pop() {
        let mut list =
            List { ports, account, kind, left_from, window, seen: Seen::new(), unreadable: 0 };
        let read = list.read(books.period).await;
        if !matches!(read, Ok(Read::Halves(..))) {
            list.settle(books, sheet).await?;
        }
        match read {
            Ok(Read::Whole) => {}
            Ok(Read::Unsure) => {
                let period = Period { from: window.from, to: window.to };
                sheet.unproved.push(Unproved::Unsure(kind, period));
            }
            Ok(Read::Halves(older, newer)) => left.extend([newer, older]),
            Err(error) => {
                let what = format!("the list of {kind} jobs cannot be read");
                sheet.unproved.push(trouble(&what, &error));
                return Ok(());
            }
        }
    }
    Ok(())
}

/// How the reading of a window ended.
enum Read {
    Whole,
    /// It may hold more than was seen.
    Unsure,
    /// It is too long to be read at once.
    Halves(Window, Window),
}

/// A kind's list over one window.
struct List<'a> {
    ports: Ports<'a>,
    account: Account<'a>,
    kind: Kind,
    /// From when on jobs need not have a row.
    left_from: Timestamp,
    window: Window,
    seen: Seen,
    /// Entries that could not be read, of the walk that had most.
    unreadable: u64,
}

impl List<'_> {
    async fn read(&mut self, period: Period) -> Result<Read, ApiError> {
        for _ in 0..WALKS_MAX {
            let (mut pages, mut page) = (Pages::new(self.window), 1);
            let (mut news, mut unreadable) = (0_u64, 0_u64);
            let is_doubtful = loop {
                let list = self.read_page(page).await?;
                unreadable += u64::from(list.unreadable);
                self.unreadable = self.unreadable.max(unreadable);
                let next = pages.note(page, &list);
                for job in list.jobs {
                    // The list's window ends with the period's end in it.
                    if job.created_at.is_none_or(|at| period.holds(at)) {
                        let is_left = job.created_at.is_some_and(|at| at > self.left_from);
                        let sighting = Sighting { status: job.status, is_left };
                        news += u64::from(self.seen.insert(job.job_id, sighting).is_none());
                    }
                }
                match next {
                    Next::Page => page += 1,
                    Next::Halves => {
                        return Ok(match self.window.halves() {
                            Some((older, newer)) => Read::Halves(older, newer),
                            None => Read::Unsure,
                        });
                    }
                    Next::End { doubtful } => break doubtful,
                }
            };
            if is_doubtful {
                return Ok(Read::Unsure);
            }
            if page <= 2 || news == 0 {
                return Ok(Read::Whole);
            }
        }
        Ok(Read::Unsure)
    }

    async fn read_page(&self, page: u32) -> Result<ListPage, ApiError> {
        let query = ListQuery {
            page,
            page_size: LIST_PAGE_MAX,
            created_from: Some(self.window.from),
            created_to: Some(self.window.to),
        };
        let (jobs, within) = (self.ports.jobs, self.account.within);
        self.account.patiently(|| jobs.list(self.kind, &query, within)).await
    }

    /// Holds what was seen against the rows. What looks wrong is read once more: these rows are
    /// younger than the list.
    async fn settle(self, books: &mut Books, sheet: &mut Sheet) -> Result<(), PortError> {
        let (ports, kind) = (self.ports, self.kind);
        sheet.kind(kind).unreadable += self.unreadable;
        let mut suspects = Vec::new();
        for (job_id, sighting) in self.seen {
            let key = JobKey::new(kind, job_id);
            // Two halves share the instant in the middle.
            if books.listing(&key).is_some() {
                continue;
            }
            let row = books.row(&key);
            if sighting.judge(row).is_some() {
                suspects.push((key, sighting));
            } else {
                note(&key, &sighting, row, books, sheet);
            }
        }
        let keys: Vec<_> = suspects.iter().map(|(key, _)| key.clone()).collect();
        let fresh = once_more(ports, &keys).await?;
        for ((key, sighting), fresh) in suspects.iter().zip(fresh) {
            let status = &sighting.status;
            let Fresh::Read(entry) = fresh else {
                note(key, sighting, None, books, sheet);
                continue;
            };
            let entry = entry.as_deref();
            let now = ports.clock.now();
            let row = entry.map(|entry| Row::of(entry, now, ports.limits));
            if let Some(discrepancy) = sighting.judge(row) {
                let facts = facts(Named::Listed(status.as_str()), entry);
                sheet.find(discrepancy, Some(key), facts);
            }
            note(key, sighting, row, books, sheet);
        }
        Ok(())
    }
}

impl Sighting {
    fn judge(&self, row: Option<Row>) -> Option<Discrepancy> {
        judge(row, Listing::of(&self.status)).filter(|_| row.is_some() || !self.is_left)
    }
}

/// Counts a listed job.
fn note(key: &JobKey, sighting: &Sighting, row: Option<Row>, books: &mut Books, sheet: &mut Sheet) {
    let status = &sighting.status;
    books.list(key, Listing::of(status), row, sighting.is_left);
    let kind = sheet.kind(key.kind);
    kind.listed += 1;
    *kind.statuses.entry(status.as_str().to_owned()).or_default() += 1;
    match row {
        Some(row) => *kind.ledger.entry(row.state).or_default() += 1,
        None => kind.unknown += 1,
    }
}
