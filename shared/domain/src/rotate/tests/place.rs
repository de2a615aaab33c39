use std::time::Duration;

use super::rig::{Rig, SECOND, new_webhook, version};
use crate::ports::{
    ApiError, ApiErrorKind, Clock as _, NewWebhook, SecretSource as _, Vault as _, WebhookId,
    Webhooks as _,
};
use crate::retire::rows;
use crate::rotate::mark::Mark;
use crate::rotate::{Done, PROTECTED, Refusal, RotateError, Step, Strategy};
use crate::signature::secret::{Secret, Stage};

fn in_force(rig: &Rig) -> Vec<(Stage, String)> {
    let loaded = rig.clock.run(rig.vault.load()).unwrap().unwrap();
    loaded.secrets.iter().map(|secret| (secret.stage(), secret.expose().to_owned())).collect()
}

/// SM-07: the webhook stays, its secret is replaced, and the one before is accepted for its grace,
/// which counts from the promotion, however long the rotation took.
#[test]
fn the_old_secret_has_its_grace_from_the_promotion_on() {
    let rig = Rig::new();
    let rotation = rig.rotation("first", Strategy::InPlace);
    rig.vault.announce(&rig.slot, &rotation.version);
    let webhook = rig.old.clone();
    assert_eq!(rig.step(&rotation, Step::Create).unwrap(), Done::Replaced(webhook));
    assert_eq!(rig.step(&rotation, Step::Create).unwrap(), Done::AlreadyPending);
    let (old, new) = ("whsec_00000001".to_owned(), "whsec_00000002".to_owned());
    let both = [(Stage::Current, old.clone()), (Stage::Pending, new.clone())];
    assert_eq!(in_force(&rig), both);
    assert!(rig.unverifiable().is_empty());
    rig.pass(Duration::from_hours(5));
    assert_eq!(rig.step(&rotation, Step::Set).unwrap(), Done::InForce);
    assert_eq!(rig.step(&rotation, Step::Test).unwrap(), Done::Sound);
    assert_eq!(rig.step(&rotation, Step::Finish).unwrap(), Done::Promoted);
    let after = [(Stage::Current, new.clone()), (Stage::Previous, old)];
    assert_eq!(in_force(&rig), after);
    rig.pass(Duration::from_secs(15 * 60 - 1));
    assert_eq!(in_force(&rig), after);
    rig.pass(SECOND);
    assert_eq!(in_force(&rig), [(Stage::Current, new)]);
    assert_eq!(rig.clock.run(rows::list(&rig.ledger)).unwrap().unwrap(), []);
    assert_eq!(rig.webhooks.webhooks().len(), 1);
}

/// A rotation by a second webhook that was cut short left one behind whose secret nobody knows: a
/// rotation in place switches it off, and a later one deletes it.
#[test]
fn what_a_second_webhook_left_behind_is_cleared_away() {
    let rig = Rig::new();
    let mark = Mark::new(&version("lost"), &rig.old, rig.clock.now());
    let description = Some(mark.describe(None));
    let orphan = NewWebhook { description, ..new_webhook() };
    let created = rig.clock.run(rig.webhooks.create(&orphan, SECOND)).unwrap().unwrap();
    rig.steps(&rig.rotation("first", Strategy::InPlace));
    assert!(!rig.webhook(created.webhook.id.as_str()).unwrap().is_active);
    assert!(rig.webhook(rig.old.as_str()).unwrap().is_active);
    rig.pass(PROTECTED);
    rig.steps(&rig.rotation("second", Strategy::InPlace));
    assert_eq!(rig.webhook(created.webhook.id.as_str()), None);
    assert_eq!(rig.webhooks.webhooks().len(), 1);
}

/// An answer that was lost is asked for again: the last secret counts.
#[test]
fn a_secret_that_nobody_saw_is_replaced_once_more() {
    let rig = Rig::new();
    let rotation = rig.rotation("first", Strategy::InPlace);
    rig.vault.announce(&rig.slot, &rotation.version);
    for _ in 0..4 {
        rig.webhooks.fail(ApiError::new(ApiErrorKind::Unavailable, "planned"));
    }
    rig.step(&rotation, Step::Create).unwrap();
    assert!(rig.unverifiable().is_empty());
}

/// SM-10: two tries of one step that met in spite of everything: what is kept may not be what the
/// platform signs with, so it does not become the current one, and the next rotation puts it right.
#[test]
fn what_the_platform_may_have_replaced_is_not_promoted() {
    let rig = Rig::new();
    let rotation = rig.rotation("first", Strategy::InPlace);
    // The value of an earlier try is put while this one's claim has already ended.
    let late = Secret::new("late").unwrap().with_webhook_id(rig.old.as_str()).unwrap();
    let put = rig.vault.put_pending(&rig.slot, &rotation.version, &late);
    rig.clock.run(put).unwrap().unwrap();
    rig.clock.run(rig.vault.give_up(&rig.slot, &rotation.version)).unwrap().unwrap();
    let rotation = crate::rotate::Rotation { staging: crate::rotate::Staging::ByUs, ..rotation };
    let error = rig.step(&rotation, Step::Create).unwrap_err();
    assert!(matches!(error, RotateError::Refused(Refusal::Overtaken)), "{error:?}");
    assert_eq!(rig.unverifiable(), ["webhook-1"]);
    rig.steps(&rig.rotation("second", Strategy::InPlace));
    assert!(rig.unverifiable().is_empty());
}

/// A webhook that is gone has no secret to replace.
#[test]
fn a_webhook_that_is_gone_cannot_be_rotated() {
    let rig = Rig::new();
    rig.clock
        .run(crate::ports::Webhooks::delete(&rig.webhooks, &rig.old, SECOND))
        .unwrap()
        .unwrap();
    let rotation = rig.rotation("first", Strategy::InPlace);
    rig.vault.announce(&rig.slot, &rotation.version);
    let error = rig.step(&rotation, Step::Create).unwrap_err();
    let gone = WebhookId::parse("webhook-1").unwrap();
    assert!(matches!(error, RotateError::Refused(Refusal::Gone(id)) if id == gone));
    let began = rig.clock.now();
    assert!(rig.step(&rotation, Step::Set).is_err());
    assert_eq!(rig.clock.now(), began, "nobody waits for what cannot be");
}
