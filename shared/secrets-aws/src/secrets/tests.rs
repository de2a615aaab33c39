use std::error::Error as _;

use aws_client::Patience;
use domain::limits::Limits;
use domain::testing::ManualClock;

use super::*;
use crate::testing::{FakeSecretsManager, SecretsTrouble, Value};

struct Scene {
    fake: FakeSecretsManager,
    clock: Arc<ManualClock>,
    source: AwsSecrets,
}

async fn scene(ids: &[&str]) -> Scene {
    let clock = Arc::new(ManualClock::default());
    let fake = FakeSecretsManager::start(clock.clone()).await.unwrap();
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let source = AwsSecrets::new(
        &fake.config(Patience::RECEIVER).unwrap(),
        &ids,
        clock.clone(),
        Limits::default().previous_grace,
    );
    Scene { fake, clock, source }
}

impl Scene {
    /// Stage and text of each secret in force.
    async fn told(&self) -> Vec<(Stage, String)> {
        let secrets = self.source.load().await.unwrap().secrets;
        secrets.iter().map(|secret| (secret.stage(), secret.expose().to_owned())).collect()
    }

    async fn texts(&self) -> Vec<String> {
        self.told().await.into_iter().map(|(_, text)| text).collect()
    }

    async fn kind(&self) -> ErrorKind {
        self.source.load().await.unwrap_err().kind
    }
}

/// SM-04, SG-07: the forms in which a signing secret may be stored, as text and as bytes.
#[tokio::test]
async fn sm_04_a_secret_is_read_in_each_of_its_forms() {
    let scene = scene(&["shop"]).await;
    for text in [
        "test-secret-1",
        "test-secret-1\n",
        "test-secret-1\r\n",
        "  test-secret-1  ",
        "{\"secret\":\"test-secret-1\"}",
        "\"test-secret-1\"",
    ] {
        scene.fake.put("shop", text).unwrap();
        assert_eq!(scene.texts().await[0], "test-secret-1", "{text:?}");
        scene.fake.put("shop", text.as_bytes()).unwrap();
        assert_eq!(scene.texts().await[0], "test-secret-1", "{text:?}");
    }
    scene.fake.put("shop", "{\"secret\":\"s\",\"webhook_id\":\"w1\"}").unwrap();
    assert_eq!(scene.source.load().await.unwrap().secrets[0].webhook_id(), Some("w1"));
}

/// SM-04, SG-06: what is ambiguous or empty fails the load, and nothing of it is shown.
#[tokio::test]
async fn sm_04_a_current_value_that_is_no_secret_is_corrupt() {
    let scene = scene(&["shop"]).await;
    let texts = ["{\"other\":\"hush\"}", "{hush", "", "   ", "{\"secret\":\"\"}"];
    let values = texts.map(Value::from).into_iter();
    for value in values.chain([Value::Neither, Value::Bytes(b"hush\xff".to_vec())]) {
        scene.fake.hold("shop", value.clone());
        let error = scene.source.load().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt, "{value:?}");
        let text = format!("{error:?} {}", error.source().unwrap());
        assert!(
            text.contains("the secret `shop` (AWSCURRENT) cannot be read at http://127.0.0.1:"),
            "{text}"
        );
        assert!(!text.contains("hush"), "{text}");
    }
}

#[tokio::test]
async fn each_secret_says_where_it_came_from() {
    let scene = scene(&["gleaner/extract"]).await;
    for (text, stages) in [
        ("one", vec![Stage::Current]),
        ("two", vec![Stage::Current]),
        ("three", vec![Stage::Pending]),
    ] {
        scene.fake.put_staged("gleaner/extract", text, &stages).unwrap();
    }
    let secrets = scene.source.load().await.unwrap().secrets;
    let labels: Vec<_> = secrets.iter().map(Secret::label).collect();
    assert_eq!(
        labels,
        ["gleaner/extract:current", "gleaner/extract:pending", "gleaner/extract:previous"]
    );
}

/// An ARN is told by the secret's name; of a long name the end is kept.
#[tokio::test]
async fn labels_of_arns_and_long_names_are_short() {
    let long = format!("{}/extract", "n".repeat(300));
    let mut scene = scene(&[&long]).await;
    let arn = scene.fake.create("gleaner/batch");
    scene.source.ids.push(arn);
    for name in ["gleaner/batch", &long] {
        scene.fake.put(name, "one").unwrap();
    }
    let secrets = scene.source.load().await.unwrap().secrets;
    let told = secrets[0].label();
    assert!(told.ends_with("nnn/extract:current") && told.len() == LABEL_BYTES_MAX, "{told}");
    assert_eq!(secrets[1].label(), "gleaner/batch:current");
}

