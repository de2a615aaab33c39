//! Calls of a real client over loopback: what its configuration does, and what its errors become.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test that cannot begin fails")]

mod errors;
mod patience;
mod places;
mod trust;
mod wire;
