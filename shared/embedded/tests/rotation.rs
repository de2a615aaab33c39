//! The crash test of a rotation, on a secrets file and a ledger in a file.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

use std::sync::Arc;

use domain::limits::Limits;
use domain::ports::SlotId;
use domain::testing::ManualClock;
use embedded::secrets::{FileVault, LocalSecrets, SecretPlace, SecretsFile, StoredSecret};
use embedded::{Settings, SqliteStore};
use testkit::crash::rotate::RotationWorld;

async fn world() -> RotationWorld {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secrets.json");
    let clock = Arc::new(ManualClock::default());
    let ledger = directory.path().join("ledger.db");
    let ledger = SqliteStore::open(&ledger, clock.clone(), Settings::default()).unwrap();
    let file = SecretsFile::new(&path);
    let source = Arc::new(LocalSecrets::new(vec![SecretPlace::File(path)], clock.clone()));
    let vault = Arc::new(FileVault::new(file.clone(), Limits::default().previous_grace));
    let world = RotationWorld::new(clock, vault, source, |secret| {
        file.add(StoredSecret::new(secret.clone())).unwrap();
        SlotId::parse(secret.webhook_id().unwrap()).unwrap()
    });
    world.await.on(Arc::new(ledger)).keeping(directory)
}

testkit::rotation_crash_tests! { name: file, make: world().await }

#[test]
fn a_killed_rotation_is_gone_on_with_at_once() {
    testkit::run(testkit::crash::rotate::a_killed_rotation_is_gone_on_with_at_once(&world));
}
