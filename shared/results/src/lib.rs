//! Results on disk and in memory, through the `object_store` crate.
//!
//! An object appears under its key whole and durably, or not at all, and is never overwritten:
//! see [`ObjectResults`]. What the objects are is told in `docs/results.md`.

mod disk;
mod error;
mod linked;
mod store;

pub use error::OpenError;
pub use store::ObjectResults;
