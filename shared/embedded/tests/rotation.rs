//! The crash test of a rotation, on a secrets file.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

use std::sync::Arc;

use domain::ports::SlotId;
use domain::testing::ManualClock;
use embedded::secrets::{FileVault, LocalSecrets, SecretPlace, SecretsFile, StoredSecret};
use testkit::crash::rotate::RotationWorld;

async fn world() -> RotationWorld {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secrets.json");
    let clock = Arc::new(ManualClock::default());
    let file = SecretsFile::new(&path);
    let source = Arc::new(LocalSecrets::new(vec![SecretPlace::File(path)], clock.clone()));
    let vault = Arc::new(FileVault::new(file.clone()));
    let world = RotationWorld::new(clock, vault, source, |secret| {
        file.add(StoredSecret::new(secret.clone())).unwrap();
        SlotId::parse(secret.webhook_id().unwrap()).unwrap()
    });
    world.await.keeping(directory)
}

testkit::rotation_crash_tests! { name: file, make: world().await }
