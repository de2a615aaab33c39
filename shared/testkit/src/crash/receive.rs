//! Deliveries, by the row that they meet.

use std::sync::Arc;
use std::time::Duration;

use domain::entry::{Announced, Announcement, Cause, Counters, DeadReason, Entry, State};
use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::ports::{Queue, TaskSource};
use domain::testing::extract_answer;
use domain::time::{Timestamp, after, before};
use futures_util::future::join_all;

use super::world::key;
use super::{End, Ended, Faults, World, faults};
use crate::faulty::FaultPlan;

/// Deliveries after which the sender would give up; two are enough.
const DELIVERIES_MAX: u32 = 4;
const ACCEPTED: u16 = 202;
const UNAVAILABLE: u16 = 503;

/// The row that a delivery meets.
type Row<Q> = fn(&World<Q>) -> Option<Entry>;

fn job() -> JobKey {
    key(Kind::Extract, "a")
}

fn received_at<Q>(world: &World<Q>, at: Timestamp) -> Entry {
    let token = "an-earlier-call".to_owned();
    let announcement = Announcement { cause: Cause::Delivery, delivery_id: None, token };
    match Entry::announce(None, &job(), &announcement, at, &world.limits) {
        Announced::Write(row) => *row,
        other => panic!("no row: {other:?}"),
    }
}

fn dead<Q>(world: &World<Q>, reason: DeadReason, at: Timestamp) -> Entry {
    let state = State::Dead { reason, error: None, result: None };
    world.expected(&job()).settled(state, Cause::Work, at, &world.limits)
}

/// DQ-01, DQ-02: nobody knows the job.
pub async fn a_delivery_of_an_unknown_job<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    survives(make, faults, |_| None).await;
}

/// DQ-01, DQ-02: the job was submitted from here.
pub async fn a_delivery_of_an_expected_job<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    survives(make, faults, |world| Some(world.expected(&job()))).await;
}

/// DQ-01: an earlier delivery wrote the row and never sent its task.
pub async fn a_delivery_of_a_received_job<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    survives(make, faults, |world| {
        Some(received_at(world, before(world.now(), world.limits.enqueue_grace)))
    })
    .await;
}

/// The job was looked at before it had finished.
pub async fn a_delivery_of_a_job_that_was_put_off<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    survives(make, faults, |world| {
        let later = after(world.now(), Duration::from_mins(15));
        Some(received_at(world, world.now()).put_off(later, Counters::default(), &world.limits))
    })
    .await;
}

/// The platform was thought not to know the job any more.
pub async fn a_delivery_of_a_job_that_was_gone<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    survives(make, faults, |world| Some(dead(world, DeadReason::Gone, world.now()))).await;
}

/// DQ-05: the row has expired and is still there.
pub async fn a_delivery_of_a_job_whose_row_expired<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    survives(make, faults, |world| {
        let long_ago = before(world.now(), world.limits.retention.saturating_mul(2));
        Some(dead(world, DeadReason::Failed, long_ago))
    })
    .await;
}

/// DQ-03: each of fifty deliveries at once is acknowledged, and there is one task.
pub async fn fifty_deliveries_at_once<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let world = make().await;
    let (job, ledger) = (job(), world.own_ledger());
    let deliveries = (0..50).map(|_| world.deliver_well(&job, &*ledger));
    let statuses = join_all(deliveries).await;
    assert!(statuses.iter().all(|status| *status == ACCEPTED), "{statuses:?}");
    assert_eq!(world.entries().await.len(), 1);
    assert_eq!(world.tasks().await, 1);
}

async fn survives<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
    row: Row<Q>,
) {
    let end_with = async |plan: &Arc<FaultPlan>, processes: usize| {
        let world = begin(make, row).await;
        let ledger = world.own_ledger();
        for _ in 0..processes {
            let before = plan.happened().len();
            let ended = world.deliver(&job(), &ledger, plan).await;
            let is_told = match ended {
                Ended::Killed | Ended::With(UNAVAILABLE) => true,
                Ended::With(status) => status == ACCEPTED && plan.happened().len() == before,
            };
            assert!(is_told, "{ended:?}: {:?} of {:?}", plan.happened(), plan.calls());
        }
        heal(&world).await
    };
    faults::survives(faults, end_with, |end| end.check(&["extract a stored "])).await;
}

async fn begin<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    row: Row<Q>,
) -> World<Q> {
    let world = make().await;
    if let Some(row) = row(&world) {
        world.lay(&row).await;
    }
    let id = JobId::parse("a").unwrap();
    let mut answer = extract_answer(&id, JobStatus::Completed);
    answer.created_at = Some(before(world.now(), Duration::from_secs(5)));
    world.jobs.answer_extract(&id, Ok(answer));
    world
}

/// The sender comes again until it is told that all is well; then the rest is done.
async fn heal<Q: Queue + TaskSource + 'static>(world: &World<Q>) -> End {
    let ledger = world.own_ledger();
    for _ in 0..DELIVERIES_MAX {
        world.clock.advance(Duration::from_secs(1));
        if world.deliver_well(&job(), &*ledger).await == ACCEPTED {
            world.settle().await;
            return world.end().await;
        }
    }
    panic!("never accepted");
}
