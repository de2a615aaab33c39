//! The queue in SQS does what the port promises.

#![expect(clippy::unwrap_used, reason = "what prepares a test fails by panicking, too")]

use std::sync::Arc;

use aws_client::Patience;
use domain::testing::ManualClock;
use queue_sqs::SqsQueue;
use queue_sqs::testing::FakeSqs;
use testkit::conformance::QueueSubject;

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

testkit::queue_conformance! { name: sqs, make: queue().await }
