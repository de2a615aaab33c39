//! Taking away a webhook that was replaced.

use std::sync::Arc;
use std::time::Duration;

use domain::job::{JobStatus, Kind};
use domain::ports::{
    Clock as _, DeliveryStatus, PortError, Queue, SlotId, TaskSource, VersionId, WebhookId,
};
use domain::retire::rows::{self, Retirement};
use domain::retire::{RetirePorts, Retired, work_off};
use domain::rotate::PROTECTED;
use domain::rotate::mark::Mark;
use domain::testing::MemoryWebhooks;
use domain::tick::TickPorts;

use super::process::Ended;
use super::tick::{answers, delivery};
use super::{End, Faults, World, faults};
use crate::faulty::FaultPlan;

const MINUTE: Duration = Duration::from_mins(1);
/// Between two passes: longer than a webhook is protected, or takes to drain.
const BETWEEN: Duration = PROTECTED.saturating_add(MINUTE);
/// Passes by which it is gone, without faults: switched off, then read and deleted.
const PASSES: usize = 2;

/// S28: it is switched off, its log is read a last time, and it is deleted with the orphan that was
/// to replace it; of each job that only its log tells of there is a result.
pub async fn a_replaced_webhook<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let end_with = async |plan: &Arc<FaultPlan>, processes: usize| {
        let (world, webhooks) = begin(make).await;
        for _ in 0..PASSES * processes {
            drop(pass(&world, &webhooks, plan).await);
            world.clock.advance(BETWEEN);
        }
        let well = FaultPlan::none();
        for _ in 0..PASSES {
            let Ended::With(Ok(retired)) = pass(&world, &webhooks, &well).await else {
                panic!("a pass without faults ends well");
            };
            assert!(retired.troubles.is_empty() && retired.blocked.is_empty(), "{retired:?}");
            world.clock.advance(BETWEEN);
        }
        assert_eq!(rows::list(&*world.own_ledger()).await.unwrap(), []);
        world.settle().await;
        let left = webhooks.webhooks().into_iter().map(|webhook| webhook.id);
        (left.collect::<Vec<_>>(), world.end().await)
    };
    let is_right = |(left, end): &(Vec<WebhookId>, End)| {
        assert_eq!(left, &[id(2)]);
        end.check(&["extract lost stored ", "extract waiting stored "]);
    };
    faults::survives(faults, end_with, is_right).await;
}

fn id(number: u32) -> WebhookId {
    WebhookId::parse(&format!("webhook-{number}")).unwrap()
}

/// A webhook, its successor, and one that was to be it; the successor is in force.
async fn begin<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
) -> (World<Q>, Arc<MemoryWebhooks>) {
    let world = make().await;
    let webhooks = Arc::new(MemoryWebhooks::new(world.clock.clone()));
    let version = VersionId::parse(&"v".repeat(32)).unwrap();
    let mark = Mark::new(&version, &id(1), world.clock.now());
    for description in [None, None, Some(mark.describe(None))] {
        world.subscribe(&webhooks, description).await;
    }
    for (job, status) in [
        ("lost", DeliveryStatus::Abandoned),
        ("waiting", DeliveryStatus::Pending),
        ("told", DeliveryStatus::Success),
    ] {
        answers(&world, Kind::Extract, job, JobStatus::Completed);
        assert!(webhooks.log(&id(1), delivery(&world, job, 1, status, None)));
    }
    let (ledger, now) = (world.own_ledger(), world.clock.now());
    let slot = SlotId::parse("extract").unwrap();
    rows::put(&*ledger, &Retirement::prepared(&slot, id(1), id(2), now)).await.unwrap();
    rows::confirm(&*ledger, &slot, &id(2), now).await.unwrap();
    (world, webhooks)
}

/// A scheduler works off the retirements, with these faults.
async fn pass<Q: Queue + TaskSource + 'static>(
    world: &World<Q>,
    webhooks: &Arc<MemoryWebhooks>,
    plan: &Arc<FaultPlan>,
) -> Ended<Result<Retired, PortError>> {
    let pass = async |ports: TickPorts<'_>| {
        let TickPorts { steps, webhooks } = ports;
        let (announcing, control) = (steps.announcing(), steps.ledger);
        work_off(RetirePorts { announcing, webhooks, control }, MINUTE).await
    };
    world.process_with(webhooks, plan, pass).await
}
