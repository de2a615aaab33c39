//! [`domain::ports::Vault`], and what a receiver reads of it.

use std::time::Duration;

use domain::limits::Limits;
use domain::ports::{
    Clock as _, ErrorKind, Promoted, PutPending, Slot, SlotId, Version, VersionId,
};
use domain::signature::secret::{Secret, Stage};
use futures_util::future::join_all;

use super::vault_subject::VaultSubject;

const SECOND: Duration = Duration::from_secs(1);

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap().with_webhook_id(&format!("webhook-of-{text}")).unwrap()
}

/// A version's name: of the least length, and told apart at its end.
fn version(number: u32) -> VersionId {
    VersionId::parse(&format!("{number:032}")).unwrap()
}

/// Text and webhook of what a version holds.
fn held(version: Option<&Version>) -> Option<(String, String)> {
    let secret = version?.secret()?;
    Some((secret.expose().to_owned(), secret.webhook_id()?.to_owned()))
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be absent")]
fn pair(text: &str) -> Option<(String, String)> {
    Some((text.to_owned(), format!("webhook-of-{text}")))
}

/// What is kept as current, pending and previous.
fn stages(slot: &Slot) -> [Option<(String, String)>; 3] {
    [held(slot.current.as_ref()), held(slot.pending.as_ref()), held(slot.previous.as_ref())]
}

async fn read(subject: &VaultSubject, slot: &SlotId) -> Slot {
    subject.vault.read(slot).await.unwrap()
}

async fn put(subject: &VaultSubject, slot: &SlotId, number: u32, text: &str) -> PutPending {
    subject.vault.put_pending(slot, &version(number), &secret(text)).await.unwrap()
}

/// Promotes a version over the one that is the current one now.
async fn promote(subject: &VaultSubject, slot: &SlotId, number: u32) -> Promoted {
    let over = read(subject, slot).await.current.unwrap().id;
    let now = subject.clock.now();
    subject.vault.promote(slot, &version(number), &over, now).await.unwrap()
}

/// What a receiver accepts, in the order of stages.
async fn in_force(subject: &VaultSubject) -> Vec<(Stage, String)> {
    let mut secrets = subject.source.load().await.unwrap().secrets;
    secrets.sort_by_key(Secret::stage);
    secrets.iter().map(|secret| (secret.stage(), secret.expose().to_owned())).collect()
}

fn accepted(secrets: &[(Stage, &str)]) -> Vec<(Stage, String)> {
    secrets.iter().map(|(stage, text)| (*stage, (*text).to_owned())).collect()
}

/// A slot is named and read as it was made, and the next ones beside it.
pub async fn a_slot_holds_what_it_was_made_with(subject: &VaultSubject) {
    assert!(subject.vault.slots().await.unwrap().is_empty());
    let slots = ["one", "two", "three"].map(|text| (subject.lay)(&secret(text)));
    let mut named = subject.vault.slots().await.unwrap();
    let mut made = slots.to_vec();
    named.sort();
    made.sort();
    assert_eq!(named, made);
    for (slot, text) in slots.iter().zip(["one", "two", "three"]) {
        let read = read(subject, slot).await;
        assert_eq!(read.id, *slot);
        assert_eq!(stages(&read), [pair(text), None, None]);
        assert!(read.is_rotated);
    }
    assert_eq!(in_force(subject).await.len(), 3);
}

/// A pending secret is in force beside the current one, and only in its slot.
pub async fn a_pending_secret_is_in_force(subject: &VaultSubject) {
    let slot = (subject.lay)(&secret("old"));
    let other = (subject.lay)(&secret("other"));
    assert_eq!(put(subject, &slot, 1, "new").await, PutPending::Kept);
    let kept = read(subject, &slot).await;
    assert_eq!(stages(&kept), [pair("old"), pair("new"), None]);
    assert_eq!(kept.pending.unwrap().id, version(1));
    assert_eq!(stages(&read(subject, &other).await), [pair("other"), None, None]);
    let mut secrets = in_force(subject).await;
    secrets.sort();
    let expected = [(Stage::Current, "old"), (Stage::Current, "other"), (Stage::Pending, "new")];
    assert_eq!(secrets, accepted(&expected));
}

/// The same value for the same version is put once, also after its promotion.
pub async fn a_repeated_put_changes_nothing(subject: &VaultSubject) {
    let slot = (subject.lay)(&secret("old"));
    for _ in 0..3 {
        assert_eq!(put(subject, &slot, 1, "new").await, PutPending::Kept);
        assert_eq!(stages(&read(subject, &slot).await), [pair("old"), pair("new"), None]);
    }
    promote(subject, &slot, 1).await;
    assert_eq!(put(subject, &slot, 1, "new").await, PutPending::Kept);
    assert_eq!(stages(&read(subject, &slot).await), [pair("new"), None, pair("old")]);
}

/// Another value for a version is refused, pending or current; the first one stays.
pub async fn a_version_keeps_its_value(subject: &VaultSubject) {
    let slot = (subject.lay)(&secret("old"));
    put(subject, &slot, 1, "new").await;
    assert_eq!(put(subject, &slot, 1, "other").await, PutPending::Taken);
    // The same text of another webhook is another value.
    let moved = secret("new").with_webhook_id("another-webhook").unwrap();
    let outcome = subject.vault.put_pending(&slot, &version(1), &moved).await.unwrap();
    assert_eq!(outcome, PutPending::Taken);
    assert_eq!(stages(&read(subject, &slot).await), [pair("old"), pair("new"), None]);
    promote(subject, &slot, 1).await;
    assert_eq!(put(subject, &slot, 1, "other").await, PutPending::Taken);
    assert_eq!(stages(&read(subject, &slot).await), [pair("new"), None, pair("old")]);
}

/// SM-10: of many values for one version, put at once, one is kept, and whoever put it knows.
pub async fn one_of_many_puts_at_once_is_kept(subject: &VaultSubject) {
    let slot = (subject.lay)(&secret("old"));
    let texts: Vec<_> = (0..6).map(|number| format!("new-{number}")).collect();
    let puts = texts.iter().map(|text| put(subject, &slot, 1, text));
    let outcomes = join_all(puts).await;
    let kept: Vec<_> = texts
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| **outcome == PutPending::Kept)
        .map(|(text, _)| text.as_str())
        .collect();
    assert_eq!(kept.len(), 1, "{outcomes:?}");
    let read = read(subject, &slot).await;
    assert_eq!(stages(&read), [pair("old"), pair(kept[0]), None]);
}

