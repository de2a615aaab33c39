//! A run over the result pages of a batch or crawl.

use serde::{Deserialize, Serialize};

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
