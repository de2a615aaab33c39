//! The receiver fed with events, over ports in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

mod doors;
mod events;
mod front_door;
mod refused;
mod rig;
