use std::future::Future;

use super::*;
use crate::entry::{Cause, State};
use crate::job::{JobError, JobKey, JobStatus};
use crate::limits::NOTE_BYTES_MAX;
use crate::ports::ExtractJob;
use crate::receive::tests::bench::{Bench, interleave};
use crate::time::after;
use crate::work::tests::faults::{Fault, Faulty, run};
use crate::work::tests::rig::{HOUR, Rig, answer, extract, link_of, standing};

fn note() -> Note {
    Note::new(Some("ann"), Some("the page is back")).unwrap()
}

fn dead_row(key: &JobKey, reason: DeadReason, now: Timestamp) -> Entry {
    let limits = crate::limits::Limits::default();
    let link = link_of(key, "s-1");
    let row = Entry::expected(key.clone(), Some(link), Cause::Submit, now, &limits);
    let state = State::Dead { reason, error: None, result: None };
    row.settled(state, Cause::Work, now, &limits)
}

/// A world in which job `a` is dead for this reason.
fn dead(reason: DeadReason) -> (Rig, Entry) {
    let rig = Rig::new();
    let row = dead_row(&extract("a"), reason, rig.now());
    rig.ledger.place(&row);
    (rig, row)
}

fn failed_for_good(key: &JobKey) -> ExtractJob {
    let error = Some(JobError::new("PERMANENT_BLOCK", "", false));
    ExtractJob { error, ..answer(key, JobStatus::Failed) }
}

async fn redriven(rig: &Rig, read: &Entry) -> Decided {
    let note = note();
    redrive(rig.ports().announcing(), read.clone(), PayAgain::Never, Some(&note)).await.unwrap()
}

async fn discarded(rig: &Rig, read: &Entry) -> Decided {
    discard(rig.ports().announcing(), read.clone(), Some(&note())).await.unwrap()
}

/// DQ-10: one audited decision works exactly one dead job again: who, why, a new generation, a
/// time at which somebody looks, no expiry, and a task.
#[tokio::test]
async fn a_redrive_opens_the_row_and_says_who_and_why() {
    let (rig, read) = dead(DeadReason::Failed);
    rig.clock.advance(HOUR);
    let Decided::Done(row) = redriven(&rig, &read).await else { panic!("not done") };
    assert_eq!(rig.entry(&read.key), *row);
    assert_eq!((&row.state, row.generation, row.expires_at), (&State::Received, 1, None));
    assert_eq!(row.due_at, Some(after(rig.now(), rig.limits.enqueue_grace)));
    let line = row.history.last().unwrap();
    assert_eq!((line.from, line.cause), (Some(StateName::Dead), Cause::Operator));
    assert_eq!(line.note.as_ref().unwrap().as_str(), "ann: the page is back");
    assert_eq!(rig.queue.tasks(), [Task { key: read.key.clone() }]);
}

/// The second of two operators, and the first one's second try, open nothing: whoever read the row
/// before it was opened decides about a row that is no more.
#[tokio::test]
async fn what_somebody_has_opened_is_left_alone() {
    let (rig, read) = dead(DeadReason::Failed);
    redriven(&rig, &read).await;
    for decided in [redriven(&rig, &read).await, discarded(&rig, &read).await] {
        assert_eq!(decided, Decided::Left(Left::Open(StateName::Received)));
    }
    rig.jobs.answer_extract(&read.key.job_id, Ok(failed_for_good(&read.key)));
    rig.settle().await;
    assert_eq!(redriven(&rig, &read).await, Decided::Left(Left::Moved));
    let again = rig.entry(&read.key);
    assert!(matches!(redriven(&rig, &again).await, Decided::Done(_)));
    rig.jobs.clear_answers(&read.key);
    rig.jobs.answer_extract(&read.key.job_id, Ok(answer(&read.key, JobStatus::Completed)));
    rig.settle().await;
    assert_eq!(redriven(&rig, &again).await, Decided::Left(Left::Settled(StateName::Stored)));
}

