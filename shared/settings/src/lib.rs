//! Every setting of Gleaner: one table, four sources, one checked value.
//!
//! This crate promises that a setting is documented where it is read, that all problems are
//! reported together, that a key or variable which nobody reads is an error, and that no secret's
//! value is in an error, in `Debug` output or in what is shown. It reads neither the environment
//! nor the disk: both come in.
//!
//! The command line has [`resolve()`]. A function on AWS Lambda has variables alone: it gives
//! `std::env::vars_os()` to [`Environment::of`], starts its log at [`Environment::log_level`], and
//! loads the settings of its role. Problems go to the log as one line, and the process fails.

mod environment;
mod form;
mod function;
mod markdown;
mod problem;
mod reader;
mod relations;
mod resolve;
mod role;
mod secret_text;
mod settings;
mod source;
mod table;
mod upkeep;

pub use environment::{Environment, LogLevel};
pub use form::{Form, Marks};
pub use function::{
    Api, ReceiverSettings, RotatorSettings, SchedulerSettings, Shared, WorkerSettings,
};
pub use markdown::markdown;
pub use problem::{Problem, Problems};
pub use reader::InForce;
pub use resolve::resolve;
pub use role::{Need, ReadBy, Role, read_by_function};
pub use secret_text::SecretText;
pub use settings::{Aws, Backend, Pacing, Receiver, Settings};
pub use source::{FileText, Given, Origin, Sources};
pub use table::{Default, OTHER_VARIABLES, Setting, table};

#[cfg(test)]
mod tests;
