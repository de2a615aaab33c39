//! The ledger on a table of a real server, and on one whose answers get lost.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

mod conformance;
mod server;
mod table;
