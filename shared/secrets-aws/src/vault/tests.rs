use std::sync::Arc;
use std::time::Duration;

use aws_client::Patience;
use domain::limits::Limits;
use domain::ports::{Clock as _, SecretSource as _};
use domain::testing::ManualClock;

use super::*;
use crate::testing::{FakeSecretsManager, SecretsTrouble, Value};
use crate::{AwsSecrets, Begun};

struct Scene {
    fake: FakeSecretsManager,
    clock: Arc<ManualClock>,
    vault: AwsVault,
    secrets: AwsSecrets,
    slot: SlotId,
}

/// A secret `shop` with a current value.
async fn scene() -> Scene {
    let clock = Arc::new(ManualClock::default());
    let fake = FakeSecretsManager::start(clock.clone()).await.unwrap();
    fake.put("shop", &*secret("old").to_stored()).unwrap();
    fake.let_rotate("shop", true);
    let config = fake.config(Patience { attempts: 1, ..Patience::WORKER }).unwrap();
    let ids = ["shop".to_owned()];
    let secrets = AwsSecrets::new(&config, &ids, clock.clone(), Limits::default().previous_grace);
    let vault = AwsVault::new(&config, &ids);
    Scene { fake, clock, vault, secrets, slot: SlotId::parse("shop").unwrap() }
}

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap().with_webhook_id(&format!("webhook-of-{text}")).unwrap()
}

fn version(number: u32) -> VersionId {
    VersionId::parse(&format!("{number:032}")).unwrap()
}

impl Scene {
    async fn read(&self) -> Slot {
        self.vault.read(&self.slot).await.unwrap()
    }

    async fn put(&self, number: u32, text: &str) {
        let put = self.vault.put_pending(&self.slot, &version(number), &secret(text)).await;
        assert_eq!(put.unwrap(), PutPending::Kept);
    }

    async fn promote(&self, number: u32) -> Result<Promoted, PortError> {
        let over = self.read().await.current.unwrap().id;
        self.vault.promote(&self.slot, &version(number), &over, self.clock.now()).await
    }

    async fn in_force(&self) -> Vec<String> {
        let secrets = self.secrets.load().await.unwrap().secrets;
        secrets.iter().map(|secret| secret.expose().to_owned()).collect()
    }

    fn labels(&self) -> Vec<String> {
        let mut labels: Vec<_> = self.fake.labels("shop").into_values().flatten().collect();
        labels.sort();
        labels
    }
}

/// SM-05: a label without a value is the beginning of a rotation, and the value goes where it is.
#[tokio::test]
async fn sm_05_a_label_without_a_value_is_told_apart() {
    let scene = scene().await;
    let id = scene.fake.begin_rotation("shop").unwrap();
    let pending = scene.read().await.pending.unwrap();
    assert_eq!(pending.id.as_str(), id);
    assert!(matches!(pending.holds, Holds::Nothing));
    let put = scene.vault.put_pending(&scene.slot, &pending.id, &secret("new")).await.unwrap();
    assert_eq!(put, PutPending::Kept);
    assert_eq!(scene.read().await.pending.unwrap().secret().unwrap().expose(), "new");
}

/// SM-06: the pending label stays where Secrets Manager leaves it, on the current version, and is
/// none there; it is not taken away by giving up either.
#[tokio::test]
async fn sm_06_a_label_left_on_the_current_version_is_none() {
    let scene = scene().await;
    scene.put(1, "new").await;
    scene.promote(1).await.unwrap();
    let on_current = &scene.fake.labels("shop")[version(1).as_str()];
    assert!(on_current.iter().any(|label| label == "AWSPENDING"), "{on_current:?}");
    scene.vault.give_up(&scene.slot, &version(1)).await.unwrap();
    let slot = scene.read().await;
    assert!(slot.pending.is_none());
    assert_eq!(scene.in_force().await, ["new", "old"]);
    assert!(scene.labels().contains(&"AWSPENDING".to_owned()));
}

/// SM-07: however often it is promoted, one label tells since when, and no version is kept for its
/// sake.
#[tokio::test]
async fn sm_07_one_label_tells_since_when() {
    let scene = scene().await;
    for number in 1..=30 {
        scene.put(number, &format!("new-{number}")).await;
        scene.clock.advance(Duration::from_hours(2));
        scene.promote(number).await.unwrap();
        let since = since_label(scene.clock.now());
        assert_eq!(scene.labels(), ["AWSCURRENT", "AWSPENDING", "AWSPREVIOUS", &since]);
        assert_eq!(scene.fake.labels("shop").len(), 2);
        assert_eq!(scene.in_force().await.len(), 2);
    }
    scene.clock.advance(Limits::default().previous_grace);
    assert_eq!(scene.in_force().await, ["new-30"]);
}

