//! What a person asks the ledger.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use async_trait::async_trait;
use domain::entry::Entry;
use domain::intent::Intent;
use domain::ports::{Cursor, EntryFilter, Inspection, Page, PortError};

use crate::attributes::{INTENT, JOB, LISTING, REASON, SK, STATE};
use crate::cursor;
use crate::due::{page, page_rows, place_of};
use crate::index::Range;
use crate::item::{Item, Key, decode_entry, decode_intent, text};
use crate::ledger::DynamoLedger;
use crate::limits::{PAGE_ROWS_MAX, SCAN_ITEMS_MIN};
use crate::places::{all_listed, intents_of, reference_partition, run_partition, run_partitions};
use crate::scan::Selection;

/// The listings in cursors.
const BY_REF: &str = "ref";
const TABLE: &str = "table";
const INTENTS: &str = "intents";

#[async_trait]
impl Inspection for DynamoLedger {
    /// Rows with a ref come by kind and id, others in the table's own order, which never changes.
    async fn list_entries(
        &self,
        filter: &EntryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        match &filter.reference {
            Some(reference) => self.list_by_ref(filter, reference, after, limit).await,
            None => self.list_table(filter, after, limit).await,
        }
    }

    async fn count_entries(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.count("count_entries", JOB).await
    }

    async fn count_intents(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.count("count_intents", INTENT).await
    }

    async fn list_intents(
        &self,
        run: Option<&str>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        let range = Range {
            index: LISTING,
            partitions: run.map_or_else(run_partitions, |run| vec![run_partition(run)]),
            bounds: intents_of(run),
            after: place_of("list_intents", INTENTS, after)?,
            limit: page_rows(limit),
        };
        let places = self.places("list_intents", &range).await?;
        let rows = self.rows("list_intents", &places.found).await?;
        let next = rows.cut_at.or(places.next).map(|at| cursor::encode(INTENTS, &at));
        Ok(page(&rows.items, next, decode_intent))
    }
}

impl DynamoLedger {
    async fn list_by_ref(
        &self,
        filter: &EntryFilter,
        reference: &str,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        let range = Range {
            index: LISTING,
            partitions: vec![reference_partition(reference)],
            bounds: all_listed(),
            after: place_of("list_entries", BY_REF, after)?,
            limit: page_rows(limit),
        };
        let places = self.places("list_entries", &range).await?;
        let rows = self.rows("list_entries", &places.found).await?;
        let next = rows.cut_at.or(places.next).map(|at| cursor::encode(BY_REF, &at));
        let mut page = page(&rows.items, next, decode_entry);
        page.items.retain(|entry| {
            let has = entry.link.as_ref().and_then(|link| link.reference.as_deref());
            has == Some(reference)
                && filter.state.is_none_or(|state| state == entry.state.name())
                && filter.kind.is_none_or(|kind| kind == entry.key.kind)
        });
        Ok(page)
    }

    async fn list_table(
        &self,
        filter: &EntryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        let after: Option<(String, String)> = place_of("list_entries", TABLE, after)?;
        let after = after.map(|(pk, sk)| Key { pk, sk });
        let mut equal = Vec::new();
        if let Some(state) = filter.state {
            equal.push((STATE, state.as_str().to_owned()));
        }
        if let Some(kind) = filter.kind {
            equal.push((SK, kind.as_str().to_owned()));
        }
        // Few rows may be in a state: then a page of the table is looked at as a whole.
        let looked_at = filter.state.is_none().then(|| limit.clamp(SCAN_ITEMS_MIN, PAGE_ROWS_MAX));
        let selection = Selection { begins: JOB, equal };
        let limit = page_rows(limit);
        let scanned = self.scan("list_entries", &selection, after, limit, looked_at).await?;
        let next = scanned.next.map(|key| cursor::encode(TABLE, &(key.pk, key.sk)));
        Ok(page(&scanned.items, next, decode_entry))
    }

    async fn count(
        &self,
        operation: &'static str,
        begins: &'static str,
    ) -> Result<BTreeMap<String, u64>, PortError> {
        let counts = Mutex::new(BTreeMap::new());
        let selection = Selection { begins, equal: Vec::new() };
        let count = |item: &Item| {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            let state = text(item, STATE).unwrap_or("unknown").to_owned();
            *counts.entry(state).or_default() += 1;
            if let Some(reason) = text(item, REASON) {
                *counts.entry(format!("dead:{reason}")).or_default() += 1;
            }
        };
        self.scan_all(operation, &selection, &[STATE, REASON], count).await?;
        Ok(counts.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
