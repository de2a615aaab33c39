//! Ports that fail where a plan says so: before the effect, after it (the answer is lost), or not
//! in time.
//!
//! That is the whole theory of our failures: a caller that survives each of these at each of its
//! calls survives a crash at each of its instructions.

mod dead_letters;
mod jobs;
mod ledger;
mod plan;
mod queue;
mod results;
mod secrets;
mod vault;
mod webhooks;

pub use dead_letters::FaultyDeadLetters;
pub use jobs::FaultyJobs;
pub use ledger::FaultyLedger;
pub use plan::{Fault, FaultPlan, HANG, Pace, Surroundings};
pub use queue::FaultyQueue;
pub use results::FaultyResults;
pub use secrets::FaultySecrets;
pub use vault::FaultyVault;
pub use webhooks::FaultyWebhooks;
