//! The platform's API over HTTP: the ports `Jobs` and `Webhooks`, and what the command line needs beside it.
//!
//! This crate promises that every call ends within its deadline and within its byte cap, that a
//! paid POST is sent at most once and never called refused when it may have been taken, that a
//! job id cannot change a path, that answers are kept byte for byte, and that neither the API key
//! nor an answer's body reaches an error, a log line or `Debug` output. It knows no ledger and no
//! policy: what an error means for a job is decided elsewhere.

mod account;
mod answer;
mod batch;
mod body;
mod client;
mod config;
mod crawl;
mod error_body;
mod extract;
mod jobs;
mod lists;
mod pace;
mod parent;
mod redacted;
mod rekeyed;
mod room;
mod status;
mod submission;
mod webhooks;

#[cfg(test)]
mod loopback;
#[cfg(test)]
mod tests;

pub use account::{
    Concurrency, DayRequests, DayTokens, Health, HealthStatus, Statistics, StatisticsWindow, Usage,
};
pub use client::ScraperApi;
pub use config::{ApiKey, ApiKeyError, BuildError, Config};
pub use extract::ExtractedPage;
pub use pace::{Answered, Pace, PaceSettings, Paced, Turn};
pub use rekeyed::{KeySource, KeyTrouble, Rekeyed};
pub use room::one_answer_at_a_time;
