//! Each port call of a run failing or crashing, before and after its effect, once and twice, and
//! two runs at once; then left alone until quiet. The end is the same as without faults.

use super::*;
use crate::entry::Cause;
use crate::work::tests::faults::{Fault, Faulty, run as process};
use crate::work::tests::rig::{answer, standing};

/// Jobs of three kinds: finished, failed, open, known, expected, received and gone.
fn world() -> Rig {
    let rig = Rig::new();
    for kind in Kind::ALL {
        for status in ["completed", "cancelled", "queued"] {
            list(&rig, kind, &format!("{kind}-{status}"), status, MINUTE);
        }
    }
    for name in ["expected", "received"] {
        let key = list(&rig, Kind::Extract, name, "completed", 2 * MINUTE);
        rig.ledger.place(&Entry::expected(key, None, Cause::Submit, rig.now(), &rig.limits));
    }
    process(rig.announce(&extract("received"))).unwrap();
    // What is open now ends later, and its answers tell so.
    for kind in [Kind::Extract, Kind::Batch, Kind::Crawl] {
        let key = JobKey::new(kind, id(&format!("{kind}-queued")));
        if kind == Kind::Extract {
            rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
        } else {
            let ended = crate::testing::parent_answer(&key, JobStatus::Completed, Vec::new());
            rig.jobs.answer_parent(&key, Ok(ended));
        }
    }
    rig
}

/// A smaller one, for as many runs as there are pairs of calls.
fn small_world() -> Rig {
    let rig = Rig::new();
    list(&rig, Kind::Extract, "unknown", "completed", MINUTE);
    list(&rig, Kind::Batch, "cancelled", "cancelled", MINUTE);
    let key = list(&rig, Kind::Extract, "expected", "completed", 2 * MINUTE);
    rig.ledger.place(&Entry::expected(key, None, Cause::Submit, rig.now(), &rig.limits));
    let key = list(&rig, Kind::Extract, "open", "queued", MINUTE);
    rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
    rig
}

/// One process, to its end or to where it crashes.
fn once(ports: Ports<'_>) {
    let _ = process(async {
        let mut report = Reconciled::default();
        drop(reconcile(ports, &rules(), WET, &mut report, &mut |_| {}).await);
    });
}

/// Each row as it stands, and each object that was stored.
type End = (Vec<String>, Vec<String>);

/// Nothing fails any more: a few runs, and the rest until it is quiet.
async fn heal(rig: &Rig) -> End {
    for _ in 0..3 {
        rig.clock.advance(MINUTE);
        run(rig.ports()).await;
    }
    rig.settle().await;
    let rows = rig.ledger.entries().into_iter();
    let rows = rows.map(|entry| format!("{} {}", entry.key, standing(&entry))).collect();
    (rows, rig.results.keys())
}

/// How many calls a run makes.
fn calls(world: fn() -> Rig) -> usize {
    let rig = world();
    let faulty = Faulty::new(&rig, []);
    once(faulty.ports());
    faulty.calls().len()
}

/// SC-10, SC-11: one fault anywhere in a run.
#[tokio::test]
async fn any_one_fault_leads_to_the_same_end() {
    let without = heal(&world()).await;
    assert_eq!(without.0.len(), 11);
    for call in 0..calls(world) {
        for fault in Fault::ALL {
            let rig = world();
            once(Faulty::new(&rig, [(call, fault)]).ports());
            assert_eq!(heal(&rig).await, without, "call {call} {fault:?}");
        }
    }
}

/// SC-10, SC-11: two faults, in the first run and in the one after it.
#[tokio::test]
async fn any_two_faults_lead_to_the_same_end() {
    let (world, calls) = (small_world, calls(small_world));
    let without = heal(&world()).await;
    for first in 0..calls {
        for second in first + 1..first + calls {
            for faults in [[Fault::FailAfter; 2], [Fault::CrashAfter, Fault::FailBefore]] {
                let rig = world();
                let faulty = Faulty::new(&rig, [(first, faults[0]), (second, faults[1])]);
                once(faulty.ports());
                once(faulty.ports());
                assert_eq!(heal(&rig).await, without, "calls {first} and {second} {faults:?}");
            }
        }
    }
}

/// SC-10: a whole second run in the middle of the first, and each job is announced once.
#[tokio::test]
async fn a_second_run_at_any_moment_leads_to_the_same_end() {
    let without = heal(&world()).await;
    let sent = {
        let rig = world();
        once(rig.ports());
        rig.queue.sent()
    };
    for call in 0..calls(world) {
        let rig = world();
        let visitor = || once(Faulty::new(&rig, []).ports());
        once(Faulty::with_visitor(&rig, call, visitor).ports());
        assert_eq!(rig.queue.sent(), sent, "before call {call}");
        assert_eq!(heal(&rig).await, without, "before call {call}");
    }
}

/// Run twice, nothing changes.
#[tokio::test]
async fn a_second_run_changes_no_row() {
    let rig = world();
    once(rig.ports());
    let rows = rig.ledger.entries();
    let depth = rig.queue.depth();
    once(rig.ports());
    assert_eq!((rig.ledger.entries(), rig.queue.depth()), (rows, depth));
}
