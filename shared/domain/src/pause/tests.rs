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

const HOLD: Duration = Duration::from_secs(30);

/// An account pause of a minute that is over.
fn ended(bench: &Bench, scope: Scope) {
    let until = after(bench.now(), 60 * SECOND);
    let ports = bench.ports();
    let other = Pauses::default();
    drive(&bench.clock, other.extend(ports.ledger, scope, until, "denied")).unwrap();
    bench.clock.advance(60 * SECOND);
}

fn admit(bench: &Bench, pauses: &Pauses, scope: Scope) -> Admission {
    drive(&bench.clock, pauses.admit(bench.ports().ledger, scope, bench.now(), HOLD)).unwrap()
}

fn lift(bench: &Bench, pauses: &Pauses, scope: Scope) -> Result<(), PortError> {
    drive(&bench.clock, pauses.lift(bench.ports().ledger, scope, bench.now()))
}

fn is_paused(admission: &Admission) -> bool {
    matches!(admission, Admission::Paused(_))
}

#[test]
fn an_account_pause_that_ends_admits_one_probe_and_goes_on_without_a_word_of_it() {
    let bench = Bench::new();
    let (ours, theirs) = (Pauses::default(), Pauses::default());
    assert_eq!(admit(&bench, &ours, Scope::All), Admission::Open, "there was no pause");
    ended(&bench, Scope::All);
    for (prober, other) in [(&ours, &theirs), (&theirs, &ours)] {
        assert_eq!(admit(&bench, prober, Scope::All), Admission::Probe(Scope::All));
        for pauses in [prober, other] {
            assert!(is_paused(&admit(&bench, pauses, Scope::All)));
        }
        bench.clock.advance(HOLD);
    }
    assert_eq!(admit(&bench, &ours, Scope::Paying), Admission::Probe(Scope::All));
    lift(&bench, &ours, Scope::All).unwrap();
    assert_eq!(admit(&bench, &ours, Scope::Paying), Admission::Open);
    bench.clock.advance(SECOND);
    assert_eq!(admit(&bench, &theirs, Scope::All), Admission::Open);
    assert_eq!(active(&bench, &theirs, Scope::All), None);
}

/// A pause for throttling ends at its instant and needs no proof, unless there is trouble below it.
#[test]
fn only_trouble_of_the_account_is_to_be_proved() {
    let bench = Bench::new();
    let until = after(bench.now(), 60 * SECOND);
    let extend = |pauses: &Pauses, until, why| {
        drive(&bench.clock, pauses.extend(bench.ports().ledger, Scope::All, until, why)).unwrap();
    };
    extend(&bench.pauses, until, "throttled");
    bench.clock.advance(60 * SECOND);
    assert_eq!(admit(&bench, &bench.pauses, Scope::All), Admission::Open);
    for (first, second) in [("denied", "throttled"), ("throttled", "denied")] {
        let bench = Bench::new();
        for (why, seconds) in [(first, 60), (second, 40)] {
            let until = after(bench.now(), Duration::from_secs(seconds));
            let ports = bench.ports();
            drive(&bench.clock, bench.pauses.extend(ports.ledger, Scope::All, until, why)).unwrap();
        }
        assert_eq!(left(&bench, Scope::All), Some(60), "{first}, {second}");
        bench.clock.advance(60 * SECOND);
        let admitted = admit(&bench, &bench.pauses, Scope::All);
        assert_eq!(admitted, Admission::Probe(Scope::All), "{first}, {second}");
    }
}

/// What the two scopes have to prove is proved one after the other.
#[test]
fn paying_calls_prove_both_scopes() {
    let bench = Bench::new();
    ended(&bench, Scope::Paying);
    ended(&bench, Scope::All);
    let pauses = &bench.pauses;
    assert_eq!(admit(&bench, pauses, Scope::Paying), Admission::Probe(Scope::All));
    lift(&bench, pauses, Scope::All).unwrap();
    assert_eq!(admit(&bench, pauses, Scope::All), Admission::Open);
    assert_eq!(admit(&bench, pauses, Scope::Paying), Admission::Probe(Scope::Paying));
    assert!(is_paused(&admit(&bench, pauses, Scope::Paying)));
    assert_eq!(admit(&bench, pauses, Scope::All), Admission::Open, "these go on");
    lift(&bench, pauses, Scope::Paying).unwrap();
    assert_eq!(admit(&bench, pauses, Scope::Paying), Admission::Open);
}

#[test]
fn of_many_at_once_one_has_the_probe() {
    for seed in 0..50 {
        let bench = Bench::new();
        ended(&bench, Scope::All);
        bench.gate.yield_at_each_call();
        let processes: Vec<_> = (0..4).map(|_| Pauses::default()).collect();
        let (ports, now) = (bench.ports(), bench.now());
        // Two callers of each process.
        let callers = processes.iter().chain(&processes);
        let works = callers.map(|pauses| pauses.admit(ports.ledger, Scope::All, now, HOLD));
        let admitted = interleave(seed, works);
        let probes = admitted.iter().filter(|admitted| matches!(admitted, Ok(Admission::Probe(_))));
        assert_eq!(probes.count(), 1, "seed {seed}: {admitted:?}");
        let paused = admitted.iter().flatten().filter(|admitted| is_paused(admitted));
        assert_eq!(paused.count(), 7, "seed {seed}: {admitted:?}");
    }
}