#[tokio::test]
async fn a_row_whose_time_is_over_is_not_there() {
    let (rig, read) = dead(DeadReason::Failed);
    rig.clock.advance(rig.limits.retention);
    for decided in [redriven(&rig, &read).await, discarded(&rig, &read).await] {
        assert_eq!(decided, Decided::Left(Left::Absent));
    }
    assert_eq!(rig.entry(&read.key), read);
}

/// WK-14: where a POST may have been accepted and nobody knows, nobody pays again by the way, also
/// where the row was discarded since.
#[tokio::test]
async fn what_may_pay_again_needs_to_be_said() {
    let (rig, read) = dead(DeadReason::Ambiguous);
    assert_eq!(redriven(&rig, &read).await, Decided::Left(Left::MayPayAgain));
    assert_eq!(rig.entry(&read.key), read);
    discarded(&rig, &read).await;
    let read = rig.entry(&read.key);
    assert_eq!(redriven(&rig, &read).await, Decided::Left(Left::MayPayAgain));
    let ports = rig.ports().announcing();
    let decided = redrive(ports, read, PayAgain::Accepted, None).await.unwrap();
    assert!(matches!(decided, Decided::Done(row) if row.discarded.is_none()));
}

/// A discarded row stays dead, whatever the platform says of its job; what it died of is kept, and
/// an operator may change their mind.
#[tokio::test]
async fn a_discarded_row_stays_as_it_is() {
    let (rig, read) = dead(DeadReason::Gone);
    rig.clock.advance(HOUR);
    let Decided::Done(row) = discarded(&rig, &read).await else { panic!("not done") };
    assert_eq!((standing(&row).as_str(), row.generation), ("dead discarded", 0));
    assert_eq!((row.discarded, row.died_of()), (Some(DeadReason::Gone), Some(DeadReason::Gone)));
    let kept = after(rig.now(), rig.limits.retention).as_second();
    assert_eq!((row.due_at, row.expires_at), (None, Some(kept)));
    let line = row.history.last().unwrap();
    assert_eq!((line.from, line.to), (Some(StateName::Dead), StateName::Dead));
    assert_eq!(line.note.as_ref().unwrap().as_str(), "ann: the page is back");
    assert_eq!(discarded(&rig, &row).await, Decided::Left(Left::Discarded));
    // Beside it, one that is gone is opened by a delivery.
    let beside = dead_row(&extract("b"), DeadReason::Gone, rig.now());
    rig.ledger.place(&beside);
    for key in [&row.key, &beside.key] {
        rig.announce(key).await;
    }
    assert_eq!(rig.entry(&row.key), *row);
    assert_eq!(rig.stands(&beside.key), "received");
    let Decided::Done(opened) = redriven(&rig, &row).await else { panic!("not done") };
    assert_eq!((opened.discarded, opened.died_of()), (None, None));
    assert_eq!(opened.generation, 1);
}

/// WK-08: what is bad for good is parked again, once for each decision, and nothing loops.
#[tokio::test]
async fn a_permanently_bad_job_is_parked_again() {
    let (rig, read) = dead(DeadReason::Failed);
    rig.jobs.answer_extract(&read.key.job_id, Ok(failed_for_good(&read.key)));
    for round in 1..=3 {
        let read = rig.entry(&read.key);
        redriven(&rig, &read).await;
        rig.settle().await;
        rig.clock.advance(48 * HOUR);
        rig.work_queue().await;
        assert_eq!(rig.stands(&read.key), "dead failed");
        assert_eq!(rig.jobs.calls().len(), round, "one look for each decision");
        assert_eq!(rig.jobs.submits(), []);
    }
}

