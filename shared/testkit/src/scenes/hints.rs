//! Word that comes too early, twice, or in the wrong order.

use domain::job::{JobError, JobStatus, Kind};
use domain::ports::{ExtractJob, Queue, TaskSource};
use domain::testing::{ScriptedSubmit, extract_answer};
use futures_util::future::join_all;

use super::stage::{ACCEPTED, Stage, job};
use crate::crash::World;
use crate::crash::tick::answers;

/// Deliveries of one job at one instant.
const AT_ONCE: usize = 50;

/// WK-10: the event comes first, and the job is then still queued or being worked on, three times
/// over.
pub async fn an_event_comes_before_the_job_has_settled<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let stage = Stage::set(make).await;
    let statuses =
        [JobStatus::Queued, JobStatus::Queued, JobStatus::Processing, JobStatus::Completed];
    for status in statuses {
        answers(&stage.world, Kind::Extract, "a", status);
    }
    stage.deliver("a").await;
    stage.comes_right(4, &[("extract a stored ", "delivery received, work stored")]).await;
    assert_eq!(stage.world.results.puts(), 1);
}

/// The job failed retryably; its next try becomes `job-1`, which is completed.
fn fails_once<Q>(world: &World<Q>) {
    let error = Some(JobError::new("TIMEOUT", "", true));
    let failed = ExtractJob { error, ..extract_answer(&job("a").job_id, JobStatus::Failed) };
    world.jobs.answer_extract(&job("a").job_id, Ok(failed));
    world.jobs.set_list_lag(world.limits.adoption_margin);
    answers(world, Kind::Extract, "job-1", JobStatus::Completed);
}

/// WK-13, WK-14: the first try of the job failed, the second one succeeds: it is paid for once, and
/// the events of both, come as they may, change nothing.
pub async fn a_second_try_of_the_job_succeeds<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let stage = Stage::set(make).await;
    let world = &stage.world;
    world.lay(&world.expected(&job("a"))).await;
    fails_once(world);
    stage.deliver("a").await;
    world.work_off().await;
    for id in ["job-1", "a", "job-1"] {
        stage.deliver(id).await;
    }
    let ends = [
        (
            "extract a superseded job-1 ",
            "submit expected, delivery received, work resubmitting, work superseded",
        ),
        ("extract job-1 stored ", "submit expected, delivery received, work stored"),
    ];
    stage.comes_right(1, &ends).await;
    assert_eq!((world.made(), world.results.puts()), (vec!["job-1".to_owned()], 1));
}

/// WK-09, WK-14: the successor's event comes before anybody knows that there is a successor, since
/// the answer of its POST was lost, and the first try's event comes after it.
pub async fn the_order_is_reversed<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let stage = Stage::set(make).await;
    let world = &stage.world;
    world.lay(&world.expected(&job("a"))).await;
    fails_once(world);
    world.jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(job("job-1").job_id));
    stage.deliver("a").await;
    world.work_off().await;
    for id in ["job-1", "a"] {
        stage.deliver(id).await;
        world.work_off().await;
    }
    let ends = [
        (
            "extract a superseded job-1 ",
            "submit expected, delivery received, work resubmitting, work superseded",
        ),
        ("extract job-1 stored ", "delivery received, work stored"),
    ];
    stage.comes_right(2, &ends).await;
    assert_eq!((world.made(), world.results.puts()), (vec!["job-1".to_owned()], 1));
}

/// DQ-03, DQ-06: one event comes fifty times at one instant, and two workers take its job at once.
pub async fn duplicates_come_at_the_same_instant<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let stage = Stage::set(make).await;
    let (world, ledger) = (&stage.world, stage.world.own_ledger());
    answers(world, Kind::Extract, "a", JobStatus::Completed);
    let job = job("a");
    let statuses = join_all((0..AT_ONCE).map(|_| world.deliver_well(&job, &*ledger))).await;
    assert!(statuses.iter().all(|status| *status == ACCEPTED), "{statuses:?}");
    let both = join_all((0..2).map(|_| world.work_well(&job, &*ledger))).await;
    assert!(both.iter().all(Result::is_ok), "{both:?}");
    stage.comes_right(0, &[("extract a stored ", "delivery received, work stored")]).await;
}
