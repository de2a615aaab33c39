//! What each port promises, one function per behaviour. A behaviour that only one adapter has is
//! not part of the port.
//!
//! Each function gets an adapter of its own, empty at first. It fails by panicking.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a behaviour that is missing is told by a panic"
)]

pub mod clock;
pub mod control;
pub mod dead_letters;
pub mod due;
pub mod entries;
pub mod inspection;
pub mod intents;
pub mod jobs;
mod jobs_faults;
pub mod jobs_lists;
pub mod jobs_pages;
mod jobs_subject;
pub mod jobs_trouble;
pub mod pairs;
pub mod queue;
pub mod results;
mod samples;
pub mod secrets;
mod secrets_subject;
mod subjects;
pub mod vault;
mod vault_subject;

pub use jobs_faults::{api_faults, job_faults};
pub use jobs_subject::{CallOf, Fate, JobsCaps, JobsPlatform, JobsSubject, Trouble};
pub use secrets_subject::{Absence, Kept, SecretsCaps, SecretsSubject};
pub use subjects::{
    ClockSubject, DeadLettersSubject, LedgerCaps, LedgerSubject, QueueSubject, ResultsSubject,
};
pub use vault_subject::VaultSubject;
