//! Every bound of the ledger on DynamoDB, with unit and source.

use std::time::Duration;

/// Longest row as JSON, in bytes. Source: an item of DynamoDB has at most 400 KiB (409,600 bytes,
/// names of attributes and UTF-8 values); what lies beside the JSON takes less than 5,000.
pub const ROW_BYTES_MAX: usize = 400_000;

/// Longest id of an intent and name of a control row, in bytes, so that every key made of them is
/// within DynamoDB's bounds: 2,048 bytes for a partition key, 1,024 for a sort key.
pub const NAME_BYTES_MAX: usize = 512;

/// Longest sort key of an index, in bytes. Source: DynamoDB, "Constraints".
pub const SORT_KEY_BYTES_MAX: usize = 1_024;

/// Shards of what is open in the index `due`. One shard bears 1,000 index writes a second, and a
/// job costs about seven. May be raised, never lowered: rows stay in the shard that they are in
/// until they are written again.
pub const DUE_SHARDS: u8 = 8;

/// Shards of the intents in the index `listing`. May be raised, never lowered.
pub const RUN_SHARDS: u8 = 4;

/// Rows in one page of a listing.
pub const PAGE_ROWS_MAX: u32 = 1_000;

/// Bytes of rows after which a page ends early, so that a page of large rows fits the memory of a
/// small function: 8 MB, and at most 40 MB with the batch that goes beyond.
pub const PAGE_BYTES_MAX: usize = 8_000_000;

/// Pages of one query of an index; a page has 1 MB, about 4,000 places.
pub const QUERY_PAGES_MAX: u32 = 16;

/// Keys in one batch of reads. Source: DynamoDB, `BatchGetItem` takes at most 100.
pub const BATCH_KEYS_MAX: usize = 100;

/// Calls for one batch of reads. Each answer brings 16 MB or less and may leave keys unprocessed;
/// a full batch of the largest rows takes three.
pub const BATCH_CALLS_MAX: u32 = 32;

/// Calls in a row that bring none of a batch's rows before the table counts as throttled.
pub const BATCH_BARREN_MAX: u32 = 6;

/// Wait before a batch's unprocessed keys are asked for again, doubled with each call that brings
/// none of them: 50 ms to 0.8 s, 1.5 s in all.
pub const BATCH_WAIT: Duration = Duration::from_millis(50);

/// Open posts that one page of the question for unresolved ones looks at: 100 kB, 12 read units.
pub const UNRESOLVED_PAGE: i32 = 500;

/// Pages of that question. Beyond 16,000 open posts of one kind the answer is that one may be
/// unresolved, which only makes a row wait.
pub const UNRESOLVED_PAGES_MAX: u32 = 32;

/// Pages that a listing scans in one call, of 1 MB each: the call ends in time, and its cursor goes
/// on from there.
pub const SCAN_PAGES_MAX: u32 = 8;

/// Items that a listing without a filter looks at per page, at least: the table holds intents
/// beside entries.
pub const SCAN_ITEMS_MIN: u32 = 100;

/// Parts in which the table is counted at once.
pub const COUNT_SEGMENTS: u8 = 4;

/// Pages of 1 MB that are counted per segment: 80 GB of table in all, some 50 million rows.
pub const COUNT_PAGES_MAX: u32 = 20_000;