/// Only whoever has the probe lifts the pause, and only the pause that it was a probe of.
#[test]
fn a_pause_is_lifted_by_its_own_probe() {
    let bench = Bench::new();
    let (ours, theirs) = (Pauses::default(), Pauses::default());
    ended(&bench, Scope::All);
    lift(&bench, &ours, Scope::All).unwrap();
    assert_eq!(admit(&bench, &ours, Scope::All), Admission::Probe(Scope::All));
    lift(&bench, &theirs, Scope::All).unwrap();
    lift(&bench, &ours, Scope::Paying).unwrap();
    assert!(is_paused(&admit(&bench, &ours, Scope::All)));
    // Somebody else's call fails meanwhile.
    let until = after(bench.now(), 90 * SECOND);
    drive(&bench.clock, theirs.extend(bench.ports().ledger, Scope::All, until, "denied")).unwrap();
    lift(&bench, &ours, Scope::All).unwrap();
    assert_eq!(left(&bench, Scope::All), Some(90));
    // One of this process's own calls fails: its probe has.
    bench.clock.advance(90 * SECOND);
    assert_eq!(admit(&bench, &ours, Scope::All), Admission::Probe(Scope::All));
    let until = after(bench.now(), SECOND);
    drive(&bench.clock, ours.extend(bench.ports().ledger, Scope::All, until, "denied")).unwrap();
    lift(&bench, &ours, Scope::All).unwrap();
    assert_eq!(left(&bench, Scope::All), Some(1));
}

/// Whatever becomes of the calls, at most one has the probe, and another gets it after a time.
#[test]
fn a_lost_probe_is_made_good_after_its_time() {
    let faults = [
        Fault::Before(ErrorKind::Unavailable),
        Fault::After(ErrorKind::Unavailable),
        Fault::HangBefore,
        Fault::HangAfter,
    ];
    for fault in faults {
        // The reading of the row, again before the claim, and the claim.
        for call in 1..=3 {
            let bench = Bench::new();
            ended(&bench, Scope::All);
            bench.gate.spoil(call, fault);
            let (ports, now) = (bench.ports(), bench.now());
            let spoiled = Pauses::default();
            let mut asked = Box::pin(spoiled.admit(ports.ledger, Scope::All, now, HOLD));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            match asked.as_mut().poll(&mut context) {
                std::task::Poll::Ready(answer) => assert!(answer.is_err(), "{call}, {fault:?}"),
                std::task::Poll::Pending => {}
            }
            let is_written = call == 3 && matches!(fault, Fault::After(_) | Fault::HangAfter);
            let next = admit(&bench, &Pauses::default(), Scope::All);
            assert_eq!(is_paused(&next), is_written, "{call}, {fault:?}: {next:?}");
            bench.clock.advance(HOLD);
            let next = admit(&bench, &Pauses::default(), Scope::All);
            assert_eq!(next, Admission::Probe(Scope::All), "{call}, {fault:?}");
        }
        // A lift whose calls go wrong: it happened or not, and repeating it does nothing.
        for call in 1..=2 {
            let bench = Bench::new();
            ended(&bench, Scope::All);
            let ours = Pauses::default();
            assert_eq!(admit(&bench, &ours, Scope::All), Admission::Probe(Scope::All));
            bench.gate.spoil(call, fault);
            let (ports, now) = (bench.ports(), bench.now());
            let mut lifted = Box::pin(ours.lift(ports.ledger, Scope::All, now));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            if let std::task::Poll::Ready(answer) = lifted.as_mut().poll(&mut context) {
                assert!(answer.is_err(), "{call}, {fault:?}");
            }
            lift(&bench, &ours, Scope::All).unwrap();
            bench.clock.advance(HOLD);
            let is_lifted = call == 2 && matches!(fault, Fault::After(_) | Fault::HangAfter);
            let next = admit(&bench, &Pauses::default(), Scope::All);
            assert_eq!(next == Admission::Open, is_lifted, "{call}, {fault:?}: {next:?}");
        }
    }
}

/// What an earlier version wrote says nothing of proof, and ends as it did.
#[test]
fn a_pause_of_an_earlier_version_is_read() {
    let bench = Bench::new();
    let until = after(bench.now(), SECOND);
    let value = format!(r#"{{"until":"{until}","why":"denied"}}"#);
    let row = ControlRow { name: "pause/all".to_owned(), version: 1, value };
    assert!(drive(&bench.clock, bench.ports().ledger.write_control(&row)).unwrap());
    assert_eq!(left(&bench, Scope::All), Some(1));
    bench.clock.advance(SECOND);
    assert_eq!(admit(&bench, &Pauses::default(), Scope::All), Admission::Open);
}
