//! Seeded simulations of the whole product: random operations, faults and clocks, with the promises
//! checked after every operation.
//!
//! A [`Scenario`] follows from its seed alone: submissions, deliveries in any order, workers, ticks,
//! rotations of the signing secrets and operators, one after the other and at once, on a platform in
//! bad weather with an account in trouble now and then; any call of any
//! port may fail before or after its effect, hang, or be the last that its process makes. At its end
//! all faults cease, and everything has to come to rest. The same scenario gives the same trace,
//! byte for byte, and one that breaks a promise can be cut down to the operations that it takes.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a simulation that meets something unexpected shall panic"
)]

mod account;
mod process;
mod promises;
mod rest;
mod scenario;
mod shrink;
mod upkeep;
mod witness;
mod world;

pub use account::Trouble;
pub use promises::Broken;
pub use scenario::{Operation, Ordeal, Scenario, Step};
pub use shrink::shrink;
pub use world::{Parts, Tamper, Untouched};

use world::World;

/// What a simulation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What happened, one line an operation: equal for equal scenarios.
    pub trace: Vec<String>,
    /// The promise that was broken, if one was.
    pub broken: Option<Broken>,
}

/// Tells of a broken promise: the operations that it takes, and what they did.
pub fn tell(scenario: &Scenario, tamper: &dyn Tamper) -> String {
    let short = shrink(scenario, tamper);
    let outcome = simulate(&short, tamper);
    let broken = outcome.broken.map(|broken| broken.to_string()).unwrap_or_default();
    format!("{broken}\n{short}\n{}", outcome.trace.join("\n"))
}

/// Runs a scenario to its end, or to the first promise that is broken.
pub fn simulate(scenario: &Scenario, tamper: &dyn Tamper) -> Outcome {
    let mut world = World::new(scenario.seed, tamper);
    let mut trace = Vec::new();
    for step in &scenario.steps {
        trace.push(world.take(step));
        if let Some(broken) = world.broken() {
            return Outcome { trace, broken: Some(broken) };
        }
    }
    let (end, broken) = world.come_to_rest();
    trace.push(end);
    Outcome { trace, broken }
}
