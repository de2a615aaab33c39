//! The receiver against everything that other receivers were seen to do wrong.

pub(crate) mod bench;
mod faults;
mod races;
mod rotation;
mod traps;
