//! The receiver's own process, between a runtime API and services on loopback: what starting it
//! refuses, and what no event and no outage can do to it.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot begin fails"
)]

mod events;
mod outage;
mod site;
mod start;
mod table;
mod trouble;
