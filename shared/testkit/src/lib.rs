//! What adapters of the ports must do, and what callers of the ports must survive.
//!
//! [`conformance`] holds one function per behaviour of a port; a macro per port, such as
//! [`entries_conformance!`], makes a test of each for one adapter. [`faulty`] wraps any adapter
//! and lets chosen calls fail before or after their effect, or hang. [`crash`] runs the steps on any
//! ledger and queue with each of their calls failing so, and [`scenes`] on the same what goes wrong
//! around them. [`lambda`] plays the runtime API to a
//! function's process, and [`starting`] starts one that lacks something. [`platform`] is the simulated platform as ports, and [`simulation`] the whole
//! product on it, by seeds. [`corpus`] reads the inputs of the fuzz targets, so that ordinary tests
//! check them as well.

pub mod conformance;
pub mod corpus;
pub mod crash;
pub mod faulty;
pub mod lambda;
mod macros;
pub mod platform;
pub mod scenes;
pub mod simulation;
pub mod starting;

use std::future::Future;

/// Runs a test's future on a runtime of its own, in one thread.
///
/// # Panics
/// When no runtime can be made.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => unreachable!("no runtime for a test: {error}"),
    }
}
