//! The ports in memory do what the ports promise.

use std::sync::Arc;

use domain::testing::{ManualClock, MemoryDeadLetters, MemoryLedger, MemoryQueue, MemoryResults};
use testkit::conformance::{
    ClockSubject, DeadLettersSubject, LedgerSubject, QueueSubject, ResultsSubject,
};

fn ledger() -> LedgerSubject {
    let ledger = Arc::new(MemoryLedger::new());
    let (entries, intents) = (ledger.clone(), ledger.clone());
    LedgerSubject::new(ledger).spoiling(
        move |key| assert!(entries.corrupt(key)),
        move |id| assert!(intents.corrupt_intent(id)),
    )
}

fn queue() -> QueueSubject<MemoryQueue> {
    let clock = Arc::new(ManualClock::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    let strange = queue.clone();
    QueueSubject::new(queue, clock).sending_bodies(move |body| strange.send_body(body))
}

fn dead_letters() -> DeadLettersSubject {
    let clock = Arc::new(ManualClock::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    let letters = Arc::new(MemoryDeadLetters::new(clock.clone(), queue.clone()));
    let past_the_port = letters.clone();
    DeadLettersSubject::new(letters, queue, clock, move |body| past_the_port.put(body))
}

fn results() -> ResultsSubject {
    let results = Arc::new(MemoryResults::new());
    let damaged = results.clone();
    ResultsSubject::new(results).spoiling(move |key| assert!(damaged.corrupt(key)))
}

testkit::ledger_conformance! { name: memory_ledger, make: ledger() }
testkit::queue_conformance! { name: memory_queue, make: queue() }
testkit::dead_letters_conformance! { name: memory_dead_letters, make: dead_letters() }
testkit::results_conformance! { name: memory_results, make: results() }
testkit::clock_conformance! {
    name: manual_clock,
    make: ClockSubject::new(Arc::new(ManualClock::default())),
}