/// The label goes from one version to the next; what has lost it is in force no longer.
pub async fn one_version_is_pending_at_a_time(subject: &VaultSubject) {
    let slot = (subject.lay)(&secret("old"));
    put(subject, &slot, 1, "first").await;
    assert_eq!(put(subject, &slot, 2, "second").await, PutPending::Kept);
    assert_eq!(stages(&read(subject, &slot).await), [pair("old"), pair("second"), None]);
    let expected = accepted(&[(Stage::Current, "old"), (Stage::Pending, "second")]);
    assert_eq!(in_force(subject).await, expected);
}

/// A rotation that is given up leaves the current secret, and the next one begins anew.
pub async fn a_pending_version_can_be_given_up(subject: &VaultSubject) {
    let slot = (subject.lay)(&secret("old"));
    put(subject, &slot, 1, "first").await;
    // Another version's label is another's.
    subject.vault.give_up(&slot, &version(2)).await.unwrap();
    assert_eq!(stages(&read(subject, &slot).await), [pair("old"), pair("first"), None]);
    for _ in 0..2 {
        subject.vault.give_up(&slot, &version(1)).await.unwrap();
        assert_eq!(stages(&read(subject, &slot).await), [pair("old"), None, None]);
        assert_eq!(in_force(subject).await, accepted(&[(Stage::Current, "old")]));
    }
    put(subject, &slot, 2, "second").await;
    promote(subject, &slot, 2).await;
    subject.vault.give_up(&slot, &version(2)).await.unwrap();
    assert_eq!(stages(&read(subject, &slot).await), [pair("second"), None, pair("old")]);
}

/// SM-06: the pending version becomes the current one and is pending no longer, wherever the store
/// leaves the label; its key is in force once. A second call finds it done.
pub async fn a_promotion_moves_the_labels(subject: &VaultSubject) {
    let slot = (subject.lay)(&secret("old"));
    put(subject, &slot, 1, "new").await;
    let over = read(subject, &slot).await.current.unwrap().id;
    let now = subject.clock.now();
    for _ in 0..3 {
        let promoted = subject.vault.promote(&slot, &version(1), &over, now).await.unwrap();
        assert_eq!(promoted, Promoted::Done);
        let read = read(subject, &slot).await;
        assert_eq!(stages(&read), [pair("new"), None, pair("old")]);
        assert_eq!(read.current.unwrap().id, version(1));
        let expected = accepted(&[(Stage::Current, "new"), (Stage::Previous, "old")]);
        assert_eq!(in_force(subject).await, expected);
    }
}

