//! The rotator over ports in memory, and on a Secrets Manager on loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

mod rig;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use domain::ports::VersionId;
use domain::rotate::{RotateError, Strategy};
use rig::{Rig, SECRET, VERSION};
use rotator::StepError;
use serde_json::{Value, json};
use telemetry::Counter;

fn events() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events")
}

fn event(name: &str) -> Value {
    let text = std::fs::read_to_string(events().join("rotator").join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The answers by file, in the order of the page's table.
fn promised() -> Vec<(String, String)> {
    let page = std::fs::read_to_string(events().join("README.md")).unwrap();
    let rows = page.lines().filter(|line| line.contains("](rotator/"));
    rows.map(|row| {
        let file = row.split_once("](rotator/").unwrap().1.split_once(')').unwrap().0;
        let answer = row.trim_end_matches(['|', ' ']).rsplit_once('|').unwrap().1.trim();
        (file.to_owned(), answer.to_owned())
    })
    .collect()
}

/// Every file of events/rotator gets the answer that events/README.md promises; the table is in the
/// order of one rotation.
#[tokio::test]
async fn every_file_gets_the_answer_that_is_promised() {
    let rig = Rig::new(Strategy::Overlap).await;
    rig.begin();
    let promised = promised();
    let files = std::fs::read_dir(events().join("rotator")).unwrap();
    let mut names: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let told: BTreeMap<_, _> = promised.iter().cloned().collect();
    assert_eq!(names, told.keys().cloned().collect::<Vec<_>>(), "files and table");
    for (name, wanted) in promised {
        match rig.step(&event(&name)).await {
            Ok(report) => {
                assert_eq!(report.done, wanted, "{name}");
                assert_eq!(event(&name)["Step"], report.step);
            }
            Err(error) => assert_eq!(wanted, "an error", "{name}: {error}"),
        }
    }
    assert_eq!(rig.metrics.read(Counter::RotationSteps), 4);
    assert_eq!(rig.metrics.read(Counter::RotationTroubles), 4);
    let labels = rig.fake.labels(SECRET);
    let current = labels.get(VERSION).unwrap();
    assert!(current.iter().any(|label| label == "AWSCURRENT"), "{labels:?}");
    let webhooks = rig.webhooks.webhooks();
    let active: Vec<_> = webhooks.iter().map(|webhook| webhook.is_active).collect();
    assert_eq!(active, [false, true]);
}

/// As AWS's own template does, a step is refused where rotation is not switched on, and where the
/// version is not labelled as the pending one; a version that is current already is done.
#[tokio::test]
async fn what_secrets_manager_did_not_begin_is_refused() {
    let rig = Rig::new(Strategy::Overlap).await;
    let create = event("create-secret.json");
    let text = rig.step(&create).await.unwrap_err().to_string();
    assert!(text.contains("not labelled as the pending one"), "{text}");
    rig.begin();
    rig.fake.let_rotate(SECRET, false);
    let text = rig.step(&create).await.unwrap_err().to_string();
    assert!(text.contains("rotation is not switched on"), "{text}");
    assert_eq!(rig.webhooks.webhooks().len(), 1);
    rig.fake.let_rotate(SECRET, true);
    for name in ["create-secret.json", "set-secret.json", "test-secret.json", "finish-secret.json"]
    {
        rig.step(&event(name)).await.unwrap();
    }
    for name in ["create-secret.json", "finish-secret.json"] {
        assert_eq!(rig.step(&event(name)).await.unwrap().done, "already_current", "{name}");
    }
}

/// The settings may name a secret by its name alone; Secrets Manager names it by its ARN.
#[tokio::test]
async fn a_secret_is_known_by_its_name_as_well() {
    let rig = Rig::named("ExtractWebhookSecret-8Kq2vX0bZr1T", Strategy::InPlace).await;
    rig.begin();
    let error = rig.step(&event("create-secret.json")).await;
    assert_eq!(error.unwrap().done, "replaced");
    let other = json!({
        "SecretId": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:8Kq2vX0bZr1T-a1B2c3",
        "ClientRequestToken": VERSION,
        "Step": "createSecret",
    });
    assert!(matches!(rig.step(&other).await.unwrap_err(), StepError::Unknown));
}

/// A platform that allows no second webhook is told of with what to do, and in place it goes on.
#[tokio::test]
async fn an_account_without_room_is_told_what_to_do() {
    let rig = Rig::new(Strategy::Overlap).await;
    rig.begin();
    rig.fill().await;
    let error = rig.step(&event("create-secret.json")).await.unwrap_err();
    assert!(matches!(&error, StepError::Step(RotateError::Refused(_))), "{error:?}");
    assert!(error.to_string().contains("rotate in place"), "{error}");
    let rig = rig.with(Strategy::InPlace);
    for name in ["create-secret.json", "set-secret.json", "test-secret.json", "finish-secret.json"]
    {
        rig.step(&event(name)).await.unwrap();
    }
    assert_eq!(rig.webhooks.webhooks().len(), 10);
}

/// OB-01: no error shows a secret, whatever is stored.
#[tokio::test]
async fn ob_01_no_error_shows_a_secret() {
    let rig = Rig::new(Strategy::Overlap).await;
    for stored in ["hushhush", "{\"hushhush\":1}"] {
        rig.fake.put(SECRET, stored).unwrap();
        rig.begin();
        let error = rig.step(&event("create-secret.json")).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("hushhush"), "{text}");
    }
    let version = VersionId::parse(VERSION).unwrap();
    assert_eq!(version.as_str(), event("create-secret.json")["ClientRequestToken"]);
}
