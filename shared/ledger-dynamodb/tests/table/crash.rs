//! The crash test of the steps, with faults at the ports, and with faults between the ledger and the
//! table, which the SDK tries to make good; and the scenes of failure, on table and queue as they are
//! deployed.

use std::sync::Arc;

use aws_client::Patience;
use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::ports::Ledger;
use domain::testing::{MemoryQueue, extract_answer};
use queue_sqs::SqsQueue;
use queue_sqs::testing::FakeSqs;
use testkit::crash::rotate::RotationWorld;
use testkit::crash::{End, World};

use crate::table::Table;
use crate::wire::{BROKEN, Fate, THROTTLED, Wire};

async fn world() -> World<MemoryQueue> {
    let table = Table::new().await;
    world_of(&table)
}

fn world_of(table: &Table) -> World<MemoryQueue> {
    let queue = Arc::new(MemoryQueue::new(table.clock.clone()));
    World::new(table.clock.clone(), Arc::new(table.ledger()), queue)
}

/// Table and queue as they are deployed.
async fn deployed() -> World<SqsQueue> {
    let table = Table::new().await;
    let sqs = FakeSqs::start(table.clock.clone(), Patience::WORKER).await.unwrap();
    let queue = Arc::new(SqsQueue::new(sqs.config(), sqs.queue_url()).unwrap());
    World::new(table.clock.clone(), Arc::new(table.ledger()), queue).keeping(sqs)
}

testkit::crash_tests! { name: dynamodb, make: world().await }
testkit::crash_tests! { name: dynamodb_twice, make: world().await, faults: Near }
testkit::scene_tests! { name: dynamodb_scenes, make: deployed().await }

/// A rotation whose claim, and the retirement that it prepares, lie in the table.
async fn rotation() -> RotationWorld {
    let table = Table::new().await;
    let world = RotationWorld::in_memory(table.clock.clone()).await;
    world.on(Arc::new(table.ledger()))
}

testkit::rotation_crash_tests! { name: dynamodb_rotation, make: rotation().await }

fn job() -> JobKey {
    JobKey::new(Kind::Extract, JobId::parse("a").unwrap())
}

/// A completed job of which nobody knows.
async fn begin() -> (Table, World<MemoryQueue>) {
    let table = Table::new().await;
    let world = world_of(&table);
    let answer = extract_answer(&job().job_id, JobStatus::Completed);
    world.jobs.answer_extract(&job().job_id, Ok(answer));
    (table, world)
}

async fn heal(world: &World<MemoryQueue>) -> End {
    world.settle().await;
    world.end().await
}

/// How it ends when all is well.
async fn well() -> End {
    let (table, world) = begin().await;
    assert_eq!(world.deliver_well(&job(), &table.ledger()).await, 202);
    heal(&world).await
}

/// Calls of a process's first delivery: the row is read, and written.
const OF_DELIVERY: usize = 2;
/// The same, and those of a worker's first look: five, with the pause.
const CALLS: usize = OF_DELIVERY + 5;

fn fates() -> [Fate; 3] {
    [Fate::Lose, BROKEN, THROTTLED]
}

/// DQ-02, WK-22: one call between the ledger and the table is refused, or done and not answered:
/// the SDK makes it again, and nobody notices.
#[test]
fn a_fault_below_the_sdk_is_made_good_by_it() {
    testkit::run(async {
        let without = well().await;
        for fate in fates() {
            for call in 0..CALLS {
                let (table, world) = begin().await;
                let wire = Wire::with(call, fate.clone()).await;
                let ledger: Arc<dyn Ledger> = Arc::new(table.ledger_by(&wire.endpoint));
                assert_eq!(world.deliver_well(&job(), &*ledger).await, 202, "{fate:?} {call}");
                world.work_well(&job(), &*ledger).await.unwrap();
                let made = wire.take().len();
                assert_eq!(made, CALLS + 1, "{fate:?} {call}: one call was made twice");
                assert_eq!(heal(&world).await, without, "{fate:?} {call}");
            }
        }
    });
}

/// DQ-01, DQ-02, DQ-04: the same where nobody tries again below us: the delivery is refused for
/// now, the task fails, and whoever comes next makes it good.
#[test]
fn a_fault_that_nobody_makes_good_below_is_made_good_above() {
    testkit::run(async {
        let without = well().await;
        let once = Patience { attempts: 1, ..Patience::RECEIVER };
        for fate in fates() {
            for call in 0..CALLS {
                let (table, world) = begin().await;
                let wire = Wire::with(call, fate.clone()).await;
                let ledger = Arc::new(table.ledger_with(&wire.endpoint, once));
                let status = world.deliver_well(&job(), &*ledger).await;
                let is_refused = call < OF_DELIVERY;
                assert_eq!(status, if is_refused { 503 } else { 202 }, "{fate:?} {call}");
                let worked = world.work_well(&job(), &*ledger).await;
                assert_eq!(worked.is_err(), !is_refused, "{fate:?} {call}: {worked:?}");
                assert_eq!(world.deliver_well(&job(), &table.ledger()).await, 202);
                assert_eq!(heal(&world).await, without, "{fate:?} {call}");
            }
        }
    });
}
