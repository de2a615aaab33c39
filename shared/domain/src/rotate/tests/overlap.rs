use std::time::Duration;

use super::rig::{Rig, URL, new_webhook, version};
use crate::ports::{ApiError, ApiErrorKind, NewWebhook, WebhookChange, WebhookId, Webhooks as _};
use crate::retire::rows;
use crate::rotate::mark::Mark;
use crate::rotate::{Done, Refusal, RotateError, Rotation, Step, Strategy};
use crate::testing::WebhookCall;

fn refusal(outcome: Result<Done, RotateError>) -> Refusal {
    match outcome {
        Err(RotateError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn id(text: &str) -> WebhookId {
    WebhookId::parse(text).unwrap()
}

fn overlap(rig: &Rig, name: &str) -> Rotation {
    rig.rotation(name, Strategy::Overlap)
}

/// SM-07: the new webhook is there, in force, and seen to be right before the old one is touched,
/// and each step taken again finds its work done.
#[test]
fn the_new_webhook_is_in_force_before_the_old_one_goes() {
    let rig = Rig::new();
    let rotation = overlap(&rig, "first");
    rig.vault.announce(&rig.slot, &rotation.version);
    let active = || {
        let webhooks = rig.webhooks.webhooks();
        webhooks.iter().map(|webhook| webhook.is_active).collect::<Vec<_>>()
    };

    assert_eq!(rig.step(&rotation, Step::Create).unwrap(), Done::Registered(id("webhook-2")));
    let [current, pending, previous] = rig.named();
    assert_eq!(current.as_deref(), Some("webhook-1"));
    assert_eq!((pending.as_deref(), previous), (Some("webhook-2"), None));
    assert_eq!(active(), [true, false], "nothing is signed before all receivers can know it");
    let new = rig.webhook("webhook-2").unwrap();
    assert_eq!((new.url.as_str(), &new.event_type), (URL, &new_webhook().event_type));
    assert_eq!(Mark::of(&new).unwrap().replaces, rig.old);
    assert_eq!(rig.step(&rotation, Step::Create).unwrap(), Done::AlreadyPending);

    assert_eq!(rig.step(&rotation, Step::Set).unwrap(), Done::Brought(id("webhook-2")));
    assert_eq!(active(), [true, true]);
    assert_eq!(rig.step(&rotation, Step::Set).unwrap(), Done::InForce);

    for _ in 0..2 {
        assert_eq!(rig.step(&rotation, Step::Test).unwrap(), Done::Sound);
        assert_eq!(active(), [true, true]);
    }

    assert_eq!(rig.step(&rotation, Step::Finish).unwrap(), Done::Promoted);
    let [current, pending, previous] = rig.named();
    assert_eq!((current.as_deref(), pending), (Some("webhook-2"), None));
    assert_eq!(previous.as_deref(), Some("webhook-1"));
    assert_eq!(active(), [false, true]);
    for step in Step::ALL {
        assert_eq!(rig.step(&rotation, step).unwrap(), Done::AlreadyCurrent, "{step}");
    }
    assert_eq!(rig.webhooks.webhooks().len(), 2);
    assert!(rig.unverifiable().is_empty());
}

/// Rotation after rotation, the account keeps two webhooks at most: the old one is taken away
/// elsewhere, and the mark in the description is the last one's.
#[test]
fn rotations_follow_one_another() {
    let rig = Rig::new();
    for round in 2..12 {
        let rotation = overlap(&rig, &format!("round-{round}"));
        rig.steps(&rotation);
        let [current, _, previous] = rig.named();
        let gone = id(&previous.unwrap());
        rig.clock.run(rig.webhooks.delete(&gone, Duration::ZERO)).unwrap().unwrap();
        let webhooks = rig.webhooks.webhooks();
        let [webhook] = webhooks.as_slice() else { panic!("{webhooks:?}") };
        assert_eq!(Some(webhook.id.as_str()), current.as_deref());
        let description = webhook.description.as_deref().unwrap();
        assert!(description.starts_with("gleaner [rotation "), "{description}");
        assert_eq!(description.matches("[rotation ").count(), 1, "{description}");
        rig.pass(Duration::from_mins(1));
    }
}

/// SM-05, SM-06: a label without a value is the store's beginning of a rotation; one that was left
/// on the current version is no rotation at all; a version without the label is nobody's.
#[test]
fn labels_tell_whose_turn_it_is() {
    let rig = Rig::new();
    let first = overlap(&rig, "first");
    assert_eq!(refusal(rig.step(&first, Step::Create)), Refusal::NotStaged);
    rig.vault.announce(&rig.slot, &first.version);
    for step in [Step::Set, Step::Test, Step::Finish] {
        assert_eq!(refusal(rig.step(&first, step)), Refusal::NotCreated, "{step}");
    }
    rig.steps(&first);
    // The label stayed on the version that is the current one now.
    let second = overlap(&rig, "second");
    assert_eq!(refusal(rig.step(&second, Step::Create)), Refusal::NotStaged);
    rig.steps(&second);
    let third = overlap(&rig, "third");
    rig.vault.announce(&rig.slot, &third.version);
    let other = Refusal::OtherPending(third.version.clone());
    assert_eq!(refusal(rig.step(&overlap(&rig, "fourth"), Step::Create)), other);
    // The one before last has no label any more.
    assert_eq!(refusal(rig.step(&first, Step::Create)), other);
    assert_eq!(rig.webhooks.webhooks().len(), 3);
}

/// What the new webhook is not, it is made; what cannot be mended ends the rotation.
#[test]
fn the_new_webhook_follows_the_old_one() {
    let rig = Rig::new();
    let rotation = overlap(&rig, "first");
    rig.vault.announce(&rig.slot, &rotation.version);
    rig.step(&rotation, Step::Create).unwrap();
    let unfit = |outcome| matches!(refusal(outcome), Refusal::Unfit { .. });
    assert!(unfit(rig.step(&rotation, Step::Test)), "it is not active yet");
    let moved = WebhookChange {
        url: Some("https://example.org/elsewhere".to_owned()),
        ..WebhookChange::default()
    };
    rig.change(&rig.old, &moved);
    rig.step(&rotation, Step::Set).unwrap();
    assert_eq!(rig.webhook("webhook-2").unwrap().url, "https://example.org/elsewhere");
    rig.step(&rotation, Step::Test).unwrap();

    for (change, why) in [
        (WebhookChange { is_active: Some(false), ..WebhookChange::default() }, "active"),
        (WebhookChange { url: Some(URL.to_owned()), ..WebhookChange::default() }, "URL"),
        (
            WebhookChange {
                event_type: Some(crate::envelope::EventType::BatchCompleted),
                ..WebhookChange::default()
            },
            "event",
        ),
    ] {
        rig.change(&id("webhook-2"), &change);
        for step in [Step::Test, Step::Finish] {
            let text = refusal(rig.step(&rotation, step)).to_string();
            assert!(text.contains(why), "{step}: {text}");
        }
        assert!(rig.webhook("webhook-1").unwrap().is_active, "the old one is not touched");
        assert_eq!(rig.step(&rotation, Step::Set).unwrap(), Done::Brought(id("webhook-2")));
        rig.step(&rotation, Step::Test).unwrap();
    }
    rig.step(&rotation, Step::Finish).unwrap();
}

/// A webhook that somebody deleted in the middle ends its rotation, and the next one begins anew.
#[test]
fn a_new_webhook_that_vanishes_ends_its_rotation() {
    for step in [Step::Set, Step::Test, Step::Finish] {
        let rig = Rig::new();
        let rotation = overlap(&rig, "first");
        rig.vault.announce(&rig.slot, &rotation.version);
        rig.step(&rotation, Step::Create).unwrap();
        let new = id("webhook-2");
        rig.clock.run(rig.webhooks.delete(&new, Duration::ZERO)).unwrap().unwrap();
        assert_eq!(refusal(rig.step(&rotation, step)), Refusal::Gone(new));
        assert_eq!(rig.named(), [Some("webhook-1".to_owned()), None, None]);
        rig.steps(&overlap(&rig, "second"));
        assert_eq!(rig.named()[0].as_deref(), Some("webhook-3"));
    }
}

/// The old webhook may be gone: the new one is then all there is.
#[test]
fn an_old_webhook_that_vanishes_holds_nobody_up() {
    let rig = Rig::new();
    let rotation = overlap(&rig, "first");
    rig.vault.announce(&rig.slot, &rotation.version);
    rig.step(&rotation, Step::Create).unwrap();
    rig.clock.run(rig.webhooks.delete(&rig.old, Duration::ZERO)).unwrap().unwrap();
    for step in [Step::Set, Step::Test, Step::Finish] {
        rig.step(&rotation, step).unwrap();
    }
    assert_eq!(rig.clock.run(rows::list(&rig.ledger)).unwrap().unwrap(), []);
    // Before the beginning it would have to be made anew.
    let new = id("webhook-2");
    rig.clock.run(rig.webhooks.delete(&new, Duration::ZERO)).unwrap().unwrap();
    let second = overlap(&rig, "second");
    rig.vault.announce(&rig.slot, &second.version);
    assert_eq!(refusal(rig.step(&second, Step::Create)), Refusal::Gone(new));
}

/// A value that names no webhook, or is none, cannot be rotated, and the text says what to do.
#[test]
fn what_cannot_be_rotated_is_told() {
    for (stored, told) in [
        ("typed-by-hand", "`webhook_id`"),
        ("{\"other\":1}", "cannot be used"),
        ("{\"secret\":\"hushhush\",\"webhook_id\":\"a/b\"}", "`webhook_id`"),
    ] {
        let rig = Rig::new();
        rig.vault.type_in(&rig.slot, stored);
        let rotation = overlap(&rig, "first");
        rig.vault.announce(&rig.slot, &rotation.version);
        let refused = refusal(rig.step(&rotation, Step::Create));
        assert!(refused.to_string().contains(told), "{stored}: {refused}");
        assert!(!format!("{refused:?}").contains("hushhush"));
    }
    let rig = Rig::new();
    let empty = Rotation { slot: rig.vault.make("empty"), ..overlap(&rig, "first") };
    assert_eq!(refusal(rig.step(&empty, Step::Create)), Refusal::NoCurrent);
    assert!(rig.webhooks.calls().is_empty());
}

/// An account that has ten webhooks keeps them, and is told of the other strategy.
#[test]
fn an_account_without_room_is_told_so() {
    let rig = Rig::new();
    for _ in 0..9 {
        rig.clock.run(rig.webhooks.create(&new_webhook(), Duration::ZERO)).unwrap().unwrap();
    }
    let rotation = overlap(&rig, "first");
    rig.vault.announce(&rig.slot, &rotation.version);
    let refused = refusal(rig.step(&rotation, Step::Create));
    assert!(refused.to_string().contains("in place"), "{refused}");
    assert_eq!(rig.webhooks.webhooks().len(), 10);
    // The same rotation goes on in place.
    rig.steps(&Rotation { strategy: Strategy::InPlace, ..rotation });
    assert_eq!(rig.named()[0].as_deref(), Some("webhook-1"));
}

/// S28: a webhook whose creation was not answered, or whose secret was lost before it was kept, is
/// switched off by the next try and deleted when nobody can be about to keep its secret.
#[test]
fn a_webhook_whose_secret_is_lost_is_switched_off_and_then_deleted() {
    let rig = Rig::new();
    let rotation = overlap(&rig, "first");
    rig.vault.announce(&rig.slot, &rotation.version);
    let mark = Mark::new(&version("first"), &rig.old, crate::ports::Clock::now(&*rig.clock));
    let lost = NewWebhook { description: Some(mark.describe(None)), ..new_webhook() };
    let foreign_mark = Mark { replaces: id("somebody-elses"), ..mark };
    let foreign = NewWebhook { description: Some(foreign_mark.describe(None)), ..new_webhook() };
    for webhook in [&lost, &foreign] {
        rig.clock.run(rig.webhooks.create(webhook, Duration::ZERO)).unwrap().unwrap();
    }
    rig.webhooks.clear_calls();

    rig.step(&rotation, Step::Create).unwrap();
    assert_eq!(rig.named()[1].as_deref(), Some("webhook-4"));
    assert!(!rig.webhook("webhook-2").unwrap().is_active);
    assert!(rig.webhook("webhook-3").unwrap().is_active, "it is no concern of ours");
    for step in [Step::Set, Step::Test, Step::Finish] {
        rig.step(&rotation, step).unwrap();
    }
    let deletes = |call: &WebhookCall| matches!(call, WebhookCall::Delete(_));
    assert!(!rig.webhooks.calls().iter().any(deletes));

    // Had the rotation not ended, its next one would do away with it.
    let rig = Rig::new();
    rig.clock.run(rig.webhooks.create(&lost, Duration::ZERO)).unwrap().unwrap();
    rig.pass(Duration::from_mins(15));
    rig.vault.announce(&rig.slot, &rotation.version);
    rig.step(&rotation, Step::Create).unwrap();
    assert!(rig.webhook("webhook-2").is_none());
}

/// Trouble of the platform is tried again, and a refusal is not.
#[test]
fn trouble_of_the_platform_is_met_with_patience() {
    let rig = Rig::new();
    let rotation = overlap(&rig, "first");
    rig.vault.announce(&rig.slot, &rotation.version);
    for kind in [ApiErrorKind::Throttled, ApiErrorKind::Unavailable] {
        rig.webhooks.fail(ApiError::new(kind, "planned"));
    }
    rig.step(&rotation, Step::Create).unwrap();
    rig.webhooks.clear_calls();
    rig.webhooks.fail(ApiError::new(ApiErrorKind::Denied, "planned"));
    let denied = rig.step(&rotation, Step::Set).unwrap_err();
    assert!(matches!(denied, RotateError::Api(error) if error.kind == ApiErrorKind::Denied));
    assert_eq!(rig.webhooks.calls().len(), 1);
    rig.step(&rotation, Step::Set).unwrap();
}
