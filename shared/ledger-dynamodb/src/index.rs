//! Reading an index in order: a range of several partitions at once, merged.

use domain::ports::PortError;
use futures_util::future::try_join_all;

use crate::attributes::Index;
use crate::item::{Key, string, text};
use crate::ledger::{DynamoLedger, failed};
use crate::limits::QUERY_PAGES_MAX;

/// What to read.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub(crate) index: Index,
    pub(crate) partitions: Vec<String>,
    /// First and last sort key, both inclusive.
    pub(crate) bounds: (String, String),
    /// The sort key after which a listing goes on.
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
}

/// One item of an index: where it sorts, and the key of its row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) sort: String,
    pub(crate) key: Key,
}

/// What was read, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) found: Vec<Found>,
    /// After which sort key there may be more.
    pub(crate) next: Option<String>,
}

/// What was read of one partition.
#[derive(Debug, Default)]
struct Part {
    found: Vec<Found>,
    /// Up to where the partition was read, unless to its end.
    read_to: Option<String>,
}

impl DynamoLedger {
    /// Reads up to `limit` places of a range, whatever partition they lie in, in the order of their
    /// sort keys.
    pub(crate) async fn places(
        &self,
        operation: &'static str,
        range: &Range,
    ) -> Result<Places, PortError> {
        let (lowest, highest) = &range.bounds;
        let from = range.after.as_ref().filter(|after| *after > lowest).unwrap_or(lowest);
        // Bounds in the wrong order are an error of DynamoDB.
        if from > highest {
            return Ok(Places { found: Vec::new(), next: None });
        }
        let parts = range.partitions.iter().map(|partition| {
            self.part(operation, range, partition, (from.as_str(), highest.as_str()))
        });
        Ok(merge(try_join_all(parts).await?, range.limit))
    }

    async fn part(
        &self,
        operation: &'static str,
        range: &Range,
        partition: &str,
        (from, to): (&str, &str),
    ) -> Result<Part, PortError> {
        // One more, to know whether there is more, and the one after which the listing goes on,
        // since the bounds of a query are inclusive.
        let wanted = range.limit.saturating_add(2);
        let mut part = Part::default();
        let mut start = None;
        for _ in 0..QUERY_PAGES_MAX {
            let left = wanted.saturating_sub(part.found.len());
            let page = self
                .client
                .query()
                .table_name(&*self.table)
                .index_name(range.index.name)
                .key_condition_expression("#partition = :partition AND #sort BETWEEN :from AND :to")
                .expression_attribute_names("#partition", range.index.partition)
                .expression_attribute_names("#sort", range.index.sort)
                .expression_attribute_values(":partition", string(partition))
                .expression_attribute_values(":from", string(from))
                .expression_attribute_values(":to", string(to))
                .limit(i32::try_from(left).unwrap_or(i32::MAX))
                .set_exclusive_start_key(start)
                .send()
                .await
                .map_err(|error| failed(operation, error))?;
            for item in page.items.iter().flatten() {
                if let (Some(sort), Some(key)) = (text(item, range.index.sort), Key::of(item))
                    && range.after.as_deref().is_none_or(|after| sort > after)
                {
                    part.found.push(Found { sort: sort.to_owned(), key });
                }
            }
            // Only the end of the partition has no such key: a page may be empty before.
            let Some(last) = page.last_evaluated_key else {
                part.read_to = None;
                return Ok(part);
            };
            let sort = last.get(range.index.sort).and_then(|sort| sort.as_s().ok());
            part.read_to = sort.cloned().or(part.read_to);
            start = Some(last);
            if part.found.len() > range.limit {
                break;
            }
        }
        Ok(part)
    }
}

/// The first places of all parts. What lies beyond the end of a part that was not read to its end
/// is left for the next page: that part may hold places before it.
fn merge(parts: Vec<Part>, limit: usize) -> Places {
    let horizon = parts.iter().filter_map(|part| part.read_to.clone()).min();
    let mut found: Vec<_> = parts.into_iter().flat_map(|part| part.found).collect();
    found.sort_unstable();
    let is_in_sight = |place: &Found| horizon.as_ref().is_none_or(|to| place.sort <= *to);
    let all = found.len();
    found.retain(is_in_sight);
    let is_cut = found.len() > limit || found.len() < all || horizon.is_some();
    found.truncate(limit);
    let is_full = found.len() == limit;
    let last = found.last().map(|place| place.sort.clone());
    let next = if is_full { last } else { horizon.or(last) };
    Places { found, next: next.filter(|_| is_cut) }
}

#[cfg(test)]
mod tests;
