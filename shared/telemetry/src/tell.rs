//! What is counted and said at the end of each step, by the embedded server and by the functions
//! alike. Each line is explained in docs/logging.md.

mod deliveries;
mod tasks;
mod ticks;

pub use deliveries::{delivery, delivery_unread};
pub use tasks::{task, task_panicked};
pub use ticks::{expired_removed, polled, swept, tick};

#[cfg(test)]
mod tests;