/// A promotion that ended in the middle is taken up by the next try: the grace counts from the one
/// that moved the label, and what earlier ones left is taken away in time.
#[tokio::test]
async fn a_promotion_that_ends_anywhere_is_taken_up() {
    for fails_at in 0..4 {
        for trouble in [SecretsTrouble::Reset, SecretsTrouble::LoseAnswer, SecretsTrouble::INTERNAL]
        {
            let scene = scene().await;
            scene.put(1, "first").await;
            scene.promote(1).await.unwrap();
            scene.clock.advance(Duration::from_hours(1));
            scene.put(2, "second").await;
            let over = scene.read().await.current.unwrap().id;
            scene.fake.plan((0..fails_at).map(|_| SecretsTrouble::Pass).chain([trouble]));
            let now = scene.clock.now();
            let first = scene.vault.promote(&scene.slot, &version(2), &over, now).await;
            assert_eq!(first.is_ok(), fails_at > 2, "{fails_at} {trouble:?}: {first:?}");
            let is_moved = scene.read().await.current.unwrap().id == version(2);
            scene.clock.advance(Duration::from_mins(14));
            let now = scene.clock.now();
            let again = scene.vault.promote(&scene.slot, &version(2), &over, now).await.unwrap();
            assert_eq!(again, Promoted::Done);
            assert_eq!(scene.in_force().await, ["second", "first"], "{fails_at} {trouble:?}");
            scene.clock.advance(Duration::from_mins(1));
            let expected: &[&str] = if is_moved { &["second"] } else { &["second", "first"] };
            assert_eq!(scene.in_force().await, expected, "{fails_at} {trouble:?}");
            scene.put(3, "third").await;
            scene.promote(3).await.unwrap();
            let since = since_label(scene.clock.now());
            assert_eq!(scene.labels(), ["AWSCURRENT", "AWSPENDING", "AWSPREVIOUS", &since]);
        }
    }
}

/// Somebody typed a new value into the console meanwhile: it stays the current one.
#[tokio::test]
async fn a_value_typed_meanwhile_is_not_overtaken() {
    let scene = scene().await;
    scene.put(1, "new").await;
    let over = scene.read().await.current.unwrap().id;
    scene.fake.put("shop", "typed").unwrap();
    let now = scene.clock.now();
    let promoted = scene.vault.promote(&scene.slot, &version(1), &over, now).await.unwrap();
    assert_eq!(promoted, Promoted::Conflict);
    assert_eq!(scene.in_force().await, ["typed", "new", "old"]);
}

/// SM-04: what is no secret is told and not shown, in whichever form it is there.
#[tokio::test]
async fn what_is_no_secret_is_told() {
    let scene = scene().await;
    scene.fake.hold("shop", Value::Neither);
    assert!(matches!(scene.read().await.current.unwrap().holds, Holds::Nothing));
    for value in [Value::Text("{\"hushhush\":1}".to_owned()), Value::Bytes(vec![0xff])] {
        scene.fake.hold("shop", value.clone());
        let current = scene.read().await.current.unwrap();
        assert!(matches!(current.holds, Holds::Unusable(_)), "{value:?}: {current:?}");
        assert!(!format!("{current:?}").contains("hushhush"));
    }
    scene.fake.put("shop", "typed-by-hand").unwrap();
    let typed = scene.read().await.current.unwrap();
    assert_eq!(typed.secret().unwrap().webhook_id(), None);
}

/// Whether a function may rotate a secret, and what an operator has to mend, is told.
#[tokio::test]
async fn what_an_operator_has_to_mend_is_denied() {
    let scene = scene().await;
    assert!(scene.read().await.is_rotated);
    scene.fake.let_rotate("shop", false);
    assert!(!scene.read().await.is_rotated);
    scene.fake.forbid("shop", true);
    let error = scene.vault.read(&scene.slot).await.unwrap_err();
    let text = format!("{error:?}");
    assert_eq!(error.kind, ErrorKind::Denied);
    assert!(text.contains("secretsmanager:DescribeSecret on resource: shop"), "{text}");
    scene.fake.forbid("shop", false);
    scene.fake.delete("shop");
    let put = scene.vault.put_pending(&scene.slot, &version(1), &secret("new")).await;
    assert_eq!(put.unwrap_err().kind, ErrorKind::Denied);
    scene.fake.forget(None);
    assert_eq!(scene.vault.read(&scene.slot).await.unwrap_err().kind, ErrorKind::Denied);
}

/// SM-10: an operator's rotation begins where one is configured, and is refused during another one.
#[tokio::test]
async fn sm_10_a_rotation_begins_once() {
    let scene = scene().await;
    let begin = |number| {
        let (vault, slot) = (&scene.vault, &scene.slot);
        async move { vault.begin_rotation(slot, &version(number)).await.unwrap() }
    };
    scene.fake.let_rotate("shop", false);
    assert_eq!(begin(1).await, Begun::NotConfigured);
    scene.fake.let_rotate("shop", true);
    assert_eq!(begin(1).await, Begun::Now);
    assert_eq!(begin(2).await, Begun::UnderWay);
    let pending = scene.read().await.pending.unwrap();
    assert_eq!(pending.id, version(1));
    scene.put(1, "new").await;
    scene.promote(1).await.unwrap();
    assert_eq!(begin(2).await, Begun::Now, "the label that stayed on the current one is none");
    // Faster than we could look.
    scene.vault.give_up(&scene.slot, &version(2)).await.unwrap();
    scene.fake.plan([
        SecretsTrouble::Pass,
        SecretsTrouble::Refuse { status: 400, code: "InvalidRequestException" },
    ]);
    assert_eq!(begin(3).await, Begun::UnderWay);
}
