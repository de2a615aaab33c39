//! Ticks, by what only the platform knows.

use std::sync::Arc;
use std::time::Duration;

use domain::entry::{Cause, DeadReason, Entry, State};
use domain::envelope::EventType;
use domain::job::{JobKey, JobStatus, Kind};
use domain::ports::{
    Clock as _, Delivery, DeliveryStatus, Listed, ParentPage, Queue, TaskSource, WebhookChange,
    WebhookId, Webhooks as _,
};
use domain::testing::{MemoryWebhooks, extract_answer, parent_answer};
use domain::time::{Timestamp, before};

use super::world::key;
use super::{Faults, World, faults};
use crate::faulty::FaultPlan;

/// Ticks after the faulty one; each may have to make up for the one before.
const TICKS: usize = 3;
/// Jobs of one instant: more than a page of a list holds.
const AT_ONE_INSTANT: u32 = 130;

/// What only the platform knows.
type Script<Q> = fn(&World<Q>, &MemoryWebhooks, &WebhookId);

/// SC-10, SC-11: finished and open jobs that only the job lists show.
pub async fn jobs_that_only_the_lists_show<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> = |world, _, _| {
        for (kind, id, status) in [
            (Kind::Extract, "a", JobStatus::Completed),
            (Kind::Extract, "open", JobStatus::Processing),
            (Kind::Crawl, "c", JobStatus::Cancelled),
        ] {
            listed(world, kind, id, status);
        }
    };
    let ends = &["crawl c dead cancelled ", "extract a stored ", "extract open stored "];
    survives(make, faults, script, ends).await;
}

/// SC-08, SC-10: deliveries that were refused, and one that was taken and of whose job the ledger
/// knows nothing.
pub async fn jobs_that_only_the_logs_show<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> = |world, webhooks, webhook| {
        for (id, status, answered) in [
            ("refused", DeliveryStatus::Abandoned, 401),
            ("failed", DeliveryStatus::Failed, 500),
            ("taken", DeliveryStatus::Success, 200),
        ] {
            answers(world, Kind::Extract, id, JobStatus::Completed);
            assert!(webhooks.log(webhook, delivery(world, id, 1, status, Some(answered))));
        }
    };
    let ends = &["extract failed stored ", "extract refused stored ", "extract taken stored "];
    survives(make, faults, script, ends).await;
}

/// SC-01, SC-08: all ways at once in which word of a job is missed, and none in which it is not. A
/// delivery that was never sent, a webhook that was switched off, deliveries that were answered 401,
/// 500 or 413 and then abandoned, a job that is listed and not known, a row that nobody finished, a
/// second attempt that succeeded, more jobs at one instant than a page holds, and a forgotten job
/// that is listed still.
pub async fn jobs_that_were_missed_in_every_way<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) {
    let world = make().await;
    let (webhooks, webhook) = world.subscribed().await;
    let off = WebhookChange { is_active: Some(false), ..WebhookChange::default() };
    webhooks.update(&webhook, &off, Duration::from_secs(1)).await.unwrap();
    let log = |id: &str, number: u32, status, answered| {
        assert!(webhooks.log(&webhook, delivery(&world, id, number, status, answered)));
        answers(&world, Kind::Extract, id, JobStatus::Completed);
    };
    for answered in [401, 500, 413] {
        let id = format!("answered-{answered}");
        log(&id, 1, DeliveryStatus::Failed, Some(answered));
        log(&id, 2, DeliveryStatus::Abandoned, Some(answered));
    }
    // The attempts of these come in either order; the ledger has both.
    for (id, numbers) in [("second", [1, 2]), ("reversed", [2, 1])] {
        for number in numbers {
            let is_taken = number == 2;
            let status = if is_taken { DeliveryStatus::Success } else { DeliveryStatus::Failed };
            log(id, number, status, Some(if is_taken { 200 } else { 500 }));
        }
        world.lay(&done(&world, &key(Kind::Extract, id), world.clock.now())).await;
    }
    listed(&world, Kind::Extract, "listed", JobStatus::Completed);
    listed(&world, Kind::Extract, "never-sent", JobStatus::Completed);
    world.lay(&world.expected(&key(Kind::Extract, "never-sent"))).await;
    answers(&world, Kind::Extract, "never-finished", JobStatus::Completed);
    let unfinished = world.expected(&key(Kind::Extract, "never-finished"));
    world
        .lay(&Entry { state: State::Received, due_at: Some(an_hour_ago(&world)), ..unfinished })
        .await;
    for number in 0..AT_ONE_INSTANT {
        listed(&world, Kind::Batch, &format!("instant-{number:03}"), JobStatus::Cancelled);
    }
    let long_ago = before(world.clock.now(), world.limits.retention.saturating_mul(2));
    world.lay(&done(&world, &key(Kind::Extract, "forgotten"), long_ago)).await;
    let forgotten = listing("forgotten", JobStatus::Completed, long_ago);
    world.jobs.list_job(Kind::Extract, forgotten);
    let well = FaultPlan::none();
    for _ in 0..TICKS {
        drop(world.tick(&webhooks, &well).await);
        world.clock.advance(Duration::from_mins(10));
    }
    let has_row = |row: &Entry| row.key.job_id.as_str() == "forgotten" && row.version == 2;
    assert!(world.entries().await.iter().any(has_row), "nobody touches what is forgotten");
    world.settle().await;
    let mut stored = Vec::new();
    let mut dead = 0;
    for row in world.entries().await {
        match row.state {
            State::Stored { .. } => stored.push(row.key.job_id.to_string()),
            State::Dead { reason: DeadReason::Cancelled, .. } => dead += 1,
            _ => {}
        }
    }
    stored.sort_unstable();
    let expected =
        ["answered-401", "answered-413", "answered-500", "listed", "never-finished", "never-sent"];
    assert_eq!((stored.as_slice(), dead), (&expected.map(str::to_owned)[..], AT_ONE_INSTANT));
}

