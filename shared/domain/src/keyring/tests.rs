use super::*;
use crate::receive::tests::bench::{
    Bench, Fault, SECRET, ScriptedSecrets, V1, WaitingClock, drive, interleave,
};
use crate::signature::preset::Preset;
use crate::signature::secret::{Secret, Stage};
use crate::signature::verdict::Verdict;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

struct Safe {
    clock: WaitingClock,
    source: Arc<ScriptedSecrets>,
    keyring: Keyring,
}

fn safe() -> Safe {
    let source = Arc::new(ScriptedSecrets::holding(&[SECRET]));
    let scheme = Preset::Geonode.scheme().unwrap();
    let keyring = Keyring::new(source.clone(), scheme, &Limits::default());
    Safe { clock: WaitingClock::default(), source, keyring }
}

impl Safe {
    fn current(&self) -> Result<Arc<Verifier>, NoKeys> {
        drive(&self.clock, self.keyring.current(&self.clock))
    }

    fn newer(&self, used: &Arc<Verifier>) -> Result<Option<Arc<Verifier>>, NoKeys> {
        drive(&self.clock, self.keyring.newer_than(used, &self.clock))
    }

    fn breaks(&self, kind: ErrorKind) {
        self.source.gate.spoil_all("load", Fault::Before(kind));
    }
}

#[test]
fn secrets_are_read_once_until_they_are_old() {
    let safe = safe();
    let first = safe.current().unwrap();
    safe.clock.advance(Duration::from_secs(299));
    assert!(Arc::ptr_eq(&first, &safe.current().unwrap()));
    assert_eq!(safe.source.take_loads(), 1);
    safe.clock.advance(SECOND);
    assert!(!Arc::ptr_eq(&first, &safe.current().unwrap()));
    assert_eq!(safe.source.take_loads(), 1);
}

/// SM-02: 50 at once on a cold start are one load.
#[test]
fn a_cold_start_is_one_load_however_many_ask() {
    for seed in 0..50 {
        let safe = safe();
        safe.source.gate.yield_at_each_call();
        let asks = (0..50).map(|_| safe.keyring.current(&safe.clock));
        let got = interleave(seed, asks);
        assert!(got.iter().all(Result::is_ok));
        assert_eq!(safe.source.take_loads(), 1, "seed {seed}");
    }
}

/// SM-02: a failing cold start is not a storm either, and is tried again a second later.
#[test]
fn a_failing_cold_start_is_tried_once_a_second() {
    let safe = safe();
    safe.source.gate.yield_at_each_call();
    safe.breaks(ErrorKind::Throttled);
    let asks = (0..50).map(|_| safe.keyring.current(&safe.clock));
    let got = interleave(1, asks);
    assert!(got.iter().all(Result::is_err));
    assert_eq!(safe.source.take_loads(), 1);
    safe.clock.advance(Duration::from_millis(999));
    assert!(matches!(safe.current(), Err(NoKeys::Cold)));
    safe.clock.advance(Duration::from_millis(1));
    safe.source.gate.heal();
    assert!(safe.current().is_ok());
    assert_eq!(safe.source.take_loads(), 1);
}

/// SM-02: at most one refresh per cool-down, single flight.
#[test]
fn many_mismatches_are_one_refresh_per_cool_down() {
    for seed in 0..20 {
        let safe = safe();
        let used = safe.current().unwrap();
        safe.clock.advance(10 * SECOND);
        safe.source.take_loads();
        safe.source.gate.yield_at_each_call();
        let asks = (0..200).map(|_| safe.keyring.newer_than(&used, &safe.clock));
        let got = interleave(seed, asks);
        assert!(got.iter().all(|newer| newer.as_ref().is_ok_and(Option::is_some)), "seed {seed}");
        assert_eq!(safe.source.take_loads(), 1, "seed {seed}");
    }
}

