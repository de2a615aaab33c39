//! The ledger's side.

use std::collections::BTreeMap;

use super::books::Books;
use super::judge::{Row, facts, is_overdue};
use super::{Discrepancy, Period, Sheet, objects};
use crate::entry::Entry;
use crate::job::JobKey;
use crate::limits::{LIST_PAGE_MAX, LIST_PAGES_MAX};
use crate::ports::{Cursor, EntryFilter, Page, PortError};
use crate::steps::Ports;
use crate::time::Timestamp;

/// Rows read at once.
const PAGE: u32 = 500;

/// Reads the rows of the period, and the results that they name.
pub(super) async fn read(
    ports: Ports<'_>,
    reads_objects: bool,
    books: &mut Books,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    let now = ports.clock.now();
    let mut cursor = None;
    for _ in 0..LIST_PAGES_MAX {
        let page = page(ports, cursor.as_ref()).await?;
        for facts in page.unreadable {
            sheet.find(Discrepancy::UnreadableRow, None, facts);
        }
        let rows: Vec<_> = of_period(&page.items, books.period, now).collect();
        for entry in &rows {
            books.enter(&entry.key, Row::of(entry, now, ports.limits));
        }
        if reads_objects {
            objects::read(ports, &rows, sheet).await?;
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
    Ok(())
}

/// Reads the rows once more if some were overdue: those that still are have been forgotten.
pub(super) async fn overdue(
    ports: Ports<'_>,
    books: &Books,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    let mut cursor = None;
    for _ in 0..LIST_PAGES_MAX {
        if !books.has_overdue {
            return Ok(());
        }
        let page = page(ports, cursor.as_ref()).await?;
        let now = ports.clock.now();
        for entry in page.items.iter().filter(|entry| is_overdue(entry, now, ports.limits)) {
            if books.row(&entry.key).is_some_and(|row| row.is_overdue) {
                let facts = facts(books.listing(&entry.key).into(), Some(entry));
                sheet.find(Discrepancy::Overdue, Some(&entry.key), facts);
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
    Ok(())
}

async fn page(ports: Ports<'_>, after: Option<&Cursor>) -> Result<Page<Entry>, PortError> {
    ports.ledger.list_entries(&EntryFilter::default(), after, PAGE).await
}

fn of_period(entries: &[Entry], period: Period, now: Timestamp) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(move |entry| !entry.is_expired(now) && period.holds(created_at(entry)))
}

/// When the job was created, as far as the ledger knows.
pub(super) fn created_at(entry: &Entry) -> Timestamp {
    entry.job_created_at.unwrap_or(entry.first_seen)
}

/// Counts the submissions, and finds those that nobody looks after.
pub(super) async fn submissions(ports: Ports<'_>, sheet: &mut Sheet) -> Result<(), PortError> {
    let now = ports.clock.now();
    let mut cursor = None;
    for _ in 0..LIST_PAGES_MAX {
        let page = ports.ledger.list_intents(None, cursor.as_ref(), PAGE).await?;
        for facts in page.unreadable {
            sheet.find(Discrepancy::UnreadableRow, None, facts);
        }
        for intent in &page.items {
            *sheet.submissions.entry(intent.state.name()).or_default() += 1;
            if intent.due_at.is_some_and(|due_at| super::is_overdue(due_at, now, ports.limits)) {
                let facts = format!(
                    "position {} of run {} is {}",
                    intent.position,
                    intent.run.escape_debug(),
                    intent.state.name()
                );
                sheet.find(Discrepancy::OverdueSubmission, None, facts);
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
    Ok(())
}

/// A row that is read once more, since something looks wrong about its job: it may have moved on,
/// or be of another period.
#[derive(Debug)]
pub(super) enum Fresh {
    /// As it is now; `None` if there is none.
    Read(Option<Box<Entry>>),
    /// It is there, and does not decode: the reading of all rows has found it.
    Unreadable,
}

/// Reads the rows of these jobs once more, in their order.
pub(super) async fn once_more(ports: Ports<'_>, keys: &[JobKey]) -> Result<Vec<Fresh>, PortError> {
    let mut fresh = Vec::with_capacity(keys.len());
    for keys in keys.chunks(usize::try_from(LIST_PAGE_MAX).unwrap_or(usize::MAX)) {
        let loaded = ports.ledger.load_many(keys).await?;
        let now = ports.clock.now();
        let mut rows: BTreeMap<_, _> =
            loaded.rows.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        fresh.extend(keys.iter().map(|key| {
            if loaded.unreadable.contains(key) {
                return Fresh::Unreadable;
            }
            Fresh::Read(rows.remove(key).filter(|entry| !entry.is_expired(now)).map(Box::new))
        }));
    }
    Ok(fresh)
}
