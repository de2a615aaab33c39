//! The crash tests, on ports in memory.

use std::sync::Arc;

use domain::testing::{ManualClock, MemoryLedger, MemoryQueue, MemoryVault};
use testkit::crash::World;
use testkit::crash::rotate::{RotationWorld, two_calls_fail};

fn world() -> World<MemoryQueue> {
    let clock = Arc::new(ManualClock::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    World::new(clock, Arc::new(MemoryLedger::new()), queue)
}

testkit::crash_tests! { name: memory, make: world() }
testkit::scene_tests! { name: memory_scenes, make: world() }

async fn rotation() -> RotationWorld {
    let clock = Arc::new(ManualClock::default());
    let vault = Arc::new(MemoryVault::new(clock.clone()));
    let (laid, staged) = (vault.clone(), vault.clone());
    let world = RotationWorld::new(clock, vault.clone(), vault, |secret| {
        let slot = laid.make("extract");
        laid.type_in(&slot, &secret.to_stored());
        slot
    });
    world.await.staging(move |slot, version| staged.announce(slot, version))
}

testkit::rotation_crash_tests! { name: memory_rotation, make: rotation().await }

#[test]
fn two_calls_of_a_rotation_fail() {
    testkit::run(two_calls_fail(&rotation));
}

#[test]
fn two_calls_of_what_is_owed_fail() {
    testkit::run(testkit::crash::owed::two_calls_fail(&async || world()));
}
