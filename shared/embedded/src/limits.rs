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
pub const WRITE_CACHE_KIB: u32 = 32 * 1_024;

/// Pages in the WAL before they are moved into the file: 16 MiB of 4 KiB pages. `SQLite`'s default
/// of 1,000 moves them four times as often.
pub const CHECKPOINT_PAGES: u32 = 4_000;

/// Size to which an emptied WAL is cut, in bytes: four times what lies between two moves, so that
/// one large transaction does not keep the disk for ever.
pub const WAL_BYTES_KEPT: u32 = 64 * 1_024 * 1_024;

/// Longest secrets file, in bytes: 64 KiB.
pub const SECRETS_FILE_BYTES_MAX: usize = 64 * 1_024;
