use std::time::Duration;

use super::rig::{Rig, SECOND, version};
use crate::claim;
use crate::ports::Clock as _;
use crate::rotate::hold::claim_of;
use crate::rotate::{
    Done, Others, RotateError, Rotation, Staging, Step, Strategy, rotate, rotate_whole,
};
use crate::time::after;

/// SM-10: a step that is delivered twice at once is taken once; the other waits and finds it done.
#[test]
fn a_step_twice_at_once_is_taken_once() {
    for strategy in Strategy::ALL {
        let rig = Rig::new();
        let rotation = rig.rotation("first", strategy);
        rig.vault.announce(&rig.slot, &rotation.version);
        for step in Step::ALL {
            let deadline = rig.deadline();
            let taking = || rotate(rig.ports(), &rotation, step, deadline);
            let twice = async { tokio::join!(taking(), taking()) };
            let (one, other) = rig.clock.run(twice).unwrap();
            let both = [one.unwrap(), other.unwrap()];
            let again = [Done::AlreadyPending, Done::AlreadyCurrent, Done::InForce, Done::Sound];
            assert!(both.iter().any(|done| again.contains(done)), "{step}: {both:?}");
        }
        let webhooks = if strategy == Strategy::Overlap { 2 } else { 1 };
        assert_eq!(rig.webhooks.webhooks().len(), webhooks);
        assert!(rig.unverifiable().is_empty());
    }
}

/// SM-10: an operator's rotation during another one is refused, and what is kept in the end
/// verifies what the platform signs.
#[test]
fn of_two_rotations_at_once_one_is_refused() {
    for strategy in Strategy::ALL {
        let rig = Rig::new();
        let whole = |name: &str| Rotation {
            staging: Staging::ByUs,
            version: version(name),
            ..rig.rotation(name, strategy)
        };
        let (one, other) = (whole("one"), whole("other"));
        let deadline = rig.deadline();
        let run =
            |rotation| rotate_whole(rig.ports(), rotation, deadline, Others::Possible, |_, _| {});
        let (first, second) =
            rig.clock.run(async { tokio::join!(run(&one), run(&other)) }).unwrap();
        first.unwrap();
        // In place nobody waits, so that the second one finds the first one's end.
        match strategy {
            Strategy::Overlap => {
                assert!(matches!(second.unwrap_err(), RotateError::Busy));
                assert_eq!(rig.read().current.unwrap().id, one.version);
            }
            Strategy::InPlace => second.unwrap(),
        }
        assert!(rig.unverifiable().is_empty());
        rig.clock.run(run(&other)).unwrap().unwrap();
        assert_eq!(rig.read().current.unwrap().id, other.version);
        assert!(rig.unverifiable().is_empty());
    }
}

/// A process that was killed holds its slot until its deadline and no longer; others are rotated
/// meanwhile.
#[test]
fn a_killed_process_holds_its_own_slot_for_a_while() {
    let rig = Rig::new();
    let rotation = rig.rotation("first", Strategy::Overlap);
    rig.vault.announce(&rig.slot, &rotation.version);
    let (now, until) = (rig.clock.now(), after(rig.clock.now(), Duration::from_mins(10)));
    let name = claim_of(&rig.slot);
    let taken = claim::take(&rig.ledger, &name, "killed", now, until);
    rig.clock.run(taken).unwrap().unwrap().unwrap();
    assert!(matches!(rig.step(&rotation, Step::Create).unwrap_err(), RotateError::Busy));
    assert!(rig.webhooks.calls().is_empty());
    let other = Rotation { slot: rig.vault.make("another"), ..rotation.clone() };
    assert!(matches!(rig.step(&other, Step::Create).unwrap_err(), RotateError::Refused(_)));
    rig.pass(Duration::from_mins(10));
    rig.step(&rotation, Step::Create).unwrap();
}

/// Who has proof that the killed process is dead waits for nothing of it.
#[test]
fn a_killed_process_is_not_waited_for_where_others_are_excluded() {
    let rig = Rig::new();
    let rotation = Rotation { staging: Staging::ByUs, ..rig.rotation("first", Strategy::Overlap) };
    let (now, until) = (rig.clock.now(), after(rig.clock.now(), Duration::from_mins(10)));
    let name = claim_of(&rig.slot);
    let taken = claim::take(&rig.ledger, &name, "killed", now, until);
    rig.clock.run(taken).unwrap().unwrap().unwrap();
    let deadline = rig.deadline();
    let run =
        |others| rig.clock.run(rotate_whole(rig.ports(), &rotation, deadline, others, |_, _| {}));
    assert!(matches!(run(Others::Possible).unwrap().unwrap_err(), RotateError::Busy));
    run(Others::Excluded).unwrap().unwrap();
    assert_eq!(rig.read().current.unwrap().id, rotation.version);
    assert!(rig.unverifiable().is_empty());
}

/// Nothing of a step happens after its deadline, and its claim is given back.
#[test]
fn a_step_ends_in_time() {
    let rig = Rig::new();
    let rotation = rig.rotation("first", Strategy::Overlap);
    rig.vault.announce(&rig.slot, &rotation.version);
    rig.step(&rotation, Step::Create).unwrap();
    let deadline = after(rig.clock.now(), 6 * SECOND);
    let taken = rig.clock.run(rotate(rig.ports(), &rotation, Step::Set, deadline)).unwrap();
    assert!(matches!(taken.unwrap_err(), RotateError::OutOfTime));
    assert!(rig.clock.now() < deadline);
    assert!(!rig.webhook("webhook-2").unwrap().is_active);
    rig.step(&rotation, Step::Set).unwrap();
    let none = rotate(rig.ports(), &rotation, Step::Test, rig.clock.now());
    assert!(matches!(rig.clock.run(none).unwrap().unwrap_err(), RotateError::Busy));
}
