//! Logs and metrics: what is counted, what is said, and where both go.
//!
//! The embedded server and the functions on AWS Lambda call the same functions of [`tell`] at the
//! end of each step; what differs is where it goes: [`prometheus::exposition`] answers a scrape,
//! [`Emf`] writes a line per invocation. This crate promises that nothing is counted that the catalogue does not
//! name, that no secret, signature, body or header's value is in a line, and that a line about
//! foreign text is bounded. It knows neither HTTP nor AWS.
//!
//! # Why no metrics library
//!
//! The names are few and fixed, so that an atomic number each is all that is needed; a counter is a
//! variant of an enum, and a misspelt one does not compile. The `metrics` facade has one recorder
//! for the whole process, where two servers of one test would count into each other, and finds each
//! number by hashing its name. With `metrics-exporter-prometheus` it brings sixteen further crates
//! (lock-free maps, quantile sketches, a clock of its own) into functions that would use none of
//! them, and neither writes the embedded metric format.

pub mod catalogue;
pub mod emf;
mod logs;
mod markdown;
mod measure;
mod metrics;
mod panics;
pub mod prometheus;
pub mod tell;
mod text;
mod timing;

pub use catalogue::{Counter, Family, Gauge, Timing};
pub use emf::Emf;
pub use logs::{AlreadyStarted, Form, Sink, invocation, start, start_into};
pub use markdown::markdown;
pub use measure::measure;
pub use metrics::Metrics;
pub use text::{Chain, Foreign};
