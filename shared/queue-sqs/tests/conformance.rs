//! The queue in SQS does what the port promises.

#![expect(clippy::unwrap_used, reason = "what prepares a test fails by panicking, too")]

use std::sync::Arc;

use aws_client::Patience;
use domain::testing::ManualClock;
use queue_sqs::testing::FakeSqs;
use queue_sqs::{SqsDeadLetters, SqsQueue};
use testkit::conformance::{DeadLettersSubject, QueueSubject};

async fn queue() -> QueueSubject<SqsQueue> {
    let clock = Arc::new(ManualClock::default());
    let sqs = Arc::new(FakeSqs::start(clock.clone(), Patience::WORKER).await.unwrap());
    let queue = SqsQueue::new(sqs.config(), sqs.queue_url()).unwrap();
    let past_the_port = Arc::clone(&sqs);
    QueueSubject::new(Arc::new(queue), clock)
        .sending_bodies(move |body| {
            // No message of SQS is empty.
            if !body.is_empty() {
                past_the_port.put_body(body);
            }
        })
        .keeping(sqs)
}

async fn dead_letters() -> DeadLettersSubject {
    let clock = Arc::new(ManualClock::default());
    let sqs = Arc::new(FakeSqs::start(clock.clone(), Patience::WORKER).await.unwrap());
    let queue = SqsQueue::new(sqs.config(), sqs.queue_url()).unwrap();
    let url = sqs.dead_letter_queue_url();
    let letters = Arc::new(SqsDeadLetters::new(sqs.config(), url, &queue).unwrap());
    let past_the_port = Arc::clone(&sqs);
    let put = move |body: &str| past_the_port.put_dead_letter(body);
    DeadLettersSubject::new(letters, Arc::new(queue), clock, put).keeping(sqs)
}

testkit::queue_conformance! { name: sqs, make: queue().await }
testkit::dead_letters_conformance! { name: sqs_dead_letters, make: dead_letters().await }
