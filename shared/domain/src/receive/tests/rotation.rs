//! Secrets that change, are many, or cannot be read.

use std::time::Duration;

use super::bench::{Bench, Fault, SECRET, V1, extract, interleave};
use crate::ports::ErrorKind;
use crate::receive::Reception;
use crate::signature::secret::{Secret, Stage};

const SECOND: Duration = Duration::from_secs(1);

fn staged(text: &str, stage: Stage, webhook: &str) -> Secret {
    Secret::new(text).unwrap().with_stage(stage).with_webhook_id(webhook).unwrap()
}

/// SM-01, S16: warm with the old secret, the very first delivery under the new one is accepted.
#[test]
fn the_first_delivery_under_a_new_secret_is_accepted() {
    let bench = Bench::new();
    assert_eq!(bench.status(V1), 202);
    bench.secrets.hold(&["typed-into-the-console"]);
    bench.clock.advance(10 * SECOND);
    let headers = bench.signed("typed-into-the-console", V1);
    assert_eq!(bench.send(&headers, V1).status(), 202);
    assert_eq!(bench.secrets.take_loads(), 2);
    assert_eq!(bench.status(V1), 401);
}

/// SM-02: 200 bad signatures in one second are at most one refresh, cold or warm.
#[test]
fn a_storm_of_bad_signatures_is_one_load() {
    for warm in [false, true] {
        let bench = Bench::new();
        if warm {
            assert_eq!(bench.status(V1), 202);
            bench.clock.advance(10 * SECOND);
            bench.secrets.take_loads();
        }
        let headers = bench.signed("somebody-elses", V1);
        for _ in 0..200 {
            assert_eq!(bench.send(&headers, V1).status(), 401);
            bench.clock.advance(Duration::from_millis(5));
        }
        assert_eq!(bench.secrets.take_loads(), 1, "warm: {warm}");
    }
}

/// SM-02: 50 at once on a cold start, good and bad ones mixed: one load.
#[test]
fn fifty_at_once_on_a_cold_start_are_one_load() {
    for seed in 0..20 {
        let bench = Bench::new();
        bench.secrets.gate.yield_at_each_call();
        let (good, bad) = (bench.signed(SECRET, V1), bench.signed("somebody-elses", V1));
        let deliveries = (0..50).map(|n| bench.receive(if n % 2 == 0 { &good } else { &bad }, V1));
        let statuses: Vec<_> = interleave(seed, deliveries).iter().map(Reception::status).collect();
        assert_eq!(statuses, [202, 401].repeat(25), "seed {seed}");
        assert_eq!(bench.secrets.take_loads(), 1, "seed {seed}");
    }
}

/// SM-03: warm, deliveries under the known secret are accepted whatever the source does.
#[test]
fn a_source_in_trouble_costs_no_delivery_while_warm() {
    for fault in [
        Fault::Before(ErrorKind::Throttled),
        Fault::Before(ErrorKind::Denied),
        Fault::Before(ErrorKind::Unavailable),
        Fault::HangBefore,
    ] {
        let bench = Bench::new();
        assert_eq!(bench.status(V1), 202);
        bench.secrets.gate.spoil_all("load", fault);
        bench.clock.advance(Duration::from_mins(5));
        for _ in 0..3 {
            let (status, took) = bench.timed(|| bench.status(V1));
            assert_eq!(status, 202, "{fault:?}");
            assert!(took < 2 * SECOND, "{fault:?}");
        }
    }
}

/// SM-03: warm, a delivery that may be signed with a new secret is not refused while nobody can
/// look: 503, never 401.
#[test]
fn a_mismatch_is_no_refusal_while_the_source_is_in_trouble() {
    for fault in [
        Fault::Before(ErrorKind::Throttled),
        Fault::Before(ErrorKind::Denied),
        Fault::Before(ErrorKind::Corrupt),
        Fault::HangBefore,
    ] {
        let bench = Bench::new();
        assert_eq!(bench.status(V1), 202);
        bench.clock.advance(10 * SECOND);
        bench.secrets.gate.spoil_all("load", fault);
        let headers = bench.signed("new-secret", V1);
        for _ in 0..3 {
            let (reception, took) = bench.timed(|| bench.send(&headers, V1));
            assert_eq!(reception.status(), 503, "{fault:?}");
            assert_eq!(reception.code(), "secrets_unavailable", "{fault:?}");
            assert!(took < 3 * SECOND, "{fault:?}");
        }
        bench.secrets.gate.heal();
        bench.secrets.hold(&["new-secret"]);
        bench.clock.advance(10 * SECOND);
        assert_eq!(bench.send(&headers, V1).status(), 202, "{fault:?}");
    }
}

