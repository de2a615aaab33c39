//! The crash test of a rotation, on Secrets Manager.

use std::sync::Arc;

use aws_client::Patience;
use domain::limits::Limits;
use domain::ports::SlotId;
use domain::testing::ManualClock;
use secrets_aws::testing::FakeSecretsManager;
use secrets_aws::{AwsSecrets, AwsVault};
use testkit::crash::rotate::RotationWorld;

const NAME: &str = "ExtractWebhookSecret-a1B2c3D4e5F6";

async fn world() -> RotationWorld {
    let clock = Arc::new(ManualClock::default());
    let fake = Arc::new(FakeSecretsManager::start(clock.clone()).await.unwrap());
    let config = fake.config(Patience::WORKER).unwrap();
    let ids = [NAME.to_owned()];
    let source =
        Arc::new(AwsSecrets::new(&config, &ids, clock.clone(), Limits::default().previous_grace));
    let vault = Arc::new(AwsVault::new(&config, &ids));
    let (laid, staged) = (fake.clone(), fake.clone());
    let world = RotationWorld::new(clock, vault, source, |secret| {
        laid.put(NAME, secret.to_stored().as_str()).unwrap();
        laid.let_rotate(NAME, true);
        SlotId::parse(NAME).unwrap()
    });
    let world = world.await.staging(move |slot, version| {
        staged.begin_rotation_of(slot.as_str(), version.as_str()).unwrap();
    });
    world.keeping(fake)
}

testkit::rotation_crash_tests! { name: secrets_manager, make: world().await }
