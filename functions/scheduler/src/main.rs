//! The process of the scheduler.
fn main() {}
