//! Reading many rows by their keys.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::KeysAndAttributes;
use domain::ports::{ErrorKind, PortError};

use crate::attributes::JSON;
use crate::index::Found;
use crate::item::{Item, Key, text};
use crate::ledger::{DynamoLedger, failed, trouble};
use crate::limits::{
    BATCH_BARREN_MAX, BATCH_CALLS_MAX, BATCH_KEYS_MAX, BATCH_WAIT, PAGE_BYTES_MAX,
};

/// The rows at places, in their order.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// Those that are there.
    pub(crate) items: Vec<Item>,
    /// Where the page ended because its rows are large; `None` if all places were read.
    pub(crate) cut_at: Option<String>,
}

impl DynamoLedger {
    /// Reads the rows at places, consistently. Rows that are gone are left out, and one that is
    /// found at two places is read once: a row that moves may be in both partitions for a while.
    pub(crate) async fn rows(
        &self,
        operation: &'static str,
        places: &[Found],
    ) -> Result<Rows, PortError> {
        let mut rows = Rows::default();
        let (mut bytes, mut read) = (0, 0);
        let mut seen = std::collections::BTreeSet::new();
        for chunk in places.chunks(BATCH_KEYS_MAX) {
            let keys: Vec<_> =
                chunk.iter().map(|place| &place.key).filter(|key| seen.insert(*key)).collect();
            let mut batch = self.batch(operation, &keys).await?;
            for key in keys {
                let Some(item) = batch.remove(key) else { continue };
                bytes += text(&item, JSON).map_or(0, str::len);
                rows.items.push(item);
            }
            read += chunk.len();
            if bytes > PAGE_BYTES_MAX && read < places.len() {
                rows.cut_at = chunk.last().map(|place| place.sort.clone());
                break;
            }
        }
        Ok(rows)
    }

    /// Reads up to [`BATCH_KEYS_MAX`] different keys. What the table leaves unprocessed is asked
    /// for again: at once while rows come, with growing pauses while none do.
    pub(crate) async fn batch(
        &self,
        operation: &'static str,
        keys: &[&Key],
    ) -> Result<BTreeMap<Key, Item>, PortError> {
        let mut rows = BTreeMap::new();
        let mut left: Vec<Item> = keys.iter().map(|key| (*key).clone().into_item()).collect();
        let mut barren = 0;
        for _ in 0..BATCH_CALLS_MAX {
            if left.is_empty() {
                return Ok(rows);
            }
            let asked = KeysAndAttributes::builder()
                .set_keys(Some(left))
                .consistent_read(true)
                .build()
                .map_err(|error| crate::ledger::invalid(operation, error))?;
            let got = self
                .client
                .batch_get_item()
                .request_items(&*self.table, asked)
                .send()
                .await
                .map_err(|error| failed(operation, error))?;
            let before = rows.len();
            for item in got.responses.into_iter().flatten().flat_map(|(_, items)| items) {
                if let Some(key) = Key::of(&item) {
                    rows.insert(key, item);
                }
            }
            let unprocessed = got.unprocessed_keys.into_iter().flatten();
            left = unprocessed.flat_map(|(_, keys)| keys.keys).collect();
            if left.is_empty() || rows.len() > before {
                barren = 0;
                continue;
            }
            barren += 1;
            if barren >= BATCH_BARREN_MAX {
                break;
            }
            self.clock.sleep(BATCH_WAIT.saturating_mul(1 << (barren - 1))).await;
        }
        if left.is_empty() {
            return Ok(rows);
        }
        Err(trouble(operation, ErrorKind::Throttled, "the table left keys unprocessed"))
    }
}
