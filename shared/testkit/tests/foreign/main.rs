//! Bytes of strangers, where the domain reads them: each module is one property over any bytes.
//!
//! The fuzz targets of the same names (see `fuzz/README.md`) search for inputs that break one;
//! these tests try the seeds of those targets, and every input that once broke something.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a property that does not hold is told by a panic"
)]

mod content;
mod envelope;
mod gzip;
mod header;
mod names;
mod retry_after;
mod scheme;
mod task;
