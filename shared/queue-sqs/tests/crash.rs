//! The crash test of the steps with tasks in SQS.

#![expect(clippy::unwrap_used, reason = "what prepares a test fails by panicking, too")]

use std::sync::Arc;

use aws_client::Patience;
use domain::testing::{ManualClock, MemoryLedger};
use queue_sqs::SqsQueue;
use queue_sqs::testing::FakeSqs;
use testkit::crash::World;

async fn world() -> World<SqsQueue> {
    let clock = Arc::new(ManualClock::default());
    let sqs = FakeSqs::start(clock.clone(), Patience::WORKER).await.unwrap();
    let queue = Arc::new(SqsQueue::new(sqs.config(), sqs.queue_url()).unwrap());
    World::new(clock, Arc::new(MemoryLedger::new()), queue).keeping(sqs)
}

testkit::crash_tests! { name: sqs, make: world().await }
