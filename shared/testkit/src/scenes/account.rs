//! What happens to the account, and what the platform remembers longer than the ledger.

use domain::job::{JobStatus, Kind};
use domain::ports::{ApiError, ApiErrorKind, DeliveryStatus, Queue, TaskSource};
use domain::tick::Ran;
use domain::time::before;

use super::stage::{Stage, job};
use crate::crash::World;
use crate::crash::tick::{answers, done, listed, listing};

/// Ticks while nobody has told us the new key.
const TICKS_WITHOUT_KEY: u32 = 3;

/// WK-12: somebody made a new API key, and the old one is refused everywhere: that is no job's
/// fault. All wait, nobody asks again and again, and once the new key is known all goes on.
pub async fn the_api_key_is_changed_in_the_console<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let stage = Stage::set(make).await;
    let world = &stage.world;
    let denied =
        ApiError { status: Some(401), ..ApiError::new(ApiErrorKind::Denied, "no such key") };
    for id in ["a", "b"] {
        world.jobs.answer_extract(&job(id).job_id, Err(denied.clone()));
        stage.deliver(id).await;
    }
    world.jobs.answer_probe(Err(denied));
    world.work_off().await;
    for _ in 0..TICKS_WITHOUT_KEY {
        stage.tick().await;
    }
    let rows = world.entries().await;
    assert!(rows.iter().all(|row| !row.state.is_terminal()), "{rows:?}");
    let asked = stage.looks("a") + stage.looks("b");
    assert!(asked <= 2 + 2 * usize::try_from(TICKS_WITHOUT_KEY).unwrap(), "{asked}");
    for id in ["a", "b"] {
        world.jobs.clear_answers(&job(id));
        answers(world, Kind::Extract, id, JobStatus::Completed);
    }
    world.jobs.answer_probe(Ok(()));
    let tells = "delivery received, work stored";
    stage.comes_right(3, &[("extract a stored ", tells), ("extract b stored ", tells)]).await;
    assert_eq!(stage.tick().await.ran, Ran::Whole);
    assert_eq!(world.results.puts(), 2);
}

/// SC-13, DQ-05: jobs that are older than the ledger's memory, one with an expired row that is
/// still there and one without: the lists and the log go on showing them, and nobody touches them.
pub async fn forgotten_jobs_are_still_listed<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let stage = Stage::set(make).await;
    let world = &stage.world;
    let long_ago = before(world.now(), world.limits.retention.saturating_mul(2));
    world.lay(&done(world, &job("expired"), long_ago)).await;
    for id in ["expired", "erased"] {
        world.jobs.list_job(Kind::Extract, listing(id, JobStatus::Completed, long_ago));
        stage.log_at(id, 1, DeliveryStatus::Abandoned, 500, long_ago);
    }
    listed(world, Kind::Extract, "new", JobStatus::Completed);
    let ends = [
        ("extract expired dead failed ", "submit expected, work dead"),
        ("extract new stored ", "reconcile received, work stored"),
    ];
    stage.comes_right(2, &ends).await;
    assert_eq!((stage.looks("expired"), stage.looks("erased")), (0, 0));
    assert_eq!(world.results.puts(), 1);
}
