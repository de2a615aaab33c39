//! Word that never came, or got no further than the row.

use std::time::Duration;

use domain::job::{JobStatus, Kind};
use domain::ports::{Queue, TaskSource, WebhookChange, Webhooks as _};
use domain::subscriptions::Standing;

use super::stage::{Stage, job};
use crate::crash::tick::{answers, listed};
use crate::crash::{Ended, World};
use crate::faulty::{Fault, FaultPlan};

/// DQ-01: the receiver wrote the row and was killed before the task was sent, or as soon as it was;
/// the sender never comes again.
pub async fn the_receiver_ends_between_row_and_queue<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    for fault in [Fault::HangBefore, Fault::HangAfter] {
        let stage = Stage::set(make).await;
        let world = &stage.world;
        answers(world, Kind::Extract, "a", JobStatus::Completed);
        let dry = FaultPlan::none();
        let ledger = world.own_ledger();
        let rehearsal = make().await;
        rehearsal.deliver(&job("a"), &rehearsal.own_ledger(), &dry).await;
        let calls = dry.calls();
        let send = calls.iter().position(|call| call.starts_with("queue.")).unwrap();
        let ended = world.deliver(&job("a"), &ledger, &FaultPlan::at(send, fault)).await;
        assert_eq!(ended, Ended::Killed);
        world.clock.advance(world.limits.enqueue_grace);
        stage.comes_right(1, &[("extract a stored ", "delivery received, work stored")]).await;
        assert_eq!(world.results.puts(), 1);
    }
}

/// The platform sends nothing, and its log does not know of it: the job list tells of the end of a
/// job of ours.
pub async fn a_delivery_is_never_sent<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let stage = Stage::set(make).await;
    stage.world.lay(&stage.world.expected(&job("a"))).await;
    listed(&stage.world, Kind::Extract, "a", JobStatus::Completed);
    let tells = "submit expected, reconcile received, work stored";
    stage.comes_right(1, &[("extract a stored ", tells)]).await;
    assert_eq!(stage.world.results.puts(), 1);
}

/// Somebody switched the webhook off in the console: the check says so, and the job list brings
/// what is missed until it is on again.
pub async fn a_webhook_is_deactivated<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let stage = Stage::set(make).await;
    let off = WebhookChange { is_active: Some(false), ..WebhookChange::default() };
    stage.webhooks.update(&stage.webhook, &off, Duration::from_secs(1)).await.unwrap();
    listed(&stage.world, Kind::Extract, "a", JobStatus::Completed);
    let report = stage.tick().await;
    let subscriptions = report.replayed.unwrap().did.subscriptions.unwrap();
    assert!(subscriptions.wrong().any(|wrong| wrong == (Kind::Extract, Standing::Inactive)));
    stage.comes_right(0, &[("extract a stored ", "reconcile received, work stored")]).await;
    assert_eq!(stage.world.results.puts(), 1);
}

/// SC-06, SC-07: nobody told of the job, and it was not submitted from here.
pub async fn a_job_is_listed_and_unknown<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let stage = Stage::set(make).await;
    listed(&stage.world, Kind::Extract, "a", JobStatus::Completed);
    listed(&stage.world, Kind::Batch, "b", JobStatus::Cancelled);
    stage
        .comes_right(
            1,
            &[
                ("batch b dead cancelled ", "reconcile received, work dead"),
                ("extract a stored ", "reconcile received, work stored"),
            ],
        )
        .await;
}

/// SC-01, SC-02: the worker was killed when the result lay there, before the row said so, and its
/// task was lost; neither log nor list shows the job.
pub async fn a_row_is_known_and_never_finished<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let stage = Stage::set(make).await;
    let world = &stage.world;
    stage.deliver("a").await;
    answers(world, Kind::Extract, "a", JobStatus::Completed);
    let rehearsed = {
        let (rehearsal, dry) = (Stage::set(make).await, FaultPlan::none());
        rehearsal.deliver("a").await;
        answers(&rehearsal.world, Kind::Extract, "a", JobStatus::Completed);
        rehearsal.world.work(&job("a"), &dry).await;
        dry.calls()
    };
    let put = rehearsed.iter().position(|call| call.starts_with("results.put")).unwrap();
    world.lose_tasks().await;
    world.work(&job("a"), &FaultPlan::at(put, Fault::HangAfter)).await;
    assert_eq!(world.objects().len(), 1, "the result lies there");
    world.clock.advance(world.limits.enqueue_grace);
    stage.comes_right(1, &[("extract a stored ", "delivery received, work stored")]).await;
}