/// SM-03: cold, 503 within three seconds, and the reason names the source.
#[test]
fn a_cold_start_without_secrets_is_503_in_time() {
    for fault in [
        Fault::Before(ErrorKind::Throttled),
        Fault::Before(ErrorKind::Denied),
        Fault::Before(ErrorKind::Corrupt),
        Fault::HangBefore,
        Fault::HangAfter,
    ] {
        let bench = Bench::new();
        bench.secrets.gate.spoil_all("load", fault);
        let (reception, took) = bench.timed(|| bench.deliver(V1));
        assert_eq!(reception.status(), 503, "{fault:?}");
        assert_eq!(reception.code(), "secrets_unavailable", "{fault:?}");
        assert!(took < 3 * SECOND, "{fault:?}");
        assert_eq!(bench.ledger.writes(), 0);
        bench.secrets.gate.heal();
        bench.clock.advance(SECOND);
        assert_eq!(bench.status(V1), 202, "{fault:?}");
    }
}

/// SM-05: without the pending stage, deliveries under the current secret are unaffected.
#[test]
fn an_absent_pending_secret_changes_nothing() {
    let bench = Bench::new();
    bench.secrets.hold_all(vec![staged(SECRET, Stage::Current, "w-1")]);
    assert_eq!(bench.status(V1), 202);
    bench.clock.advance(5 * SECOND);
    assert_eq!(bench.status(V1), 202);
    assert_eq!(bench.secrets.take_loads(), 1);
}

/// SM-07: pending, current and previous secrets are accepted; the previous one until the source
/// stops giving it, and no longer than a maximum age after that.
#[test]
fn both_sides_of_a_rotation_are_accepted_until_the_grace_ends() {
    let bench = Bench::new();
    let rotating = |stages: &[(&str, Stage)]| {
        let secrets = stages.iter().map(|(text, stage)| staged(text, *stage, "w-1")).collect();
        bench.secrets.hold_all(secrets);
    };
    let status_under = |secret: &str| bench.send(&bench.signed(secret, V1), V1).status();
    rotating(&[("old", Stage::Current), ("new", Stage::Pending)]);
    assert_eq!((status_under("old"), status_under("new")), (202, 202));
    rotating(&[("new", Stage::Current), ("old", Stage::Previous)]);
    bench.clock.advance(30 * SECOND);
    assert_eq!((status_under("old"), status_under("new")), (202, 202));
    rotating(&[("new", Stage::Current)]);
    bench.clock.advance(Duration::from_mins(5));
    assert_eq!((status_under("new"), status_under("old")), (202, 401));
}

/// SM-08, S15: three registrations, three secrets, one event of each; a stranger's fails, and
/// rotating one touches no other.
#[test]
fn each_webhook_is_verified_under_its_own_secret() {
    let bench = Bench::new();
    let of = |webhook: &str, text: &str| staged(text, Stage::Current, webhook);
    bench.secrets.hold_all(vec![of("w-1", "one"), of("w-2", "two"), of("w-3", "three")]);
    for (n, (secret, event)) in
        [("one", "extract"), ("two", "batch"), ("three", "crawl")].into_iter().enumerate()
    {
        let body = format!(r#"{{"job_id":"j{n}","event_type":"{event}_completed"}}"#);
        let reception = bench.send(&bench.signed(secret, body.as_bytes()), body.as_bytes());
        assert_eq!(reception.status(), 202, "{secret}");
    }
    assert_eq!(bench.queue.sent(), 3);
    assert_eq!(bench.send(&bench.signed("four", V1), V1).status(), 401);

    bench.secrets.hold_all(vec![of("w-1", "one"), of("w-2", "two-b"), of("w-3", "three")]);
    bench.clock.advance(10 * SECOND);
    for (secret, status) in [("two-b", 202), ("one", 202), ("three", 202), ("two", 401)] {
        assert_eq!(bench.send(&bench.signed(secret, V1), V1).status(), status, "{secret}");
    }
    assert!(bench.row(&extract("j1")).is_some());
}
