//! Each port call of a run failing or crashing, before and after its effect, once and twice, and
//! two runs at once; then left alone until quiet. The end is the same as without faults.

use super::*;
use crate::work::tests::faults::{Fault, Faulty, run as process};
use crate::work::tests::rig::{answer, standing};

struct World {
    rig: Rig,
    webhooks: Arc<MemoryWebhooks>,
}

/// Jobs of which the ledger knows nothing, something and all, and one on its way.
fn begin() -> World {
    let (rig, webhooks, ids) = world();
    for (job, status) in [
        ("unknown", DeliveryStatus::Abandoned),
        ("expected", DeliveryStatus::Failed),
        ("received", DeliveryStatus::Success),
        ("taken", DeliveryStatus::Success),
    ] {
        assert!(webhooks.log(&ids[0], row(&rig, job, status, 500, HOUR)));
        let done = answer(&extract(job), crate::job::JobStatus::Completed);
        rig.jobs.answer_extract(&id(job), Ok(done));
    }
    for job in ["expected", "received"] {
        let row = Entry::expected(extract(job), None, Cause::Submit, rig.now(), &rig.limits);
        rig.ledger.place(&row);
    }
    process(rig.announce(&extract("received"))).unwrap();
    World { rig, webhooks }
}

fn once(ports: Ports<'_>, webhooks: &dyn Webhooks) {
    let _ = process(async {
        let (mut report, rules) = (Replayed::default(), rules());
        drop(replay(ports, webhooks, &rules, WET, &mut report, &mut |_| {}).await);
    });
}

async fn heal(world: &World) -> Vec<String> {
    for _ in 0..3 {
        world.rig.clock.advance(MINUTE);
        run(&world.rig, &*world.webhooks).await;
    }
    world.rig.settle().await;
    let rows = world.rig.ledger.entries().into_iter();
    let rows = rows.map(|entry| format!("{} {}", entry.key, standing(&entry)));
    rows.chain(world.rig.results.keys()).collect()
}

fn calls() -> usize {
    let world = begin();
    let faulty = Faulty::new(&world.rig, []);
    once(faulty.ports(), &*world.webhooks);
    faulty.calls().len()
}

/// SC-10, SC-11: one fault anywhere in a run, and two, in it and in the one after it.
#[tokio::test]
async fn any_fault_leads_to_the_same_end() {
    let without = heal(&begin()).await;
    assert_eq!(without.len(), 8);
    let calls = calls();
    for first in 0..calls {
        for fault in Fault::ALL {
            let world = begin();
            once(Faulty::new(&world.rig, [(first, fault)]).ports(), &*world.webhooks);
            assert_eq!(heal(&world).await, without, "call {first} {fault:?}");
        }
        for second in first + 1..first + calls {
            for faults in [[Fault::FailAfter; 2], [Fault::CrashAfter, Fault::FailBefore]] {
                let world = begin();
                let plan = [(first, faults[0]), (second, faults[1])];
                let faulty = Faulty::new(&world.rig, plan);
                once(faulty.ports(), &*world.webhooks);
                once(faulty.ports(), &*world.webhooks);
                assert_eq!(heal(&world).await, without, "{plan:?}");
            }
        }
    }
}

/// The platform's calls fail as well: each run is made up for by the next one.
#[tokio::test]
async fn any_failing_call_of_the_platform_leads_to_the_same_end() {
    let without = heal(&begin()).await;
    for failures in 1..12_u32 {
        let world = begin();
        for _ in 0..failures {
            let kind = crate::ports::ApiErrorKind::Unavailable;
            world.webhooks.fail(crate::work::tests::rig::error(kind, Some(500)));
        }
        once(world.rig.ports(), &*world.webhooks);
        for _ in 0..failures {
            run(&world.rig, &*world.webhooks).await;
        }
        assert_eq!(heal(&world).await, without, "{failures} failures");
    }
}

/// SC-10: a whole second run in the middle of the first, and each job is announced once.
#[tokio::test]
async fn a_second_run_at_any_moment_leads_to_the_same_end() {
    let without = heal(&begin()).await;
    for call in 0..calls() {
        let world = begin();
        let visitor = || once(world.rig.ports(), &*world.webhooks);
        let faulty = Faulty::with_visitor(&world.rig, call, visitor);
        once(faulty.ports(), &*world.webhooks);
        assert_eq!(world.rig.queue.sent(), 4, "before call {call}");
        assert_eq!(heal(&world).await, without, "before call {call}");
    }
}
