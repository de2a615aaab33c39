//! The crash tests, on ports in memory.

use std::sync::Arc;

use domain::testing::{ManualClock, MemoryDeadLetters, MemoryLedger, MemoryQueue};
use testkit::conformance::DeadLettersSubject;
use testkit::crash::letters::a_redrive_of_all;
use testkit::crash::rotate::{RotationWorld, calls_fail};
use testkit::crash::{Faults, World};

fn world() -> World<MemoryQueue> {
    let clock = Arc::new(ManualClock::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    World::new(clock, Arc::new(MemoryLedger::new()), queue)
}

testkit::crash_tests! { name: memory, make: world() }
testkit::crash_tests! { name: memory_twice, make: world(), faults: Twice }
testkit::scene_tests! { name: memory_scenes, make: world() }

async fn rotation() -> RotationWorld {
    RotationWorld::in_memory(Arc::new(ManualClock::default())).await
}

testkit::rotation_crash_tests! { name: memory_rotation, make: rotation().await }

/// More of them than elsewhere.
#[test]
fn two_calls_of_a_rotation_fail() {
    testkit::run(calls_fail(&rotation, Faults::Twice));
}

async fn letters() -> DeadLettersSubject {
    let clock = Arc::new(ManualClock::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    let letters = Arc::new(MemoryDeadLetters::new(clock.clone(), queue.clone()));
    let laid = letters.clone();
    DeadLettersSubject::new(letters, queue, clock, move |body| laid.put(body))
}

#[test]
fn calls_of_a_redrive_of_the_dead_letter_queue_fail() {
    testkit::run(async {
        a_redrive_of_all(&letters, Faults::Once).await;
        a_redrive_of_all(&letters, Faults::Twice).await;
    });
}