#[test]
fn within_the_cool_down_there_is_nothing_newer() {
    let safe = safe();
    let used = safe.current().unwrap();
    safe.clock.advance(Duration::from_millis(9_999));
    assert!(safe.newer(&used).unwrap().is_none());
    safe.clock.advance(Duration::from_millis(1));
    assert!(safe.newer(&used).unwrap().is_some());
    assert_eq!(safe.source.take_loads(), 2);
}

/// SM-03: warm, the last good value stays in force while the source throttles, denies or fails,
/// within a limit; then there is none, and that is no refusal.
#[test]
fn the_last_good_secrets_outlive_their_source_for_an_hour() {
    for kind in [ErrorKind::Throttled, ErrorKind::Unavailable, ErrorKind::Denied] {
        let safe = safe();
        let good = safe.current().unwrap();
        safe.breaks(kind);
        for _ in 0..59 {
            safe.clock.advance(MINUTE);
            assert!(Arc::ptr_eq(&good, &safe.current().unwrap()), "{kind:?}");
        }
        safe.clock.advance(MINUTE);
        assert!(matches!(safe.current(), Err(NoKeys::Load(_))), "{kind:?}");
        safe.clock.advance(SECOND);
        safe.source.gate.heal();
        assert!(safe.current().is_ok(), "{kind:?}");
    }
}

/// SM-03: a source that hangs costs one delivery its share of the deadline, and the others
/// nothing.
#[test]
fn a_refresh_that_hangs_keeps_nobody_from_the_last_good_secrets() {
    let safe = safe();
    let good = safe.current().unwrap();
    safe.clock.advance(5 * MINUTE);
    safe.source.gate.spoil_all("load", Fault::HangBefore);
    let mut refresh = Box::pin(safe.keyring.current(&safe.clock));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(refresh.as_mut().poll(&mut context).is_pending());

    let began_at = safe.clock.now();
    assert!(Arc::ptr_eq(&good, &safe.current().unwrap()));
    assert_eq!(safe.clock.now(), began_at);

    assert!(Arc::ptr_eq(&good, &drive(&safe.clock, refresh).unwrap()));
    assert!(between(began_at, safe.clock.now()) <= 2 * SECOND);
    safe.source.take_loads();
    assert!(Arc::ptr_eq(&good, &safe.current().unwrap()));
    assert_eq!(safe.source.take_loads(), 0);
}

/// SM-03: cold, a source that hangs is an error in time that names what did not answer.
#[test]
fn a_first_load_that_hangs_is_given_up_in_time() {
    let safe = safe();
    safe.source.gate.spoil_all("load", Fault::HangBefore);
    let began_at = safe.clock.now();
    let Err(NoKeys::Load(error)) = safe.current() else { panic!("there is a verifier") };
    assert_eq!((error.port, error.operation), ("secrets", "load"));
    assert!(between(began_at, safe.clock.now()) <= 2 * SECOND);
}

/// SM-03: a delivery that hangs up in the middle of a load leaves no lock behind, and no belief
/// that the secrets are new.
#[test]
fn a_load_that_was_dropped_counts_as_failed() {
    let safe = safe();
    let used = safe.current().unwrap();
    safe.clock.advance(10 * SECOND);
    safe.source.gate.spoil_all("load", Fault::HangBefore);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut refresh = Box::pin(safe.keyring.newer_than(&used, &safe.clock));
    assert!(refresh.as_mut().poll(&mut context).is_pending());
    drop(refresh);
    assert!(matches!(safe.newer(&used), Err(NoKeys::Cold)));
    safe.source.gate.heal();
    safe.clock.advance(10 * SECOND);
    assert!(safe.newer(&used).unwrap().is_some());
}

