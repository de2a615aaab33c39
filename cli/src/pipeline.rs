//! The adapters of one process, and the steps' view of them.

pub use domain::steps::Pipeline;
