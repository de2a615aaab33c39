//! The crash test of the steps with tasks in SQS.

#![expect(clippy::unwrap_used, reason = "what prepares a test fails by panicking, too")]

use std::sync::Arc;

use aws_client::Patience;
use domain::testing::{ManualClock, MemoryLedger};
use queue_sqs::testing::FakeSqs;
use queue_sqs::{SqsDeadLetters, SqsQueue};
use testkit::conformance::DeadLettersSubject;
use testkit::crash::letters::a_redrive_of_all;
use testkit::crash::{Faults, World};

async fn world() -> World<SqsQueue> {
    let clock = Arc::new(ManualClock::default());
    let sqs = FakeSqs::start(clock.clone(), Patience::WORKER).await.unwrap();
    let queue = Arc::new(SqsQueue::new(sqs.config(), sqs.queue_url()).unwrap());
    World::new(clock, Arc::new(MemoryLedger::new()), queue).keeping(sqs)
}

testkit::crash_tests! { name: sqs, make: world().await }
testkit::crash_tests! { name: sqs_twice, make: world().await, faults: Near }

async fn letters() -> DeadLettersSubject {
    let clock = Arc::new(ManualClock::default());
    let sqs = Arc::new(FakeSqs::start(clock.clone(), Patience::WORKER).await.unwrap());
    let queue = SqsQueue::new(sqs.config(), sqs.queue_url()).unwrap();
    let url = sqs.dead_letter_queue_url();
    let letters = Arc::new(SqsDeadLetters::new(sqs.config(), url, &queue).unwrap());
    let laid = sqs.clone();
    DeadLettersSubject::new(letters, Arc::new(queue), clock, move |body| laid.put_dead_letter(body))
        .keeping(sqs)
}

#[test]
fn calls_of_a_redrive_of_the_dead_letter_queue_fail() {
    testkit::run(async {
        a_redrive_of_all(&letters, Faults::Once).await;
        a_redrive_of_all(&letters, Faults::Near).await;
    });
}