/// An attempt at telling us that an extract job has finished.
pub(super) fn delivery<Q>(
    world: &World<Q>,
    id: &str,
    number: u32,
    status: DeliveryStatus,
    answered: Option<u16>,
) -> Delivery {
    Delivery {
        id: format!("d-{id}-{number}"),
        event_type: EventType::ExtractCompleted,
        job_id: Some(key(Kind::Extract, id).job_id),
        attempt_number: Some(number),
        status,
        http_status: answered,
        delivered_at: None,
        created_at: Some(an_hour_ago(world)),
    }
}

/// A row that has ended, at this instant.
pub(crate) fn done<Q>(world: &World<Q>, key: &JobKey, at: Timestamp) -> Entry {
    let state = State::Dead { reason: DeadReason::Failed, error: None, result: None };
    world.expected(key).settled(state, Cause::Work, at, &world.limits)
}

pub(crate) fn an_hour_ago<Q>(world: &World<Q>) -> Timestamp {
    before(world.clock.now(), Duration::from_hours(1))
}

/// A job in its list, which has finished when somebody asks for it.
pub(crate) fn listed<Q>(world: &World<Q>, kind: Kind, id: &str, status: JobStatus) {
    world.jobs.list_job(kind, listing(id, status.clone(), an_hour_ago(world)));
    let ended = if status.is_terminal() { status } else { JobStatus::Completed };
    answers(world, kind, id, ended);
}

pub(crate) fn listing(id: &str, status: JobStatus, created_at: Timestamp) -> Listed {
    Listed {
        job_id: key(Kind::Extract, id).job_id,
        status,
        created_at: Some(created_at),
        url: None,
        accepted_urls: None,
        formats: None,
        render_js: None,
    }
}

pub(crate) fn answers<Q>(world: &World<Q>, kind: Kind, id: &str, status: JobStatus) {
    let (key, created_at) = (key(kind, id), Some(an_hour_ago(world)));
    if kind == Kind::Extract {
        let mut answer = extract_answer(&key.job_id, status);
        answer.created_at = created_at;
        world.jobs.answer_extract(&key.job_id, Ok(answer));
    } else {
        let answer = parent_answer(&key, status, Vec::new());
        world.jobs.answer_parent(&key, Ok(ParentPage { created_at, ..answer }));
    }
}

/// Ticks with these faults; then those of whoever is left.
async fn survives<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
    script: Script<Q>,
    ends: &[&str],
) {
    let end_with = async |plan: &Arc<FaultPlan>, processes: usize| {
        let world = make().await;
        let (webhooks, webhook) = world.subscribed().await;
        script(&world, &webhooks, &webhook);
        let well = FaultPlan::none();
        let ticks = std::iter::repeat_n(plan, processes);
        for plan in ticks.chain(std::iter::repeat_n(&well, TICKS)) {
            // Whatever came of it: others follow.
            drop(world.tick(&webhooks, plan).await);
            world.clock.advance(Duration::from_mins(10));
        }
        world.settle().await;
        world.end().await
    };
    faults::survives(faults, end_with, |end| end.check(ends)).await;
}
