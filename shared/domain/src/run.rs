//! A run over the result pages of a batch or crawl.

use serde::{Deserialize, Serialize};

use crate::limits::RESULT_PAGE_MAX;
use crate::ports::PageRequest;
use crate::time::Timestamp;

/// Progress of one run; saved in the entry after each part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Names the run and its parts; random.
    pub id: String,
    /// Which run of this entry it is; the first is 1.
    pub number: u32,
    /// Fencing token of the worker that holds the run.
    pub holder: String,
    /// When another worker may take the run over.
    pub held_until: Timestamp,
    /// Items per page; smaller after a page was too large.
    pub page_size: u32,
    /// The next page to fetch, counted from 1.
    pub next_page: u32,
    /// The parts that are stored, in order.
    pub parts: Vec<Part>,
}

/// One stored part: the items of one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Key of the object, relative to the root of the store.
    pub key: String,
    /// Items in it.
    pub items: u64,
    /// Size as it lies there, in bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes as they lie there, lower-case hex.
    pub sha256: String,
}

/// Page sizes, each dividing the one before, so that a run can change between them wherever the
/// pages of both begin at the same item.
const PAGE_SIZES: [u32; 4] = [RESULT_PAGE_MAX, 25, 5, 1];

impl Run {
    /// The page that comes next.
    pub const fn next(&self) -> PageRequest {
        PageRequest { page: self.next_page, page_size: self.page_size }
    }

    /// The run with another page next.
    #[must_use]
    pub fn at(self, page: PageRequest) -> Self {
        Self { next_page: page.page, page_size: page.page_size, ..self }
    }
}

/// The page of the next smaller size that begins at the same item; `None` for a single item.
pub fn smaller_page(page: PageRequest) -> Option<PageRequest> {
    resized(page, PAGE_SIZES.into_iter().find(|size| *size < page.page_size)?)
}

/// The page of the next larger size, if it begins at the same item.
pub fn larger_page(page: PageRequest) -> Option<PageRequest> {
    resized(page, PAGE_SIZES.into_iter().rev().find(|size| *size > page.page_size)?)
}

fn resized(page: PageRequest, page_size: u32) -> Option<PageRequest> {
    let items = page.page.saturating_sub(1).saturating_mul(page.page_size);
    items.is_multiple_of(page_size).then(|| PageRequest { page: items / page_size + 1, page_size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(page: u32, page_size: u32) -> PageRequest {
        PageRequest { page, page_size }
    }

    #[test]
    fn pages_change_their_size_only_where_both_begin_at_the_same_item() {
        assert_eq!(smaller_page(page(1, 50)), Some(page(1, 25)));
        assert_eq!(smaller_page(page(3, 50)), Some(page(5, 25)));
        assert_eq!(smaller_page(page(5, 25)), Some(page(21, 5)));
        assert_eq!(smaller_page(page(21, 5)), Some(page(101, 1)));
        assert_eq!(smaller_page(page(101, 1)), None);
        assert_eq!(larger_page(page(101, 1)), Some(page(21, 5)));
        assert_eq!(larger_page(page(102, 1)), None);
        assert_eq!(larger_page(page(6, 25)), None);
        assert_eq!(larger_page(page(7, 25)), Some(page(4, 50)));
        assert_eq!(larger_page(page(4, 50)), None);
    }
}
