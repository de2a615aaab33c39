//! The job lists' side.

use super::books::Books;
use super::{Period, Sheet, Unproved, trouble};
use crate::job::{JobKey, Kind};
use crate::limits::LIST_PAGE_MAX;
use crate::ports::{ApiError, Jobs, ListPage, ListQuery};
use crate::reconcile::window::{Next, Pages, Window};
use crate::subscribe::Account;

/// Walks over a window before its list counts as one that does not come to rest.
const WALKS_MAX: u32 = 4;

/// Reads a kind's list over the period. A list of more than a page is walked until a walk shows
/// nothing new: whatever moved between pages is on one of them then.
pub(super) async fn read(
    account: Account<'_>,
    jobs: &dyn Jobs,
    kind: Kind,
    books: &mut Books,
    sheet: &mut Sheet,
) {
    let Period { from, to } = books.period;
    let mut left = vec![Window { from, to }];
    while let Some(window) = left.pop() {
        match read_window(account, jobs, kind, window, books, sheet).await {
            Ok(Read::Whole) => {}
            Ok(Read::Unsure) => {
                let period = Period { from: window.from, to: window.to };
                sheet.unproved.push(Unproved::Unsure(kind, period));
            }
            Ok(Read::Halves(older, newer)) => left.extend([newer, older]),
            Err(error) => {
                let what = format!("the list of {kind} jobs cannot be read");
                return sheet.unproved.push(trouble(&what, &error));
            }
        }
    }
}

/// How the reading of a window ended.
enum Read {
    Whole,
    /// It may hold more than was seen.
    Unsure,
    /// It is too long to be read at once.
    Halves(Window, Window),
}

async fn read_window(
    account: Account<'_>,
    jobs: &dyn Jobs,
    kind: Kind,
    window: Window,
    books: &mut Books,
    sheet: &mut Sheet,
) -> Result<Read, ApiError> {
    for _ in 0..WALKS_MAX {
        let (mut pages, mut page, mut news) = (Pages::new(window), 1, 0_u64);
        let is_doubtful = loop {
            let list = read_page(account, jobs, kind, window, page).await?;
            if page == 1 {
                sheet.kind(kind).unreadable += u64::from(list.unreadable);
            }
            let next = pages.note(page, &list);
            for job in list.jobs {
                // The list's window ends with the period's end in it.
                if job.created_at.is_none_or(|at| books.period.holds(at)) {
                    let is_new = books.list(JobKey::new(kind, job.job_id), job.status);
                    news += u64::from(is_new);
                }
            }
            match next {
                Next::Page => page += 1,
                Next::Halves => {
                    return Ok(match window.halves() {
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

async fn read_page(
    account: Account<'_>,
    jobs: &dyn Jobs,
    kind: Kind,
    window: Window,
    page: u32,
) -> Result<ListPage, ApiError> {
    let query = ListQuery {
        page,
        page_size: LIST_PAGE_MAX,
        created_from: Some(window.from),
        created_to: Some(window.to),
    };
    account.patiently(|| jobs.list(kind, &query, account.within)).await
}
