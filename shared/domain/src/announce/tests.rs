use super::*;
use crate::entry::{DeadReason, Link, State};
use crate::job::JobId;
use crate::ports::ErrorKind;
use crate::receive::tests::bench::{Bench, Fault, extract};

fn linked() -> Link {
    Link {
        submission: "s1".to_owned(),
        lineage: JobId::parse("j1").unwrap(),
        attempt: 0,
        base: 0,
        request: None,
        reference: None,
    }
}

#[test]
fn the_outcome_names_the_row_that_was_written_over() {
    let bench = Bench::new();
    assert_eq!(bench.announce(&extract("j1")).unwrap(), AnnounceOutcome::New);
    let known = AnnounceOutcome::Known(StateName::Received);
    assert_eq!(bench.announce(&extract("j1")).unwrap(), known);
    bench.clock.advance(bench.limits.enqueue_grace);
    let sent = AnnounceOutcome::Sent(StateName::Received);
    assert_eq!(bench.announce(&extract("j1")).unwrap(), sent);
}

/// A submission links its row between our read and our write: the row is known, not new.
#[test]
fn a_row_that_appears_meanwhile_is_announced_as_it_is() {
    let bench = Bench::new();
    let (ledger, now, limits) = (bench.ledger.clone(), bench.now(), bench.limits.clone());
    bench.gate.meanwhile("write", move || {
        let link = Some(linked());
        ledger.place(&Entry::expected(extract("j1"), link, Cause::Submit, now, &limits));
    });
    let outcome = bench.announce(&extract("j1")).unwrap();
    assert_eq!(outcome, AnnounceOutcome::Sent(StateName::Expected));
    let row = bench.row(&extract("j1")).unwrap();
    assert_eq!((row.state, row.link), (State::Received, Some(linked())));
    assert_eq!(bench.queue.sent(), 1);
}

/// DQ-01: the row is this very call's, from a try below us whose answer was lost, and somebody
/// has linked it since: the task is sent all the same.
#[test]
fn a_row_of_this_very_call_that_was_linked_meanwhile_gets_its_task() {
    let bench = Bench::new();
    let twin = Bench::new();
    twin.announce(&extract("j1")).unwrap();
    // Both benches have one seed, so this row carries the token that is about to be used.
    let row = twin.row(&extract("j1")).unwrap().linked(&linked()).unwrap();
    let ledger = bench.ledger.clone();
    bench.gate.meanwhile("write", move || ledger.place(&row));
    assert_eq!(bench.announce(&extract("j1")).unwrap(), AnnounceOutcome::New);
    assert_eq!(bench.queue.sent(), 1);
    assert_eq!(bench.row(&extract("j1")).unwrap().link, Some(linked()));
}

/// DQ-02: the message was taken, its answer lost, and a worker settled the row at once: the note
/// that the send failed does not touch it.
#[test]
fn a_row_that_was_settled_meanwhile_is_not_marked_unsent() {
    let bench = Bench::new();
    bench.gate.spoil(3, Fault::After(ErrorKind::Unavailable));
    let (ledger, now, limits) = (bench.ledger.clone(), bench.now(), bench.limits.clone());
    bench.gate.meanwhile("send", move || {
        let row = ledger.entry(&extract("j1")).unwrap();
        let dead = State::Dead { reason: DeadReason::Cancelled, error: None, result: None };
        ledger.place(&row.settled(dead, Cause::Work, now, &limits));
    });
    assert!(bench.announce(&extract("j1")).is_err());
    let row = bench.row(&extract("j1")).unwrap();
    assert_eq!((row.state.name(), row.version), (StateName::Dead, 2));
    let known = AnnounceOutcome::Known(StateName::Dead);
    assert_eq!(bench.announce(&extract("j1")).unwrap(), known);
}

/// A dead entry that the platform speaks of is opened again three times, and no more.
#[test]
fn a_job_that_is_gone_again_and_again_stays_dead() {
    let bench = Bench::new();
    let die = |reason| {
        let row = bench.row(&extract("j1")).unwrap();
        let dead = State::Dead { reason, error: None, result: None };
        bench.ledger.place(&row.settled(dead, Cause::Work, bench.now(), &bench.limits));
    };
    bench.announce(&extract("j1")).unwrap();
    for reopens in 1..=3 {
        die(DeadReason::Gone);
        let sent = AnnounceOutcome::Sent(StateName::Dead);
        assert_eq!(bench.announce(&extract("j1")).unwrap(), sent);
        let row = bench.row(&extract("j1")).unwrap();
        assert_eq!((row.generation, row.counters.reopens), (reopens, reopens));
    }
    die(DeadReason::Gone);
    let known = AnnounceOutcome::Known(StateName::Dead);
    assert_eq!(bench.announce(&extract("j1")).unwrap(), known);
}
