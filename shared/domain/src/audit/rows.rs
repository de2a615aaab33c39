//! The ledger's side.

use super::books::{Books, Row, Suspicion};
use super::{Discrepancy, Sheet, is_overdue};
use crate::entry::Entry;
use crate::limits::LIST_PAGES_MAX;
use crate::ports::{EntryFilter, PortError};
use crate::steps::Ports;

/// Rows read at once.
const PAGE: u32 = 500;

/// Reads the rows of the period.
pub(super) async fn read(
    ports: Ports<'_>,
    books: &mut Books,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    let now = ports.clock.now();
    let (filter, mut cursor) = (EntryFilter::default(), None);
    for _ in 0..LIST_PAGES_MAX {
        let page = ports.ledger.list_entries(&filter, cursor.as_ref(), PAGE).await?;
        for _ in 0..page.unreadable {
            sheet.find(Discrepancy::UnreadableRow, None, "a row does not decode".to_owned());
        }
        let period = books.period;
        let rows = page.items.iter().filter(|entry| !entry.is_expired(now));
        for entry in rows.filter(|entry| period.holds(created_at(entry))) {
            books.row(&entry.key, Some(Row::of(entry, now)));
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
    Ok(())
}

/// When the job was created, as far as the ledger knows.
fn created_at(entry: &Entry) -> crate::time::Timestamp {
    entry.job_created_at.unwrap_or(entry.first_seen)
}

/// Counts the submissions, and finds those that nobody looks after.
pub(super) async fn submissions(ports: Ports<'_>, sheet: &mut Sheet) -> Result<(), PortError> {
    let now = ports.clock.now();
    let mut cursor = None;
    for _ in 0..LIST_PAGES_MAX {
        let page = ports.ledger.list_intents(None, cursor.as_ref(), PAGE).await?;
        for _ in 0..page.unreadable {
            let facts = "the row of a submission does not decode".to_owned();
            sheet.find(Discrepancy::UnreadableRow, None, facts);
        }
        for intent in &page.items {
            *sheet.submissions.entry(intent.state.name()).or_default() += 1;
            if intent.due_at.is_some_and(|due_at| is_overdue(due_at, now, ports.limits)) {
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

/// Reads a row once more that looked wrong: it may have moved on since, or be of another period.
pub(super) async fn confirm(
    ports: Ports<'_>,
    suspicion: Suspicion,
    books: &mut Books,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    let Suspicion { key, .. } = suspicion;
    let entry = ports.ledger.load(&key).await?;
    let now = ports.clock.now();
    let entry = entry.filter(|entry| !entry.is_expired(now));
    books.row(&key, entry.as_ref().map(|entry| Row::of(entry, now)));
    if let Some(discrepancy) = books.judge(&key, now, ports.limits) {
        sheet.find(discrepancy, Some(&key), books.facts(&key));
    }
    Ok(())
}
