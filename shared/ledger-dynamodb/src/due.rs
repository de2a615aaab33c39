//! What is due: the index says where, the rows themselves say what.

use async_trait::async_trait;
use domain::entry::Entry;
use domain::intent::Intent;
use domain::ports::{Cursor, Due, Page, PortError};
use domain::time::Timestamp;

use crate::attributes::DUE;
use crate::cursor;
use crate::index::Range;
use crate::item::{DecodeError, Item, decode_entry, decode_intent};
use crate::ledger::{DynamoLedger, invalid};
use crate::limits::PAGE_ROWS_MAX;
use crate::places::{entries_until, entry_partitions, intent_partitions, intents_until};

/// The listings in cursors.
const ENTRIES: &str = "due";
const INTENTS: &str = "due_intents";

#[async_trait]
impl Due for DynamoLedger {
    async fn list_due(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        let range = Range {
            index: DUE,
            partitions: entry_partitions(),
            bounds: entries_until(now),
            after: place_of("list_due", ENTRIES, after)?,
            limit: page_rows(limit),
        };
        // A row that is not due any more has moved on while the index had not.
        let is_due =
            |entry: &Entry| entry.due_at.is_some_and(|at| at <= now) && !entry.state.is_terminal();
        self.due("list_due", ENTRIES, &range, decode_entry, is_due).await
    }

    async fn list_due_intents(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        let range = Range {
            index: DUE,
            partitions: intent_partitions(),
            bounds: intents_until(now),
            after: place_of("list_due_intents", INTENTS, after)?,
            limit: page_rows(limit),
        };
        let is_due =
            |intent: &Intent| intent.due_at.is_some_and(|at| at <= now) && intent.state.is_open();
        self.due("list_due_intents", INTENTS, &range, decode_intent, is_due).await
    }
}

impl DynamoLedger {
    async fn due<T>(
        &self,
        operation: &'static str,
        listing: &str,
        range: &Range,
        decode: impl Fn(&Item) -> Result<T, DecodeError> + Sync,
        is_due: impl Fn(&T) -> bool + Sync,
    ) -> Result<Page<T>, PortError> {
        let places = self.places(operation, range).await?;
        let rows = self.rows(operation, &places.found).await?;
        let next = rows.cut_at.or(places.next).map(|at| cursor::encode(listing, &at));
        let mut page = page(&rows.items, next, decode);
        page.items.retain(is_due);
        Ok(page)
    }
}

/// A page of these; what does not decode is left out and named.
pub(crate) fn page<T>(
    items: &[Item],
    next: Option<Cursor>,
    decode: impl Fn(&Item) -> Result<T, DecodeError>,
) -> Page<T> {
    let mut page = Page { items: Vec::new(), next, unreadable: Vec::new() };
    for item in items {
        match decode(item) {
            Ok(row) => page.items.push(row),
            Err(error) => page.unreadable.push(error.to_string()),
        }
    }
    page
}

/// The rows of a page.
pub(crate) fn page_rows(limit: u32) -> usize {
    usize::try_from(limit.clamp(1, PAGE_ROWS_MAX)).unwrap_or(usize::MAX)
}

/// The place of a cursor.
pub(crate) fn place_of<T: serde::de::DeserializeOwned>(
    operation: &'static str,
    listing: &str,
    after: Option<&Cursor>,
) -> Result<Option<T>, PortError> {
    cursor::decode(listing, after).map_err(|error| invalid(operation, error))
}
