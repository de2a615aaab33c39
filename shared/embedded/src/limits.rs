//! Every bound of the embedded ledger and queue, with unit and source.

use std::time::Duration;

/// Longest row as JSON, in bytes: 400 kB, so that every row also fits an item of `DynamoDB`.
pub const ROW_BYTES_MAX: usize = 400_000;

/// Operations that share one commit. At 20 µs each a full group holds the write lock for about
/// 10 ms, which is short beside the patience of another process.
pub const GROUP_OPERATIONS_MAX: usize = 512;

/// Operations that wait for the writer; beyond that, callers wait. At 400 kB each the worst case
/// is 400 MB, at the usual 1 kB it is 1 MB.
pub const WAITING_WRITES_MAX: usize = 1_024;

/// Reads that wait for a reader; beyond that, callers wait.
pub const WAITING_READS_MAX: usize = 1_024;

/// Connections that read, each with a thread of its own. Reads are short and mostly served from
/// the page cache; more threads than cores gain nothing.
pub const READERS: usize = 2;

/// Rows in one page of a listing.
pub const PAGE_ROWS_MAX: u32 = 1_000;

/// Tasks taken at once.
pub const TAKE_MAX: u32 = 256;

/// Tasks that are counted to know how many wait; of more it is said that there are so many. Counted
/// along their index, which takes some milliseconds.
pub const TASKS_COUNTED_MAX: u32 = 100_000;

/// Holds of a former server that the next one ends at its start: far more than workers have.
pub const TASKS_RELEASED_MAX: u32 = 4_096;

/// How often a task may have been taken for its hold to be ended at a start. Whatever ends one
/// server after the other does so a few times a minute at most from then on.
pub const TAKES_RELEASED_MAX: u32 = 16;

/// Rows removed in one call of [`SqliteStore::remove_expired`](crate::SqliteStore::remove_expired),
/// so that nobody waits long behind it.
pub const REMOVALS_MAX: u32 = 1_000;

/// How long a write waits for another process's lock. Below the receiver's deadline of 2.5 s, so
/// that a delivery is answered with what happened.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Tries to switch a new file to WAL while other processes open it too.
pub const OPEN_TRIES_MAX: u32 = 16;

/// Prepared statements kept per connection; the crate has fewer than 40.
pub const STATEMENTS_MAX: usize = 48;

/// Page cache of the writing connection, in KiB: the hot part of the indexes of a million rows.
pub const WRITE_CACHE_KIB: u32 = 16 * 1_024;

/// Operations after which what is in the WAL is moved into the file, beside the writer: some
/// thousand pages, enough that pages which change often are moved seldom.
pub const CHECKPOINT_OPERATIONS: usize = 2_048;

/// Pages in the WAL before the writer itself moves what is left, so that the WAL begins anew: 48
/// MiB of 4 KiB pages. With fewer it would stop more often, and have more to move.
pub const CHECKPOINT_PAGES: u32 = 12_000;

/// Size to which an emptied WAL is cut, in bytes, so that one large transaction does not keep the
/// disk for ever. Above [`CHECKPOINT_PAGES`]: a WAL that is not cut is written over in place,
/// which the disk syncs faster than a growing file.
pub const WAL_BYTES_KEPT: u32 = 64 * 1_024 * 1_024;

/// Longest secrets file, in bytes: 64 KiB.
pub const SECRETS_FILE_BYTES_MAX: usize = 64 * 1_024;
