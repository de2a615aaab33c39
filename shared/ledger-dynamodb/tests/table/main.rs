//! The ledger on a table of a real server, and on one whose answers get lost.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that cannot begin fails, and calls are JSON"
)]

mod conformance;
mod costs;
mod crash;
mod judge;
mod large;
mod pairs;
mod server;
mod table;
mod trouble;
mod wire;
