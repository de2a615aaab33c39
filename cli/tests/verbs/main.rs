//! The verbs, run as processes against platforms on loopback.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets something unexpected shall panic"
)]

mod audit;
mod bad_input;
mod bench;
mod dead;
mod explain;
mod extract;
mod jobs;
mod poll;
mod results;
mod scripted;
mod shown;
mod submit;
mod upkeep;
