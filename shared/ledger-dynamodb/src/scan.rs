//! Reading the table itself: for a person, and never by a function.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::ports::{ErrorKind, PortError};
use futures_util::future::try_join_all;

use crate::attributes::PK;
use crate::item::{Item, Key, string};
use crate::ledger::{DynamoLedger, failed, trouble};
use crate::limits::{COUNT_PAGES_MAX, COUNT_SEGMENTS, SCAN_PAGES_MAX};

/// Which items to read: those whose partition key begins so, and whose attributes are these.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) begins: &'static str,
    pub(crate) equal: Vec<(&'static str, String)>,
}

impl Selection {
    fn expression(&self) -> String {
        let equal = (0..self.equal.len()).map(|number| format!(" AND #a{number} = :a{number}"));
        format!("begins_with(#pk, :begins){}", equal.collect::<String>())
    }

    fn names(&self) -> impl Iterator<Item = (String, String)> {
        let pk = ("#pk".to_owned(), PK.to_owned());
        let equal = self.equal.iter().enumerate();
        std::iter::once(pk)
            .chain(equal.map(|(number, (name, _))| (format!("#a{number}"), (*name).to_owned())))
    }

    fn values(&self) -> impl Iterator<Item = (String, AttributeValue)> {
        let begins = (":begins".to_owned(), string(self.begins));
        let equal = self.equal.iter().enumerate();
        std::iter::once(begins)
            .chain(equal.map(|(number, (_, value))| (format!(":a{number}"), string(value))))
    }
}

/// Items in the table's own order.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) items: Vec<Item>,
    /// After which key there may be more.
    pub(crate) next: Option<Key>,
}

impl DynamoLedger {
    /// Reads up to `limit` items after a key; fewer, or none, when [`SCAN_PAGES_MAX`] pages hold no
    /// more of them. `items_looked_at` bounds a page of the table.
    pub(crate) async fn scan(
        &self,
        operation: &'static str,
        selection: &Selection,
        after: Option<Key>,
        limit: usize,
        items_looked_at: Option<u32>,
    ) -> Result<Scanned, PortError> {
        let mut items: Vec<Item> = Vec::new();
        let mut start = after.map(Key::into_item);
        for _ in 0..SCAN_PAGES_MAX {
            let page = self
                .client
                .scan()
                .table_name(&*self.table)
                .filter_expression(selection.expression())
                .set_expression_attribute_names(Some(selection.names().collect()))
                .set_expression_attribute_values(Some(selection.values().collect()))
                .set_limit(items_looked_at.and_then(|items| i32::try_from(items).ok()))
                .set_exclusive_start_key(start)
                .send()
                .await
                .map_err(|error| failed(operation, error))?;
            items.extend(page.items.into_iter().flatten());
            start = page.last_evaluated_key;
            if items.len() > limit {
                items.truncate(limit);
                let next = items.last().and_then(Key::of);
                return Ok(Scanned { items, next });
            }
            if start.is_none() || items.len() == limit {
                break;
            }
        }
        Ok(Scanned { items, next: start.as_ref().and_then(Key::of) })
    }

    /// Gives some attributes of every selected item, in no order, to `each`.
    pub(crate) async fn scan_all(
        &self,
        operation: &'static str,
        selection: &Selection,
        attributes: &[&'static str],
        each: impl Fn(&Item) + Sync,
    ) -> Result<(), PortError> {
        let segments = (0..COUNT_SEGMENTS)
            .map(|segment| self.segment(operation, selection, attributes, segment, &each));
        try_join_all(segments).await.map(drop)
    }

    async fn segment(
        &self,
        operation: &'static str,
        selection: &Selection,
        attributes: &[&'static str],
        segment: u8,
        each: &(impl Fn(&Item) + Sync),
    ) -> Result<(), PortError> {
        let names = attributes.iter().enumerate();
        let names = names.map(|(number, name)| (format!("#p{number}"), (*name).to_owned()));
        let names: Vec<_> = names.collect();
        let projected: Vec<_> = names.iter().map(|(placeholder, _)| placeholder.clone()).collect();
        let mut start = None;
        for _ in 0..COUNT_PAGES_MAX {
            let page = self
                .client
                .scan()
                .table_name(&*self.table)
                .consistent_read(true)
                .segment(segment.into())
                .total_segments(COUNT_SEGMENTS.into())
                .filter_expression(selection.expression())
                .projection_expression(projected.join(", "))
                .set_expression_attribute_names(Some(
                    selection.names().chain(names.iter().cloned()).collect(),
                ))
                .set_expression_attribute_values(Some(selection.values().collect()))
                .set_exclusive_start_key(start)
                .send()
                .await
                .map_err(|error| failed(operation, error))?;
            page.items.iter().flatten().for_each(each);
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(());
            }
        }
        Err(trouble(operation, ErrorKind::Invalid, "the table is too large to be counted"))
    }
}