/// SM-03: while the source is down nobody can say that there is no newer secret.
#[test]
fn whether_there_is_a_newer_secret_is_unknown_while_the_source_is_down() {
    let safe = safe();
    let used = safe.current().unwrap();
    safe.breaks(ErrorKind::Unavailable);
    safe.clock.advance(10 * SECOND);
    assert!(matches!(safe.newer(&used), Err(NoKeys::Load(_))));
    safe.clock.advance(SECOND);
    assert!(matches!(safe.newer(&used), Err(NoKeys::Cold)));
    safe.source.gate.heal();
    safe.clock.advance(9 * SECOND);
    assert!(safe.newer(&used).unwrap().is_some());
    safe.clock.advance(SECOND);
    let newest = safe.current().unwrap();
    assert!(safe.newer(&newest).unwrap().is_none());
}

/// SG-06: a source that says there is no secret is obeyed; the secrets it took away are not
/// accepted any more.
#[test]
fn secrets_that_were_taken_away_are_not_kept() {
    let safe = safe();
    safe.current().unwrap();
    safe.source.hold(&[]);
    safe.clock.advance(5 * MINUTE);
    let no_secret = safe.current().unwrap_err();
    assert_eq!(no_secret.code(), "no_secret");
    assert_eq!(safe.current().unwrap_err().code(), "secrets_unavailable");
    safe.source.hold(&[SECRET]);
    safe.clock.advance(SECOND);
    assert!(safe.current().is_ok());
}

/// SM-08, SG-06: a secret that cannot be read, such as one that nobody has typed in yet, takes no
/// other with it; what may be signed with it is put off and not refused, at one load per cool-down.
#[test]
fn a_secret_that_cannot_be_read_takes_no_other_with_it() {
    let bench = Bench::new();
    bench.secrets.lack_one(true);
    assert_eq!(bench.deliver(V1).status(), 202);
    let typed_later = bench.signed("typed-later", V1);
    bench.secrets.take_loads();
    bench.clock.advance(10 * SECOND);
    for _ in 0..200 {
        assert_eq!(bench.send(&typed_later, V1).status(), 503);
        assert_eq!(bench.deliver(V1).status(), 202);
    }
    assert_eq!(bench.secrets.take_loads(), 1);
    bench.secrets.lack_one(false);
    bench.secrets.hold(&[SECRET, "typed-later"]);
    bench.clock.advance(10 * SECOND);
    assert_eq!(bench.send(&typed_later, V1).status(), 202);
    let forged = bench.signed("nobody's", V1);
    assert_eq!(bench.send(&forged, V1).status(), 401);
}

/// SG-06: that there are others does not make up for having none.
#[test]
fn one_secret_that_cannot_be_read_and_no_other_is_no_secret() {
    let safe = safe();
    safe.source.hold(&[]);
    safe.source.lack_one(true);
    assert!(matches!(safe.current(), Err(NoKeys::Load(_))));
}

/// SM-03, SM-08: when one secret cannot be read any more, its last good value stays in force for an
/// hour as all would while the source is down, and the others are as new as they ever are.
#[test]
fn the_last_good_value_stands_in_for_the_one_that_cannot_be_read() {
    let bench = Bench::new();
    bench.secrets.hold(&[SECRET, "whsec_other"]);
    assert_eq!(bench.deliver(V1).status(), 202);
    let [other, rotated] = ["whsec_other", "whsec_rotated"].map(|key| bench.signed(key, V1));
    let forged = bench.signed("nobody's", V1);

    bench.secrets.hold(&["whsec_rotated"]);
    bench.secrets.lack_one(true);
    for _ in 0..59 {
        bench.clock.advance(MINUTE);
        assert_eq!(bench.send(&rotated, V1).status(), 202);
        assert_eq!(bench.send(&other, V1).status(), 202);
        // That was replaced, but nobody can tell it from the one that is missing.
        assert_eq!(bench.deliver(V1).status(), 202);
        assert_eq!(bench.send(&forged, V1).status(), 503);
    }

    bench.clock.advance(6 * MINUTE);
    assert_eq!(bench.send(&rotated, V1).status(), 202);
    assert_eq!(bench.send(&other, V1).status(), 503);
    assert_eq!(bench.deliver(V1).status(), 503);

    bench.secrets.hold(&["whsec_rotated", "whsec_other"]);
    bench.secrets.lack_one(false);
    bench.clock.advance(MINUTE);
    assert_eq!(bench.send(&other, V1).status(), 202);
    assert_eq!(bench.deliver(V1).status(), 401);
}