/// Whoever expects another current version than the one there is changes nothing.
pub async fn a_promotion_over_another_version_changes_nothing(subject: &VaultSubject) {
    let slot = (subject.lay)(&secret("old"));
    put(subject, &slot, 1, "new").await;
    let now = subject.clock.now();
    let conflict = subject.vault.promote(&slot, &version(1), &version(9), now).await.unwrap();
    assert_eq!(conflict, Promoted::Conflict);
    assert_eq!(stages(&read(subject, &slot).await), [pair("old"), pair("new"), None]);
    let over = read(subject, &slot).await.current.unwrap().id;
    promote(subject, &slot, 1).await;
    put(subject, &slot, 2, "newer").await;
    promote(subject, &slot, 2).await;
    let late = subject.vault.promote(&slot, &version(1), &over, now).await.unwrap();
    assert_eq!(late, Promoted::Conflict);
    assert_eq!(stages(&read(subject, &slot).await), [pair("newer"), None, pair("new")]);
}

/// SM-07: the previous secret is in force for its grace from the promotion on, however old the
/// version is that took its place.
pub async fn the_previous_secret_has_its_grace_from_the_promotion_on(subject: &VaultSubject) {
    let slot = (subject.lay)(&secret("old"));
    subject.clock.advance(Duration::from_hours(1));
    put(subject, &slot, 1, "new").await;
    subject.clock.advance(Duration::from_hours(3));
    promote(subject, &slot, 1).await;
    let both = accepted(&[(Stage::Current, "new"), (Stage::Previous, "old")]);
    assert_eq!(in_force(subject).await, both);
    subject.clock.advance(Limits::default().previous_grace.saturating_sub(SECOND));
    // What happens to a promotion that is repeated does not begin the grace again.
    promote(subject, &slot, 1).await;
    assert_eq!(in_force(subject).await, both);
    subject.clock.advance(SECOND);
    assert_eq!(in_force(subject).await, accepted(&[(Stage::Current, "new")]));
}

/// Rotation after rotation, two secrets are in force, and nothing heaps up.
pub async fn rotations_follow_one_another(subject: &VaultSubject) {
    let slot = (subject.lay)(&secret("s-0"));
    for number in 1..=40 {
        let (text, before) = (format!("s-{number}"), format!("s-{}", number - 1));
        assert_eq!(put(subject, &slot, number, &text).await, PutPending::Kept);
        assert_eq!(promote(subject, &slot, number).await, Promoted::Done);
        let expected =
            accepted(&[(Stage::Current, text.as_str()), (Stage::Previous, before.as_str())]);
        assert_eq!(in_force(subject).await, expected);
        subject.clock.advance(Duration::from_mins(1));
    }
    assert_eq!(stages(&read(subject, &slot).await), [pair("s-40"), None, pair("s-39")]);
}

/// Odd secrets and the longest name of a version come back as they are.
pub async fn odd_values_are_kept(subject: &VaultSubject) {
    let slot = (subject.lay)(&secret("old"));
    let longest = VersionId::parse("v/+=,.@_-:".repeat(7).get(..64).unwrap_or_default()).unwrap();
    for (number, text) in ["\"quoted\"", "{\"a\":1}", "ünï-✓", "a b", "null"].iter().enumerate()
    {
        let odd = Secret::new(text).unwrap().with_webhook_id("w\"1\" \\").unwrap();
        let number = u32::try_from(number).unwrap();
        let id = if number == 0 { longest.clone() } else { version(number) };
        let outcome = subject.vault.put_pending(&slot, &id, &odd).await.unwrap();
        assert_eq!(outcome, PutPending::Kept);
        let pending = read(subject, &slot).await.pending.unwrap();
        assert_eq!(pending.id, id);
        let kept = held(Some(&pending)).unwrap();
        assert_eq!(kept, ((*text).to_owned(), "w\"1\" \\".to_owned()));
    }
}

/// A slot that is not there is somebody's to make.
pub async fn a_slot_that_is_not_there_is_denied(subject: &VaultSubject) {
    let absent = SlotId::parse("nobody-made-this").unwrap();
    let now = subject.clock.now();
    let errors = [
        subject.vault.read(&absent).await.map(drop),
        subject.vault.put_pending(&absent, &version(1), &secret("hushhush")).await.map(drop),
        subject.vault.promote(&absent, &version(1), &version(2), now).await.map(drop),
        subject.vault.give_up(&absent, &version(1)).await,
    ];
    for outcome in errors {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{error:?}");
        assert!(!format!("{error:?}").contains("hushhush"));
    }
}

/// Nothing that is printed shows a secret.
pub async fn a_slot_is_not_shown(subject: &VaultSubject) {
    let slot = (subject.lay)(&secret("hushhush-1"));
    put(subject, &slot, 1, "hushhush-2").await;
    let read = read(subject, &slot).await;
    let shown = format!("{read:?} {read:#?}").replace("webhook-of-hushhush", "");
    assert!(!shown.contains("hushhush"), "{shown}");
}
