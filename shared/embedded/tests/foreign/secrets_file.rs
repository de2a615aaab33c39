//! Secrets files: read whole or refused, never quoted, and the same when written again.
//!
//! An input is a file.

use std::error::Error;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use domain::ports::{ErrorKind, SecretSource as _};
use domain::signature::secret::{SECRET_BYTES_MAX, Secret, Stage};
use domain::testing::ManualClock;
use embedded::secrets::{LocalSecrets, SecretPlace, SecretsFile, SecretsFileError, StoredSecret};
use tempfile::TempDir;

/// Part of a secret that no error may quote.
const MARKER: &str = "whsec_marker";

pub(crate) fn check(input: &[u8]) {
    static FOLDER: OnceLock<Mutex<TempDir>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| Mutex::new(tempfile::tempdir().unwrap()));
    let folder = folder.lock().unwrap_or_else(PoisonError::into_inner);
    let path = folder.path().join("secrets.json");
    write(&path, input);
    let listed = SecretsFile::new(&path).list();
    let loaded = load(&path);
    match &listed {
        Ok(stored) => {
            for stored in stored {
                check_secret(&stored.secret);
            }
            // The clock stands after any date in a seed, so that previous ones may be left out.
            assert!(loaded.unwrap().len() <= stored.len());
            check_round_trip(&folder.path().join("again.json"), stored);
        }
        Err(SecretsFileError::NotOurs { .. }) => match loaded {
            Ok(secrets) => assert_eq!(secrets.len(), 1),
            Err(kind) => assert_eq!(kind, ErrorKind::Corrupt),
        },
        Err(error) => {
            check_quiet(error);
            assert_eq!(loaded.unwrap_err(), ErrorKind::Corrupt);
        }
    }
    if let Ok(secret) = Secret::parse_stored(&String::from_utf8_lossy(input)) {
        check_secret(&secret);
    }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

fn load(path: &Path) -> Result<Vec<Secret>, ErrorKind> {
    let places = vec![SecretPlace::File(path.to_owned())];
    let source = LocalSecrets::new(places, Arc::new(ManualClock::default()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(source.load()).map(|loaded| loaded.secrets).map_err(|error| {
        check_quiet(&error);
        error.kind
    })
}

/// One normalisation: trimmed, not blank, bounded, on one line.
fn check_secret(secret: &Secret) {
    let text = secret.expose();
    assert!(!text.trim().is_empty() && text.len() <= SECRET_BYTES_MAX);
    assert_eq!(text, text.trim_matches(|character: char| character.is_ascii_whitespace()));
    assert!(!text.chars().any(char::is_control));
    assert!(Secret::new(text).unwrap().same_text(secret));
    assert!(!format!("{secret:?}").contains(MARKER) || shows_marker(secret));
}

/// Whether the marker stands where it may be shown.
fn shows_marker(secret: &Secret) -> bool {
    let id = secret.webhook_id().unwrap_or_default();
    secret.label().contains(MARKER) || id.contains(MARKER)
}

fn check_round_trip(path: &Path, stored: &[StoredSecret]) {
    write(path, br#"{"version":1,"secrets":[]}"#);
    let file = SecretsFile::new(path);
    let mut kept = Vec::new();
    for stored in stored {
        match file.add(stored.clone()) {
            Ok(()) => kept.push(stored),
            Err(SecretsFileError::Full { .. }) => break,
            Err(SecretsFileError::NoWebhook | SecretsFileError::Present { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let again = file.list().unwrap();
    assert_eq!(again.len(), kept.len());
    for (again, stored) in again.iter().zip(kept) {
        assert!(again.secret.same_text(&stored.secret));
        assert_eq!(again.secret.stage(), stored.secret.stage());
        assert_eq!(again.secret.label(), stored.secret.label());
        assert_eq!(again.secret.webhook_id(), stored.secret.webhook_id());
        assert_eq!(
            (again.until, &again.url, &again.event_type),
            (stored.until, &stored.url, &stored.event_type)
        );
        assert!(again.until.is_some() || again.secret.stage() != Stage::Previous);
    }
}

/// Nothing of the file is in the error.
fn check_quiet(error: &(dyn Error + 'static)) {
    let mut next = Some(error);
    while let Some(error) = next {
        assert!(!error.to_string().contains(MARKER) && !format!("{error:?}").contains(MARKER));
        next = error.source();
    }
}

#[test]
fn the_seeds_of_secrets_files_hold() {
    testkit::corpus::check("secrets_file", 8, check);
}