/// SM-05: a pending version that is not there, has no value yet, cannot be decrypted or holds no
/// secret counts as absent; the current one stays in force.
#[tokio::test]
async fn sm_05_a_pending_version_without_a_value_counts_as_absent() {
    let scene = scene(&["shop"]).await;
    scene.fake.put("shop", "one").unwrap();
    assert_eq!(scene.texts().await, ["one"]);
    scene.fake.begin_rotation("shop").unwrap();
    assert_eq!(scene.texts().await, ["one"]);
    for text in ["{\"other\":\"two\"}", " "] {
        scene.fake.put_staged("shop", text, &[Stage::Pending]).unwrap();
        assert_eq!(scene.texts().await, ["one"]);
    }
    let id = scene.fake.put_staged("shop", "two", &[Stage::Pending]).unwrap();
    let wanted = [(Stage::Current, "one".to_owned()), (Stage::Pending, "two".to_owned())];
    assert_eq!(scene.told().await, wanted);
    scene.fake.break_key("shop", &id);
    assert_eq!(scene.texts().await, ["one"]);
}

/// SM-06: a rotation that left its label on the current version gives the same key once.
#[tokio::test]
async fn sm_06_two_labels_on_one_version_are_one_secret() {
    let scene = scene(&["shop"]).await;
    scene.fake.put_staged("shop", "one", &[Stage::Current, Stage::Pending]).unwrap();
    assert_eq!(scene.texts().await, ["one"]);
    let id = scene.fake.put_staged("shop", "two", &[Stage::Pending]).unwrap();
    assert_eq!(scene.texts().await, ["one", "two"]);
    for _ in 0..2 {
        scene.fake.move_stage("shop", Stage::Current, &id).unwrap();
        let wanted = [(Stage::Current, "two".to_owned()), (Stage::Previous, "one".to_owned())];
        assert_eq!(scene.told().await, wanted);
    }
}

/// SM-07: the previous version is in force for its grace, to the second, and not read after it.
#[tokio::test]
async fn sm_07_the_previous_version_has_its_grace() {
    let scene = scene(&["shop"]).await;
    scene.fake.put("shop", "one").unwrap();
    scene.clock.advance(Duration::from_hours(24));
    scene.fake.put("shop", "two").unwrap();
    for advance in [Duration::ZERO, Duration::from_secs(30), Duration::from_secs(869)] {
        scene.clock.advance(advance);
        assert_eq!(scene.texts().await, ["two", "one"]);
    }
    scene.clock.advance(Duration::from_secs(1));
    assert_eq!(scene.texts().await, ["two"]);
    let calls = scene.fake.seen();
    assert_eq!(
        calls[calls.len() - 2..],
        ["GetSecretValue shop AWSPENDING", "GetSecretValue shop AWSCURRENT"]
    );
}

/// SM-07: the grace is what it is set to.
#[tokio::test]
async fn sm_07_the_grace_is_as_long_as_it_is_set() {
    let Scene { fake, clock, .. } = scene(&["shop"]).await;
    let config = fake.config(Patience::RECEIVER).unwrap();
    let minute = Duration::from_mins(1);
    let source = AwsSecrets::new(&config, &["shop".to_owned()], clock.clone(), minute);
    fake.put("shop", "one").unwrap();
    clock.advance(Duration::from_hours(24));
    fake.put("shop", "two").unwrap();
    clock.advance(minute.saturating_sub(Duration::from_secs(1)));
    assert_eq!(source.load().await.unwrap().secrets.len(), 2);
    clock.advance(Duration::from_secs(1));
    assert_eq!(source.load().await.unwrap().secrets.len(), 1);
}

/// SM-07: at whatever moment of a load a rotation ends, both keys are found.
#[tokio::test]
async fn sm_07_a_rotation_that_ends_during_a_load_hides_no_key() {
    for calls in 0..4 {
        let scene = scene(&["shop"]).await;
        scene.fake.put("shop", "one").unwrap();
        scene.clock.advance(Duration::from_hours(24));
        let id = scene.fake.put_staged("shop", "two", &[Stage::Pending]).unwrap();
        scene.fake.promote_after(calls, "shop", &id);
        let mut texts = scene.texts().await;
        texts.sort();
        assert_eq!(texts, ["one", "two"], "after {calls} calls");
    }
}