/// A queue that is down costs speed alone: the next word sends the task, and so does the sweep.
#[tokio::test]
async fn a_task_that_cannot_be_sent_is_sent_later() {
    let (rig, read) = dead(DeadReason::Failed);
    let faulty = Faulty::new(&rig, [(1, Fault::FailBefore)]);
    let decided =
        redrive(faulty.ports().announcing(), read.clone(), PayAgain::Never, None).await.unwrap();
    assert_eq!(faulty.calls(), ["write", "send", "write"]);
    let Decided::Unsent(row) = decided else { panic!("{decided:?}") };
    assert_eq!((row.key.clone(), rig.queue.depth()), (read.key.clone(), 0));
    assert_eq!(rig.entry(&read.key).enqueued_at, None);
    rig.jobs.answer_extract(&read.key.job_id, Ok(answer(&read.key, JobStatus::Completed)));
    rig.settle().await;
    assert_eq!(rig.stands(&read.key), "stored");
}

/// Every call of a decision fails or never returns, before its effect and after it; the operator
/// reads the row again and repeats the command. One generation is opened, or one death discarded.
#[tokio::test]
async fn any_fault_is_made_good_by_repeating() {
    type Act = for<'a> fn(&'a Faulty<'_>, Entry) -> bool;
    let redrives: Act = |faulty, read| {
        let ports = faulty.ports().announcing();
        matches!(run(redrive(ports, read, PayAgain::Never, None)), Some(Ok(_)))
    };
    let discards: Act = |faulty, read| {
        let ports = faulty.ports().announcing();
        matches!(run(discard(ports, read, None)), Some(Ok(_)))
    };
    for (act, calls, end) in [(redrives, 3, ("stored", 1)), (discards, 1, ("dead discarded", 0))] {
        for call in 0..calls {
            for fault in Fault::ALL {
                let (rig, read) = dead(DeadReason::Failed);
                rig.jobs
                    .answer_extract(&read.key.job_id, Ok(answer(&read.key, JobStatus::Completed)));
                // The last call is made only after one before it failed.
                let plan = [(1, Fault::FailBefore), (call, fault)];
                act(&Faulty::new(&rig, plan), read.clone());
                let again = rig.entry(&read.key);
                if again.state.name() == StateName::Dead && again.discarded.is_none() {
                    assert!(act(&Faulty::new(&rig, []), again));
                }
                rig.settle().await;
                let row = rig.entry(&read.key);
                assert_eq!((standing(&row).as_str(), row.generation), end, "{fault:?} at {call}");
            }
        }
    }
}

/// Two operators and a discarder at once, in every order: one of them decides.
#[test]
fn of_decisions_at_once_one_is_made() {
    for seed in 0..200 {
        let bench = Bench::new();
        let read = dead_row(&extract("a"), DeadReason::Failed, bench.now());
        bench.ledger.place(&read);
        bench.gate.yield_at_each_call();
        let ports = bench.announcing();
        let deciding = |number: u32| {
            let read = read.clone();
            let decided: std::pin::Pin<Box<dyn Future<Output = _>>> = match number {
                0 => Box::pin(discard(ports, read, None)),
                _ => Box::pin(redrive(ports, read, PayAgain::Never, None)),
            };
            decided
        };
        let decided = interleave(seed, (0..3).map(deciding));
        let done = decided.iter().filter(|it| matches!(it, Ok(Decided::Done(_)))).count();
        assert_eq!(done, 1, "seed {seed}: {decided:?}");
        let row = bench.row(&read.key).unwrap();
        assert_eq!(row.history.len(), read.history.len() + 1, "seed {seed}");
    }
}

#[test]
fn a_note_is_one_short_line() {
    let text = |by, why| Note::new(by, why).map(|note| note.as_str().to_owned());
    assert_eq!(text(None, None), None);
    assert_eq!(text(Some(" "), Some("")), None);
    assert_eq!(text(Some("ann"), None).as_deref(), Some("ann"));
    assert_eq!(text(None, Some(" fixed ")).as_deref(), Some("fixed"));
    assert_eq!(text(Some("a\u{1b}"), Some("b\nc")).as_deref(), Some("a\u{fffd}: b\u{fffd}c"));
    let long = text(None, Some(&"\u{e9}".repeat(500))).unwrap();
    assert_eq!(long.len(), NOTE_BYTES_MAX);
}
