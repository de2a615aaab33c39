//! Ports in memory for tests: strict where a real service is strict, and deterministic.
//!
//! They keep what they are given in encoded form, as the real adapters do, so that a value that
//! does not survive encoding is noticed in the first test that uses it.

mod clock;
mod dead_letters;
mod event_clock;
mod jobs;
mod ledger;
mod queue;
mod random;
mod results;
mod secrets;
mod vault;
mod webhooks;

pub use clock::ManualClock;
pub use dead_letters::MemoryDeadLetters;
pub use event_clock::EventClock;
pub use jobs::{Call, ScriptedJobs, ScriptedSubmit, extract_answer, parent_answer};
pub use ledger::MemoryLedger;
pub use queue::MemoryQueue;
pub use random::SeededRandom;
pub use results::MemoryResults;
pub use secrets::MemorySecrets;
pub use vault::MemoryVault;
pub use webhooks::{MemoryWebhooks, WebhookCall};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The guarded value, also after a test panicked while it held the guard.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
