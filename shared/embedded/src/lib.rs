//! The ledger and the queue of one machine, in one `SQLite` file.
//!
//! [`SqliteStore`] implements the ports of the ledger and of the queue. What it reports as written
//! is synced to disk: the file is in WAL mode with `synchronous=FULL`, and concurrent writes share
//! a transaction, so that durability costs one fsync per group and not one per write.
//!
//! Several processes may use one file on a local disk at once; two *servers* may not, see
//! [`ServerLock`]. The file has companions (`-wal`, `-shm`) that belong to it: mount, move and copy
//! its directory, never the `.db` alone, and back up with [`SqliteStore::backup`].

mod announce;
mod backup;
mod checkpointer;
mod connection;
mod control;
mod counts;
mod cursor;
mod entries;
mod failure;
mod file_lock;
mod filesystem;
mod holds;
mod inspection;
mod intents;
pub mod limits;
mod pairs;
mod queue;
mod readers;
mod row;
mod schema;
pub mod secrets;
mod server_lock;
mod store;
#[cfg(test)]
mod testing;
mod writer;

pub use backup::BackupError;
pub use connection::OpenError;
pub use filesystem::{Concern, filesystem_concern};
pub use schema::{APPLICATION_ID, SCHEMA_VERSION};
pub use server_lock::{LockError, ServerLock};
pub use store::{Settings, SqliteStore};
