//! Results on disk, in memory and on Amazon S3, through the `object_store` crate.
//!
//! An object appears under its key whole and durably, or not at all, and is never overwritten:
//! see [`ObjectResults`]. What the objects are is told in `docs/results.md`. S3 is behind the
//! feature `aws`; the feature `testing` has a strict S3 on loopback.

mod disk;
mod error;
mod linked;
#[cfg(feature = "aws")]
mod s3;
mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use error::OpenError;
#[cfg(feature = "aws")]
pub use s3::{S3Error, S3Settings, S3Tempo};
pub use store::ObjectResults;