/// SM-03: what was last read an hour ago is not trusted for longer because others were read since.
#[test]
fn a_part_that_was_read_since_makes_the_rest_no_younger() {
    let safe = safe();
    safe.source.hold(&[SECRET, "whsec_other"]);
    safe.current().unwrap();
    safe.clock.advance(50 * MINUTE);
    safe.source.hold(&[SECRET]);
    safe.source.lack_one(true);
    let part = safe.current().unwrap();
    safe.breaks(ErrorKind::Unavailable);
    safe.clock.advance((10 * MINUTE).saturating_sub(SECOND));
    assert!(Arc::ptr_eq(&part, &safe.current().unwrap()));
    safe.clock.advance(SECOND);
    assert!(matches!(safe.current(), Err(NoKeys::Load(_))));
    // What is read anew is trusted.
    safe.source.gate.heal();
    safe.clock.advance(SECOND);
    assert!(!Arc::ptr_eq(&part, &safe.current().unwrap()));
}

/// SG-06: the last good values beside the new ones are never too many to be used.
#[test]
fn last_good_values_fill_up_what_room_there_is() {
    let safe = safe();
    let named = |from: usize| -> Vec<Secret> {
        let names = (from..from + SECRETS_MAX).map(|number| format!("s-{number}"));
        names.map(|name| Secret::new(&name).unwrap()).collect()
    };
    safe.source.hold_all(named(0));
    safe.current().unwrap();
    // One place is left for the two that are not read any more, and none at the next read.
    let mut fewer = named(2);
    fewer.pop();
    for secrets in [fewer, named(2)] {
        safe.source.hold_all(secrets);
        safe.source.lack_one(true);
        safe.clock.advance(5 * MINUTE);
        assert!(safe.current().unwrap().has_unusable_secret());
    }
}

/// SM-05: a stage whose value is not there yet is absent from the set, and may come later.
#[test]
fn a_pending_secret_that_appears_later_is_found_by_the_first_mismatch() {
    let bench = Bench::new();
    bench.secrets.hold_all(vec![Secret::new(SECRET).unwrap()]);
    assert_eq!(bench.deliver(V1).status(), 202);
    let pending = Secret::new("pending-secret").unwrap().with_stage(Stage::Pending);
    bench.secrets.hold_all(vec![Secret::new(SECRET).unwrap(), pending]);
    bench.clock.advance(10 * SECOND);
    let headers = bench.signed("pending-secret", V1);
    assert_eq!(bench.send(&headers, V1).status(), 202);
    assert_eq!(bench.deliver(V1).status(), 202);
}

/// SM-06: one value under two stages is one key, and its current name is the one that is told.
#[test]
fn a_value_under_two_stages_is_one_key() {
    let bench = Bench::new();
    let secret = || Secret::new(SECRET).unwrap();
    bench.secrets.hold_all(vec![secret().with_stage(Stage::Pending), secret()]);
    let keys = drive(&bench.clock, bench.keyring.current(&*bench.clock)).unwrap();
    let headers = bench.signed(SECRET, V1);
    let Verdict::Verified(verified) = keys.verify(&headers, V1, bench.now()) else {
        panic!("not verified")
    };
    assert_eq!((verified.stage, verified.label.as_str()), (Stage::Current, "current"));
}

#[test]
fn a_clock_that_was_set_back_does_not_stop_refreshes() {
    let safe = safe();
    let noon = safe.clock.now();
    safe.clock.advance(365 * 24 * 60 * MINUTE);
    let used = safe.current().unwrap();
    safe.clock.set(noon);
    assert!(safe.newer(&used).unwrap().is_some());
    safe.source.take_loads();
    safe.clock.advance(SECOND);
    assert!(safe.current().is_ok());
    assert_eq!(safe.source.take_loads(), 0);
}
