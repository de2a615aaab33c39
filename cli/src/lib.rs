//! The `gleaner` command line, and the embedded pipeline behind it.
//!
//! Standard output carries data only; talk goes to standard error. Every verb ends with one of
//! the codes of [`exit::Exit`].

mod args;
mod backend;
mod commands;
pub mod demo;
pub mod error;
pub mod exit;
mod input;
mod logging;
mod output;
pub mod pipeline;
pub mod serve;
mod submitting;
mod subscribing;

pub use args::run;
