//! The crash test, on ports in memory.

use std::sync::Arc;

use domain::testing::{ManualClock, MemoryLedger, MemoryQueue};
use testkit::crash::World;

fn world() -> World<MemoryQueue> {
    let clock = Arc::new(ManualClock::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    World::new(clock, Arc::new(MemoryLedger::new()), queue)
}

testkit::crash_tests! { name: memory, make: world() }
