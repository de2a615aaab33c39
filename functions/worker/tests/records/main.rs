//! The worker fed with records, over ports in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

mod answers;
mod rig;
mod slow;
mod trouble;
