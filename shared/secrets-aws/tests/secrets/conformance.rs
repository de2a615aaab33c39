use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use aws_client::{Patience, SdkConfig};
use domain::limits::Limits;
use domain::ports::{
    Clock, ErrorKind, LoadedSecrets, PortError, Promoted, PutPending, SecretSource, Slot, SlotId,
    Vault, VersionId,
};
use domain::signature::secret::{Secret, Stage};
use domain::testing::ManualClock;
use domain::time::Timestamp;
use secrets_aws::testing::FakeSecretsManager;
use secrets_aws::{AwsSecrets, AwsVault};
use testkit::conformance::{Absence, Kept, SecretsCaps, SecretsSubject, VaultSubject};

/// A receiver that is told of the secrets that there are: the suite keeps now one, now two, and
/// a secret that is configured and not there is an error.
struct Told {
    config: SdkConfig,
    clock: Arc<dyn Clock>,
    names: Mutex<Vec<String>>,
}

#[async_trait]
impl SecretSource for Told {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        let names = self.names.lock().unwrap().clone();
        AwsSecrets::new(
            &self.config,
            &names,
            Arc::clone(&self.clock),
            Limits::default().previous_grace,
        )
        .load()
        .await
    }
}

/// A secret's value as `gleaner webhooks` and the console keep it.
fn stored(secret: &Secret) -> String {
    let webhook_id = secret.webhook_id();
    serde_json::json!({ "secret": secret.expose(), "webhook_id": webhook_id }).to_string()
}

/// Puts each current secret under a name of its own, and what is beside it into the first one's
/// secret: the previous value before the current one, the pending one after it.
fn keep(fake: &FakeSecretsManager, secrets: &[Secret]) -> Vec<String> {
    fake.forget(None);
    let put = |name: &str, secret: &Secret, stage| {
        fake.put_staged(name, stored(secret).as_str(), &[stage]).unwrap();
    };
    let of = |stage| secrets.iter().filter(move |secret| secret.stage() == stage);
    for secret in of(Stage::Previous) {
        put("secret-0", secret, Stage::Current);
    }
    let mut names = Vec::new();
    for (number, secret) in of(Stage::Current).enumerate() {
        names.push(format!("secret-{number}"));
        put(&names[number], secret, Stage::Current);
    }
    for secret in of(Stage::Pending) {
        put("secret-0", secret, Stage::Pending);
    }
    names
}

async fn subject() -> SecretsSubject {
    let clock = Arc::new(ManualClock::default());
    let fake = Arc::new(FakeSecretsManager::start(clock.clone()).await.unwrap());
    let config = fake.config(Patience::RECEIVER).unwrap();
    let source = Arc::new(Told { config, clock, names: Mutex::default() });
    let caps = SecretsCaps {
        is_live: true,
        // A previous or pending version stands beside a current one, never alone.
        keeps_stages: false,
        absence: Absence::Error(ErrorKind::Denied),
    };
    SecretsSubject::new(caps, move |kept| {
        fake.forbid("secret-0", false);
        let names = match kept {
            Kept::Secrets(secrets) => keep(&fake, secrets),
            Kept::Unreadable { beside, text } => {
                let mut names = keep(&fake, std::slice::from_ref(beside));
                names.push("unreadable".to_owned());
                fake.hold("unreadable", text);
                names
            }
            Kept::Locked(secret) => {
                let names = keep(&fake, std::slice::from_ref(secret));
                fake.forbid("secret-0", true);
                names
            }
            Kept::Nothing => {
                fake.forget(None);
                vec!["secret-0".to_owned()]
            }
        };
        *source.names.lock().unwrap() = names;
        Some(source.clone() as Arc<dyn SecretSource>)
    })
}

testkit::secrets_conformance! { name: secrets_manager, make: subject().await }

async fn vault() -> VaultSubject {
    let clock = Arc::new(ManualClock::default());
    let fake = Arc::new(FakeSecretsManager::start(clock.clone()).await.unwrap());
    let config = fake.config(Patience::WORKER).unwrap();
    let names = Arc::new(Mutex::new(Vec::new()));
    let source = Told { config: config.clone(), clock: clock.clone(), names: Mutex::default() };
    let (source, vault) = (Arc::new(source), Arc::new(GrownVault { config, names }));
    let (told, grown) = (source.clone(), vault.clone());
    VaultSubject::new(vault, source, clock, move |secret| {
        let mut names = grown.names.lock().unwrap();
        let name = format!("slot-{}", names.len());
        fake.put(&name, stored(secret).as_str()).unwrap();
        fake.let_rotate(&name, true);
        names.push(name.clone());
        told.names.lock().unwrap().clone_from(&names);
        SlotId::parse(&name).unwrap()
    })
}

/// A vault that is told of the secrets that there are.
struct GrownVault {
    config: SdkConfig,
    names: Arc<Mutex<Vec<String>>>,
}

impl GrownVault {
    fn vault(&self) -> AwsVault {
        AwsVault::new(&self.config, &self.names.lock().unwrap())
    }
}

#[async_trait]
impl Vault for GrownVault {
    async fn slots(&self) -> Result<Vec<SlotId>, PortError> {
        self.vault().slots().await
    }

    async fn read(&self, slot: &SlotId) -> Result<Slot, PortError> {
        self.vault().read(slot).await
    }

    async fn put_pending(
        &self,
        slot: &SlotId,
        version: &VersionId,
        secret: &Secret,
    ) -> Result<PutPending, PortError> {
        self.vault().put_pending(slot, version, secret).await
    }

    async fn promote(
        &self,
        slot: &SlotId,
        version: &VersionId,
        over: &VersionId,
        now: Timestamp,
    ) -> Result<Promoted, PortError> {
        self.vault().promote(slot, version, over, now).await
    }

    async fn give_up(&self, slot: &SlotId, version: &VersionId) -> Result<(), PortError> {
        self.vault().give_up(slot, version).await
    }
}

testkit::vault_conformance! { name: secrets_manager_vault, make: vault().await }
