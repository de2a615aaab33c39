use std::pin::Pin;

use super::*;
use crate::receive::tests::bench::{Bench, Fault, drive, interleave};
use crate::time::after;

const SECOND: Duration = Duration::from_secs(1);

fn active(bench: &Bench, pauses: &Pauses, scope: Scope) -> Option<Pause> {
    drive(&bench.clock, pauses.active(bench.ports().ledger, scope, bench.now())).unwrap()
}

fn extend(bench: &Bench, scope: Scope, seconds: u64) -> Result<(), PortError> {
    let until = after(bench.now(), Duration::from_secs(seconds));
    let why = format!("{seconds}");
    drive(&bench.clock, bench.pauses.extend(bench.ports().ledger, scope, until, &why))
}

/// The seconds that a pause still lasts.
fn left(bench: &Bench, scope: Scope) -> Option<u64> {
    active(bench, &Pauses::default(), scope).map(|p| between(bench.now(), p.until).as_secs())
}

#[test]
fn a_pause_is_only_ever_extended() {
    let bench = Bench::new();
    assert_eq!(left(&bench, Scope::All), None);
    for (asked, lasting) in [(60, 60), (30, 60), (60, 60), (61, 61), (0, 61)] {
        extend(&bench, Scope::All, asked).unwrap();
        assert_eq!(left(&bench, Scope::All), Some(lasting), "asked for {asked}");
    }
    let why = active(&bench, &Pauses::default(), Scope::All).unwrap().why;
    assert_eq!((why.as_str(), bench.ledger.controls()[0].version), ("61", 2));
}

#[test]
fn a_pause_ends_at_its_instant() {
    let bench = Bench::new();
    extend(&bench, Scope::All, 60).unwrap();
    bench.clock.advance(Duration::from_nanos(59_999_999_999));
    assert!(active(&bench, &bench.pauses, Scope::All).is_some());
    bench.clock.advance(Duration::from_nanos(1));
    assert!(active(&bench, &bench.pauses, Scope::All).is_none());
}

/// A pause of all calls covers paid ones; a pause of paid ones covers nothing else.
#[test]
fn scopes_cover_what_they_say() {
    let bench = Bench::new();
    extend(&bench, Scope::Paying, 30).unwrap();
    assert_eq!((left(&bench, Scope::All), left(&bench, Scope::Paying)), (None, Some(30)));
    extend(&bench, Scope::All, 60).unwrap();
    assert_eq!((left(&bench, Scope::All), left(&bench, Scope::Paying)), (Some(60), Some(60)));
    extend(&bench, Scope::Paying, 90).unwrap();
    assert_eq!((left(&bench, Scope::All), left(&bench, Scope::Paying)), (Some(60), Some(90)));
}

/// What was read is believed for a second, so another process's pause is seen a second later.
#[test]
fn pauses_are_read_once_a_second() {
    let bench = Bench::new();
    let ours = Pauses::default();
    assert!(active(&bench, &ours, Scope::Paying).is_none());
    extend(&bench, Scope::All, 60).unwrap();
    bench.gate.take_calls();
    bench.clock.advance(Duration::from_millis(999));
    assert!(active(&bench, &ours, Scope::All).is_none());
    assert!(active(&bench, &ours, Scope::Paying).is_none());
    assert!(bench.gate.take_calls().is_empty());
    bench.clock.advance(Duration::from_millis(1));
    assert!(active(&bench, &ours, Scope::All).is_some());
    assert_eq!(bench.gate.take_calls().len(), 1, "what is paid for is not asked about");
    assert!(active(&bench, &ours, Scope::Paying).is_some());
    assert_eq!(bench.gate.take_calls().len(), 1);
}

/// A pause that this process writes is seen by it at once, also while somebody is reading.
#[test]
fn ones_own_pause_is_seen_at_once() {
    for seed in 0..50 {
        let bench = Bench::new();
        bench.gate.yield_at_each_call();
        let (ports, now) = (bench.ports(), bench.now());
        let until = after(now, 60 * SECOND);
        let works: [Pin<Box<dyn Future<Output = ()>>>; 3] = [
            Box::pin(async { drop(bench.pauses.active(ports.ledger, Scope::All, now).await) }),
            Box::pin(async {
                bench.pauses.extend(ports.ledger, Scope::All, until, "throttled").await.unwrap();
                let seen = bench.pauses.active(ports.ledger, Scope::All, now).await.unwrap();
                assert!(seen.is_some(), "seed {seed}");
            }),
            Box::pin(async { drop(bench.pauses.active(ports.ledger, Scope::All, now).await) }),
        ];
        interleave(seed, works);
    }
}

