//! What is counted and said at the end of each step, by the embedded server and by the functions
//! alike. Each line is explained in docs/logging.md.

mod deliveries;
mod rotations;
mod tasks;
mod ticks;
mod upkeep;

pub use deliveries::{delivery, delivery_unread};
pub use rotations::{retired, rotated};
pub use tasks::{task, task_panicked};
pub use ticks::{expired_removed, polled, swept, tick};
pub use upkeep::ticked;

#[cfg(test)]
mod tests;
