//! The process of the worker.
fn main() {}