/// Concurrent extensions end in the longest one.
#[test]
fn of_extensions_at_once_the_longest_stays() {
    for seed in 0..50 {
        let bench = Bench::new();
        bench.gate.yield_at_each_call();
        let (ports, now) = (bench.ports(), bench.now());
        let works = [20, 60, 40, 10].map(|seconds| {
            let until = after(now, Duration::from_secs(seconds));
            let pauses = &bench.pauses;
            async move { pauses.extend(ports.ledger, Scope::All, until, "throttled").await }
        });
        assert!(interleave(seed, works).iter().all(Result::is_ok), "seed {seed}");
        let longest = active(&bench, &Pauses::default(), Scope::All).unwrap();
        assert_eq!(longest.until, after(now, 60 * SECOND), "seed {seed}");
    }
}

/// A value that does not decode is no pause, and is written over.
#[test]
fn a_corrupt_value_is_written_over() {
    let bench = Bench::new();
    for value in ["", "{", r#"{"until":"soon","why":"x"}"#, "null"] {
        let version = bench.ledger.controls().first().map_or(1, |row| row.version + 1);
        let (name, value) = ("pause/all".to_owned(), value.to_owned());
        let row = ControlRow { name, version, value };
        assert!(drive(&bench.clock, bench.ports().ledger.write_control(&row)).unwrap());
        assert_eq!(left(&bench, Scope::All), None);
        extend(&bench, Scope::All, 60).unwrap();
        assert_eq!(left(&bench, Scope::All), Some(60));
    }
}

/// A lost answer: the pause may be written; repeating the call finds it or writes it.
#[test]
fn a_lost_answer_is_made_good_by_repeating() {
    for fault in [Fault::Before(ErrorKind::Unavailable), Fault::After(ErrorKind::Unavailable)] {
        for call in 1..=2 {
            let bench = Bench::new();
            bench.gate.spoil(call, fault);
            assert!(extend(&bench, Scope::All, 60).is_err(), "call {call}, {fault:?}");
            extend(&bench, Scope::All, 60).unwrap();
            assert_eq!(left(&bench, Scope::All), Some(60), "call {call}, {fault:?}");
        }
    }
}

/// A pause that was not written is not called written.
#[test]
fn it_gives_up_after_eight_lost_races() {
    let bench = Bench::new();
    for version in 1..=8 {
        let ledger = bench.ledger.clone();
        bench.gate.meanwhile("write_control", move || {
            let (name, value) = ("pause/all".to_owned(), String::new());
            let row = ControlRow { name, version, value };
            let mut write = Box::pin(async move { ledger.write_control(&row).await });
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(write.as_mut().poll(&mut context).is_ready());
        });
    }
    assert_eq!(extend(&bench, Scope::All, 60).unwrap_err().kind, ErrorKind::Unavailable);
}

#[test]
fn a_clock_that_was_set_back_does_not_keep_an_old_reading() {
    let bench = Bench::new();
    let noon = bench.now();
    bench.clock.advance(60 * SECOND);
    assert!(active(&bench, &bench.pauses, Scope::All).is_none());
    let other = Pauses::default();
    let until = after(bench.now(), 60 * SECOND);
    drive(&bench.clock, other.extend(bench.ports().ledger, Scope::All, until, "denied")).unwrap();
    bench.clock.set(noon);
    assert!(active(&bench, &bench.pauses, Scope::All).is_some());
}

/// An error of the ledger is told, and is not taken for "no pause".
#[test]
fn an_unread_pause_is_an_error() {
    let bench = Bench::new();
    extend(&bench, Scope::All, 60).unwrap();
    for call in 1..=2 {
        bench.gate.spoil(call, Fault::Before(ErrorKind::Throttled));
        let pauses = Pauses::default();
        let asked = pauses.active(bench.ports().ledger, Scope::Paying, bench.now());
        assert!(drive(&bench.clock, asked).is_err(), "call {call}");
    }
    assert!(active(&bench, &bench.pauses, Scope::All).is_some());
}
