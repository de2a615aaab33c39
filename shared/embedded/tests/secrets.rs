//! The conformance suites of sources of secrets, run on files and on values of the settings, and of
//! vaults, run on a file.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::limits::Limits;
use domain::ports::{Clock as _, ErrorKind, SecretSource, SlotId};
use domain::signature::secret::{Secret, Stage};
use domain::testing::ManualClock;
use domain::time::{Timestamp, after};
use embedded::secrets::{FileVault, LocalSecrets, SecretPlace, SecretsFile, StoredSecret};
use testkit::conformance::{Absence, Kept, SecretsCaps, SecretsSubject, VaultSubject};

fn write(path: &Path, text: &str, mode: u32) {
    let partial = path.with_extension("new");
    std::fs::write(&partial, text).unwrap();
    std::fs::set_permissions(&partial, std::fs::Permissions::from_mode(mode)).unwrap();
    std::fs::rename(&partial, path).unwrap();
}

/// Keeps secrets the way `gleaner webhooks` does, in a file that takes the old one's place whole.
fn write_ours(path: &Path, secrets: &[Secret], until: Timestamp) {
    let fresh = path.with_extension("fresh");
    write(&fresh, r#"{"version":1,"secrets":[]}"#, 0o600);
    let file = SecretsFile::new(&fresh);
    for secret in secrets.iter().cloned() {
        let until = (secret.stage() == Stage::Previous).then_some(until);
        file.add(StoredSecret { until, ..StoredSecret::new(secret) }).unwrap();
    }
    std::fs::rename(&fresh, path).unwrap();
}

/// A file of our format, and one of a bare secret beside it.
fn file() -> SecretsSubject {
    let directory = tempfile::tempdir().unwrap();
    let (ours, bare) = (directory.path().join("ours.json"), directory.path().join("bare"));
    let clock = Arc::new(ManualClock::default());
    let until = after(clock.now(), Duration::from_hours(24));
    let places = [&ours, &bare].map(|path| SecretPlace::File(path.clone()));
    let source = Arc::new(LocalSecrets::new(places.to_vec(), clock));
    let caps = SecretsCaps {
        is_live: true,
        keeps_stages: true,
        absence: Absence::Error(ErrorKind::Unavailable),
    };
    let keep = move |kept: Kept<'_>| {
        if !matches!(kept, Kept::Nothing) {
            write_ours(&bare, &[], until);
        }
        match kept {
            Kept::Secrets(secrets) => write_ours(&ours, secrets, until),
            Kept::Unreadable { beside, text } => {
                write_ours(&ours, std::slice::from_ref(beside), until);
                write(&bare, text, 0o600);
            }
            Kept::Locked(secret) => write(&ours, secret.expose(), 0o640),
            Kept::Nothing => {
                for path in [&ours, &bare] {
                    if path.exists() {
                        std::fs::remove_file(path).unwrap();
                    }
                }
            }
        }
        Some(source.clone() as Arc<dyn SecretSource>)
    };
    SecretsSubject::new(caps, keep).keeping(directory)
}

/// The stored form of a secret as a setting holds it.
fn stored(secret: &Secret) -> String {
    let webhook_id = secret.webhook_id();
    serde_json::json!({ "secret": secret.expose(), "webhook_id": webhook_id }).to_string()
}

fn values() -> SecretsSubject {
    let clock = Arc::new(ManualClock::default());
    let caps = SecretsCaps { is_live: false, keeps_stages: false, absence: Absence::Empty };
    SecretsSubject::new(caps, move |kept| {
        let values = match kept {
            Kept::Secrets(secrets) => secrets.iter().map(stored).collect(),
            Kept::Unreadable { beside, text } => vec![stored(beside), text.to_owned()],
            Kept::Locked(_) => return None,
            Kept::Nothing => Vec::new(),
        };
        let place = |value| SecretPlace::Value { name: "GLEANER_SECRETS".to_owned(), value };
        let places = values.into_iter().map(place).collect();
        Some(Arc::new(LocalSecrets::new(places, clock.clone())))
    })
}

fn vault() -> VaultSubject {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secrets.json");
    let clock = Arc::new(ManualClock::default());
    let file = SecretsFile::new(&path);
    file.prepare().unwrap();
    let source = Arc::new(LocalSecrets::new(vec![SecretPlace::File(path)], clock.clone()));
    let vault = Arc::new(FileVault::new(file.clone(), Limits::default().previous_grace));
    VaultSubject::new(vault, source, clock, move |secret| {
        file.add(StoredSecret::new(secret.clone())).unwrap();
        SlotId::parse(secret.webhook_id().unwrap()).unwrap()
    })
    .keeping(directory)
}

testkit::vault_conformance! { name: vault_file, make: vault() }
testkit::secrets_conformance! { name: file, make: file() }
testkit::secrets_conformance! { name: values, make: values() }
