//! Signing secrets in a Secrets Manager on loopback: the conformance suite, what a receiver makes
//! of rotations and trouble, and what the logs show.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test that cannot begin fails")]

mod conformance;
mod logs;
mod receiver;
mod rotation;
