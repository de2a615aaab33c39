//! What only the delivery log tells.

use domain::job::{JobStatus, Kind};
use domain::ports::{DeliveryStatus, Queue, TaskSource};

use super::stage::Stage;
use crate::crash::World;
use crate::crash::tick::answers;

/// Attempts after which the platform gives a delivery up.
const ATTEMPTS: u32 = 5;

/// SM-07: the receiver did not know the new secret yet.
pub async fn a_delivery_is_answered_401_and_abandoned<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    is_abandoned(make, 401).await;
}

/// DQ-04: the receiver, or what lies before it, was out of order for longer than the platform
/// tries.
pub async fn a_delivery_is_answered_500_and_abandoned<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    is_abandoned(make, 500).await;
}

/// SC-09: the body is too large and always will be: replay brings the job, once.
pub async fn a_delivery_is_answered_413_and_abandoned<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    is_abandoned(make, 413).await;
}

/// All attempts are answered so; no job list shows the job.
async fn is_abandoned<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    answered: u16,
) {
    let stage = Stage::set(make).await;
    answers(&stage.world, Kind::Extract, "a", JobStatus::Completed);
    for attempt in 1..ATTEMPTS {
        stage.log("a", attempt, DeliveryStatus::Failed, answered);
    }
    stage.log("a", ATTEMPTS, DeliveryStatus::Abandoned, answered);
    stage.comes_right(1, &[("extract a stored ", "replay received, work stored")]).await;
    assert_eq!(stage.world.results.puts(), 1);
}

/// SC-08: the first attempt of the delivery was refused, the second one taken, in either order of
/// the log: the job is looked at once, for the delivery, and never again for the log.
pub async fn a_second_attempt_of_the_delivery_succeeds<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let stage = Stage::set(make).await;
    for (id, attempts) in [("a", [1, 2]), ("b", [2, 1])] {
        answers(&stage.world, Kind::Extract, id, JobStatus::Completed);
        for attempt in attempts {
            let (status, answered) = match attempt {
                1 => (DeliveryStatus::Failed, 500),
                _ => (DeliveryStatus::Success, 200),
            };
            stage.log(id, attempt, status, answered);
        }
        stage.deliver(id).await;
    }
    stage.world.work_off().await;
    stage.tick().await;
    assert_eq!((stage.looks("a"), stage.looks("b")), (1, 1));
    let tells = "delivery received, work stored";
    stage.comes_right(0, &[("extract a stored ", tells), ("extract b stored ", tells)]).await;
    assert_eq!(stage.world.results.puts(), 2);
}
