//! The vocabulary, the decisions and the steps of Gleaner.
//!
//! This crate promises that each job which the platform finished ends in exactly one terminal
//! state, that a result appears once, and that a paid call is made once per decision. It knows
//! no cloud service, no HTTP client, no database, no environment and no clock: those are
//! [`ports`], and time and chance come in through them.

pub mod adopt;
pub mod announce;
pub mod asked;
pub mod audit;
pub mod backoff;
pub mod claim;
pub mod content;
pub mod entry;
pub mod envelope;
pub mod explain;
pub mod follow_up;
pub mod intent;
pub mod job;
pub mod keyring;
pub mod letters;
pub mod limits;
pub mod looks;
pub mod object;
pub mod pause;
pub mod place;
pub mod poll;
pub mod ports;
pub mod post;
mod probe;
mod progress;
pub mod receive;
pub mod reconcile;
pub mod redrive;
pub mod replay;
pub mod request;
pub mod retire;
pub mod rotate;
pub mod run;
pub mod signature;
pub mod spend;
pub mod steps;
pub mod submit;
pub mod subscribe;
pub mod subscriptions;
pub mod sweep;
pub mod task;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tick;
pub mod time;
mod together;
pub mod update;
pub mod within;
pub mod work;
