//! Every setting of Gleaner: one table, four sources, one checked value.
//!
//! This crate promises that a setting is documented where it is read, that all problems are
//! reported together, that a key or variable which nobody reads is an error, and that no secret's
//! value is in an error, in `Debug` output or in what is shown. It reads neither the environment
//! nor the disk: both come in.

mod form;
mod markdown;
mod problem;
mod reader;
mod relations;
mod resolve;
mod secret_text;
mod settings;
mod source;
mod table;

pub use form::Form;
pub use markdown::markdown;
pub use problem::{Problem, Problems};
pub use reader::InForce;
pub use resolve::resolve;
pub use secret_text::SecretText;
pub use settings::{Pacing, Receiver, Settings};
pub use source::{FileText, Given, Origin, Sources};
pub use table::{Default, OTHER_VARIABLES, Setting, table};

#[cfg(test)]
mod tests;
