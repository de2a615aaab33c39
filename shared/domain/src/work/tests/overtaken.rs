//! Workers that others overtake just before their last write.

use super::faults::{Faulty, run};
use super::rig::{MINUTE, Rig, answer, extract, link_of};
use crate::adopt::claim;
use crate::entry::{Cause, DeadReason, State};
use crate::job::{JobError, JobStatus};
use crate::ports::ExtractJob;
use crate::task::Task;
use crate::work::{Skip, Worked, work};

/// A received row whose job stands so at the platform.
fn world(status: JobStatus, is_linked: bool) -> Rig {
    let rig = Rig::new();
    let key = extract("a");
    if is_linked {
        rig.receive_linked(&key);
    } else {
        run(rig.announce(&key)).unwrap();
    }
    let error = (status == JobStatus::Failed).then(|| JobError::new("TIMEOUT", "", true));
    rig.jobs.answer_extract(&key.job_id, Ok(ExtractJob { error, ..answer(&key, status) }));
    rig
}

/// Works job `a` while `meanwhile` happens just before the worker's last call of this name.
fn work_while(
    world: impl Fn() -> Rig,
    call: &str,
    meanwhile: impl Fn(&Rig) + Send + Sync,
) -> (Rig, Worked) {
    let task = Task { key: extract("a") };
    let dry = world();
    let faulty = Faulty::new(&dry, []);
    run(work(faulty.ports(), &task)).unwrap().unwrap();
    let last = faulty.calls().iter().rposition(|made| *made == call).unwrap();
    let rig = world();
    let worked = {
        let faulty = Faulty::with_visitor(&rig, last, || meanwhile(&rig));
        run(work(faulty.ports(), &task)).unwrap().unwrap()
    };
    (rig, worked)
}

/// WK-14: a worker that slept between its decision and the POST does not pay any more: its job
/// would lie outside of the window in which others look for it.
#[tokio::test]
async fn a_worker_that_slept_before_its_post_does_not_pay() {
    let failing = || world(JobStatus::Failed, true);
    let task = Task { key: extract("a") };
    let calls = {
        let rig = failing();
        let dry = Faulty::new(&rig, []);
        run(work(dry.ports(), &task)).unwrap().unwrap();
        dry.calls()
    };
    // The first write is the decision to pay.
    let decision = calls.iter().position(|call| *call == "write").unwrap();
    let rig = failing();
    let slept = Faulty::with_visitor(&rig, decision, || rig.clock.advance(2 * MINUTE));
    let worked = run(work(slept.ports(), &task)).unwrap().unwrap();
    assert_eq!((worked, rig.jobs.submits()), (Worked::Skipped(Skip::NotYet), vec![]));
    rig.settle().await;
    assert_eq!(
        (rig.stands(&extract("a")).as_str(), rig.jobs.submits().len()),
        ("superseded job-1", 1)
    );
}

/// WK-14: the row names another POST by now; the late answer does not settle it.
#[tokio::test]
async fn a_late_answer_does_not_settle_a_row_that_waits_for_another_post() {
    let (rig, worked) = work_while(
        || world(JobStatus::Failed, true),
        "write",
        |rig| {
            let mut row = rig.entry(&extract("a"));
            let State::Resubmitting { post } = &mut row.state else { panic!("it is under way") };
            post.token = "another".into();
            row.version += 1;
            rig.ledger.place(&row);
        },
    );
    assert_eq!(worked, Worked::Skipped(Skip::Overtaken));
    assert_eq!(rig.stands(&extract("a")), "resubmitting");
}

/// WK-09: what was learned about one generation of a row says nothing about the next.
#[tokio::test]
async fn a_result_does_not_settle_a_row_that_was_opened_again() {
    let (rig, worked) = work_while(
        || world(JobStatus::Completed, true),
        "write",
        |rig| {
            let row = rig.entry(&extract("a"));
            let reason = DeadReason::Gone;
            let dead = State::Dead { reason, error: None, result: None };
            let dead = row.settled(dead, Cause::Work, rig.now(), &rig.limits);
            rig.ledger.place(&dead.redriven(None, rig.now(), &rig.limits).unwrap());
        },
    );
    assert_eq!(worked, Worked::Skipped(Skip::Overtaken));
    assert_eq!(rig.stands(&extract("a")), "received");
    rig.settle().await;
    assert_eq!(rig.stands(&extract("a")), "stored");
}

/// WK-14: the link came just before the row would have died for the want of one.
#[tokio::test]
async fn a_row_that_is_linked_meanwhile_does_not_die_unlinked() {
    let (rig, worked) = work_while(
        || world(JobStatus::Failed, false),
        "write",
        |rig| {
            let key = extract("a");
            let link = link_of(&key, "s");
            run(claim(rig.ports(), &key, &link, Cause::Submit)).unwrap().unwrap();
        },
    );
    assert_eq!(worked, Worked::Skipped(Skip::Overtaken));
    let done = extract("job-1");
    rig.jobs.answer_extract(&done.job_id, Ok(answer(&done, JobStatus::Completed)));
    rig.settle().await;
    assert_eq!(rig.stands(&extract("a")), "superseded job-1");
}