/// A typing error that was put right a minute ago does not keep the right value out of force.
#[tokio::test]
async fn an_unusable_previous_version_counts_as_absent() {
    let scene = scene(&["shop"]).await;
    scene.fake.put("shop", "{\"secert\":\"one\"}").unwrap();
    assert_eq!(scene.kind().await, ErrorKind::Corrupt);
    scene.fake.put("shop", "one").unwrap();
    assert_eq!(scene.texts().await, ["one"]);
}

/// Whether a version is in force is unknown while it cannot be read: the load fails.
#[tokio::test]
async fn trouble_of_any_version_is_trouble_of_the_load() {
    let scene = scene(&["shop"]).await;
    scene.fake.put("shop", "one").unwrap();
    scene.fake.put("shop", "two").unwrap();
    let (throttled, internal) = (SecretsTrouble::THROTTLED, SecretsTrouble::INTERNAL);
    // The SDK repeats each call; the versions are read in the order pending, current, previous.
    for passed in 0..3 {
        for (trouble, kind) in
            [(throttled, ErrorKind::Throttled), (internal, ErrorKind::Unavailable)]
        {
            scene.fake.plan(vec![SecretsTrouble::Pass; passed]);
            scene.fake.plan([trouble; 3]);
            assert_eq!(scene.kind().await, kind);
        }
    }
    scene.fake.plan([SecretsTrouble::Reset, SecretsTrouble::CutAnswer]);
    assert_eq!(scene.texts().await, ["two", "one"], "the SDK asks again");
}

#[tokio::test]
async fn what_an_operator_must_mend_is_denied() {
    let scene = scene(&["shop"]).await;
    assert_eq!(scene.kind().await, ErrorKind::Denied);
    scene.fake.create("shop");
    let error = scene.source.load().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
    let text = format!("{error:?}");
    assert!(text.contains("`shop`") && text.contains("staging label: AWSCURRENT"), "{text}");
    let id = scene.fake.put("shop", "one").unwrap();
    scene.fake.forbid("shop", true);
    let text = format!("{:?}", scene.source.load().await.unwrap_err());
    assert!(text.contains("secretsmanager:GetSecretValue on resource: shop"), "{text}");
    scene.fake.forbid("shop", false);
    scene.fake.break_key("shop", &id);
    assert_eq!(scene.kind().await, ErrorKind::Denied);
    scene.fake.delete("shop");
    assert_eq!(scene.kind().await, ErrorKind::Denied);
}

/// SM-08: each webhook's secret is in force, and one that cannot be read takes no other with it.
#[tokio::test]
async fn sm_08_every_webhooks_secret_is_in_force() {
    let names: Vec<String> = (0..9).map(|number| format!("webhook-{number}")).collect();
    let ids: Vec<&str> = names.iter().map(String::as_str).chain(["webhook-0"]).collect();
    let scene = scene(&ids).await;
    for (number, name) in names.iter().enumerate() {
        scene.fake.put(name, format!("secret-{number}").as_str()).unwrap();
    }
    scene.clock.advance(Limits::default().previous_grace);
    let wanted: Vec<_> = (0..9).map(|number| format!("secret-{number}")).collect();
    assert_eq!(scene.texts().await, wanted);
    assert_eq!(scene.fake.seen().len(), 18);
    let others: Vec<_> = wanted.iter().filter(|text| *text != "secret-7").cloned().collect();
    let spoil: [&dyn Fn(&FakeSecretsManager); 4] = [
        &|fake| fake.forbid("webhook-7", true),
        &|fake| fake.hold("webhook-7", "{\"other\":\"x\"}"),
        &|fake| fake.hold("webhook-7", " "),
        &|fake| fake.delete("webhook-7"),
    ];
    for (spoil, kind) in spoil.iter().zip([
        ErrorKind::Denied,
        ErrorKind::Corrupt,
        ErrorKind::Corrupt,
        ErrorKind::Denied,
    ]) {
        spoil(&scene.fake);
        let loaded = scene.source.load().await.unwrap();
        assert_eq!(loaded.secrets.iter().map(Secret::expose).collect::<Vec<_>>(), others);
        let unread = loaded.unread.unwrap();
        assert_eq!(unread.kind, kind);
        assert!(format!("{unread:?}").contains("`webhook-7` (AWSCURRENT)"));
        scene.fake.forbid("webhook-7", false);
    }
}
