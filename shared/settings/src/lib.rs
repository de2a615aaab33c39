//! Every setting of Gleaner: one table, four sources, one checked value.
//!
//! This crate promises that a setting is documented where it is read, that all problems are
//! reported together, that a key or variable which nobody reads is an error, and that no secret's
//! value is in an error, in `Debug` output or in what is shown. It reads neither the environment
//! nor the disk: both come in.

mod resolve;
mod secret_text;
mod settings;
mod source;

pub use resolve::{Problems, resolve};
pub use secret_text::SecretText;
pub use settings::{Pacing, Receiver, Settings};
pub use source::{FileText, Given, Sources};
