use std::time::Duration;

use super::*;
use crate::limits::Limits;
use crate::receive::tests::bench::{Bench, Fault, drive, interleave};

fn bench(limit: u64) -> Bench {
    Bench::with(Limits { spend_per_day: Some(limit), ..Limits::default() })
}

fn take(bench: &Bench, tokens: u64) -> Result<bool, PortError> {
    drive(&bench.clock, reserve(bench.ports(), tokens))
}

#[test]
fn tokens_are_reserved_up_to_the_limit_and_not_one_more() {
    let bench = bench(10);
    for (tokens, reserved) in [(4, true), (7, false), (6, true), (1, false), (0, true)] {
        assert_eq!(take(&bench, tokens).unwrap(), reserved, "{tokens} tokens");
    }
    assert!(!take(&bench, u64::MAX).unwrap());
}

#[test]
fn each_utc_day_has_its_own_spend() {
    let bench = bench(10);
    assert!(take(&bench, 10).unwrap());
    bench.clock.advance(Duration::from_hours(12) - Duration::from_millis(1));
    assert!(!take(&bench, 1).unwrap());
    bench.clock.advance(Duration::from_millis(1));
    assert!(take(&bench, 10).unwrap());
    let names: Vec<_> = bench.ledger.controls().into_iter().map(|row| row.name).collect();
    assert_eq!(names, ["spend/2026-11-30", "spend/2026-12-01"]);
}

#[test]
fn without_a_limit_nothing_is_counted() {
    let bench = Bench::new();
    assert!(take(&bench, u64::MAX).unwrap());
    assert!(bench.ledger.controls().is_empty() && bench.gate.take_calls().is_empty());
}

/// Six at once that want three of ten each: whoever is told `true` is covered, in every order.
#[test]
fn reservations_at_once_never_pass_the_limit() {
    for seed in 0..200 {
        let bench = bench(10);
        bench.gate.yield_at_each_call();
        let ports = bench.ports();
        let got = interleave(seed, (0..6).map(|_| reserve(ports, 3)));
        let granted = got.iter().filter(|got| matches!(got, Ok(true))).count();
        assert!(got.iter().all(Result::is_ok), "seed {seed}");
        assert_eq!(granted, 3, "seed {seed}");
        assert_eq!(bench.ledger.controls()[0].value, r#"{"tokens":9}"#, "seed {seed}");
    }
}

/// Many more at once than one write has tries: some are told to come again, none is over.
#[test]
fn a_crowd_never_passes_the_limit() {
    for seed in 0..20 {
        let bench = bench(40);
        bench.gate.yield_at_each_call();
        let ports = bench.ports();
        let got = interleave(seed, (0..60).map(|_| reserve(ports, 1)));
        let granted = got.iter().filter(|got| matches!(got, Ok(true))).count();
        let contended = got.iter().filter_map(|got| got.as_ref().err());
        assert!(contended.into_iter().all(|error| error.kind == ErrorKind::Unavailable));
        assert!((8..=40).contains(&granted), "seed {seed}: {granted}");
        assert_eq!(bench.ledger.controls()[0].value, format!(r#"{{"tokens":{granted}}}"#));
    }
}

/// A lost answer counts once more: the limit is kept, on the safe side.
#[test]
fn a_lost_answer_is_on_the_safe_side() {
    let bench = bench(10);
    bench.gate.spoil(2, Fault::After(ErrorKind::Unavailable));
    assert!(take(&bench, 6).is_err());
    assert!(!take(&bench, 6).unwrap());
    assert!(take(&bench, 4).unwrap());
}

/// What was spent and cannot be read is not zero: nobody pays until somebody has looked.
#[test]
fn a_corrupt_value_stops_paying() {
    let bench = bench(10);
    let name = "spend/2026-11-30".to_owned();
    let row = ControlRow { name, version: 1, value: "{".to_owned() };
    assert!(drive(&bench.clock, bench.ports().ledger.write_control(&row)).unwrap());
    assert_eq!(take(&bench, 1).unwrap_err().kind, ErrorKind::Corrupt);
    assert_eq!(bench.ledger.controls(), [row]);
}
