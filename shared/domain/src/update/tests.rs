use super::*;
use crate::entry::{Cause, State};
use crate::receive::tests::bench::{Bench, Fault, drive, extract};

fn expected(bench: &Bench) -> Entry {
    Entry::expected(extract("j1"), None, Cause::Submit, bench.now(), &bench.limits)
}

fn run(
    bench: &Bench,
    read: Option<Entry>,
    decide: impl FnMut(Option<&Entry>) -> Option<Entry> + Send,
) -> Result<Changed, PortError> {
    let ports = bench.ports();
    drive(&bench.clock, change(ports.ledger, read, bench.now(), decide))
}

/// The ledger's own client writes twice because the first answer was lost below us: the conflict
/// with our own row is the success that we missed.
#[test]
fn a_conflict_with_the_very_row_counts_as_written() {
    let bench = Bench::new();
    let row = expected(&bench);
    let (ledger, own) = (bench.ledger.clone(), row.clone());
    bench.gate.meanwhile("write", move || ledger.place(&own));
    let changed = run(&bench, None, |_| Some(row.clone())).unwrap();
    assert_eq!(changed, Changed::Written(Box::new(row)));
    assert_eq!(bench.gate.take_calls(), ["write"]);
}

#[test]
fn the_loser_of_a_race_decides_on_the_row_as_it_is() {
    let bench = Bench::new();
    let row = expected(&bench);
    bench.ledger.place(&row);
    let (ledger, moved) = (bench.ledger.clone(), row.swept(bench.now(), &bench.limits));
    bench.gate.meanwhile("write", move || ledger.place(&moved));
    let mut versions = Vec::new();
    let changed = run(&bench, Some(row), |row| {
        let row = row?;
        versions.push(row.version);
        Some(row.unsent())
    });
    let Changed::Written(row) = changed.unwrap() else { panic!("not written") };
    assert_eq!((versions, row.version), (vec![1, 2], 3));
    assert_eq!(bench.row(&extract("j1")), Some(*row));
}

#[test]
fn a_row_that_vanishes_meanwhile_is_decided_on_as_absent() {
    let bench = Bench::new();
    let row = expected(&bench);
    let mut seen = Vec::new();
    let changed = run(&bench, Some(row), |row| {
        seen.push(row.is_some());
        row.map(Entry::unsent)
    });
    assert_eq!(changed.unwrap(), Changed::Left(None));
    assert_eq!(seen, [true, false]);
}

#[test]
fn a_decision_to_leave_the_row_writes_nothing() {
    let bench = Bench::new();
    let row = expected(&bench);
    let changed = run(&bench, Some(row.clone()), |_| None).unwrap();
    assert_eq!(changed, Changed::Left(Some(Box::new(row))));
    assert!(bench.gate.take_calls().is_empty());
}

/// DQ-05: a row that expired is written over as if it were absent, also by the loser of a race.
#[test]
fn an_expired_row_is_written_over() {
    let bench = Bench::new();
    let superseded = State::Superseded { by: extract("j2").job_id };
    let mut old = expected(&bench).settled(superseded, Cause::Work, bench.now(), &bench.limits);
    old.expires_at = Some(bench.now().as_second());
    bench.ledger.place(&old);
    let row = expected(&bench);
    for read in [None, Some(old.clone())] {
        bench.ledger.place(&old);
        let changed = run(&bench, read, |_| Some(row.clone())).unwrap();
        assert_eq!(changed, Changed::Written(Box::new(row.clone())));
    }
}

#[test]
fn it_gives_up_after_eight_lost_races() {
    let bench = Bench::new();
    let row = expected(&bench);
    bench.ledger.place(&row);
    for races in 1..=u64::from(WRITE_CONFLICTS_MAX) {
        let (ledger, mut moved) = (bench.ledger.clone(), row.clone());
        moved.version += races;
        moved.enqueued_at = Some(bench.now());
        bench.gate.meanwhile("write", move || ledger.place(&moved));
    }
    let error = run(&bench, Some(row.clone()), |row| row.map(Entry::unsent)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(bench.gate.take_calls().len(), 8);
    assert_eq!(bench.row(&extract("j1")).unwrap().version, row.version + 8);
}

#[test]
fn an_error_of_the_ledger_ends_it_at_once() {
    let bench = Bench::new();
    for kind in [ErrorKind::Throttled, ErrorKind::Denied, ErrorKind::Corrupt] {
        bench.gate.take_calls();
        bench.gate.spoil(1, Fault::Before(kind));
        let error = run(&bench, None, |_| Some(expected(&bench))).unwrap_err();
        assert_eq!(error.kind, kind);
        assert_eq!(bench.gate.take_calls().len(), 1);
    }
}
