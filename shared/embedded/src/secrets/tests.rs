use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use domain::limits::Limits;
use domain::ports::{SlotId, Vault as _, VersionId};
use domain::signature::SECRETS_MAX;
use domain::signature::secret::Stage;
use domain::testing::ManualClock;
use tempfile::TempDir;

use super::*;
use crate::limits::SECRETS_FILE_BYTES_MAX;
use crate::testing::start;

fn write(path: &Path, content: &[u8]) {
    std::fs::write(path, content).unwrap();
    chmod(path, 0o600);
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn scene() -> (TempDir, PathBuf, Arc<ManualClock>, LocalSecrets) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secrets.json");
    let clock = crate::testing::clock();
    let source = LocalSecrets::new(vec![SecretPlace::File(path.clone())], clock.clone());
    (directory, path, clock, source)
}

async fn texts(source: &LocalSecrets) -> Vec<String> {
    let secrets = source.load().await.unwrap().secrets;
    secrets.iter().map(|secret| secret.expose().to_owned()).collect()
}

fn stored(text: &str, webhook_id: &str) -> StoredSecret {
    let secret = Secret::new(text).unwrap().with_webhook_id(webhook_id).unwrap();
    StoredSecret {
        url: Some("https://example.com/hook".to_owned()),
        event_type: Some("extract_completed".to_owned()),
        ..StoredSecret::new(secret)
    }
}

/// SM-01: a file is read anew on each load.
#[tokio::test]
async fn a_changed_file_is_seen_by_the_next_load() {
    let (_directory, path, _clock, source) = scene();
    write(&path, b"first\n");
    assert_eq!(texts(&source).await, ["first"]);
    write(&path, b"second\r\n");
    assert_eq!(texts(&source).await, ["second"]);
}

/// SM-04, SG-07: plain text, a JSON string and the documented object are secrets, whatever white space
/// is around them; anything else fails closed, and the value is in no error.
#[tokio::test]
async fn documented_forms_are_read_and_others_refused() {
    let (_directory, path, clock, source) = scene();
    for form in [
        "test-secret-1",
        "test-secret-1\n",
        "test-secret-1\r\n",
        "  test-secret-1  ",
        "\"test-secret-1\"",
        "{\"secret\":\"test-secret-1\"}\n",
    ] {
        write(&path, form.as_bytes());
        assert_eq!(texts(&source).await, ["test-secret-1"], "{form}");
        let value = SecretPlace::Value { name: "SECRET".to_owned(), value: form.to_owned() };
        assert!(!format!("{value:?}").contains("test-secret-1"));
        let values = LocalSecrets::new(vec![value], clock.clone());
        assert_eq!(texts(&values).await, ["test-secret-1"], "{form}");
    }
    for form in [
        "",
        " \n",
        "null",
        "{\"other\":\"hushhush\"}",
        "{hushhush",
        "[\"hushhush\"]",
        "hushhush\nhushhush",
        "{\"version\":0,\"secrets\":[]}",
        "{\"version\":1,\"secrets\":\"hushhush\"}",
        "{\"version\":1,\"secrets\":[{\"secret\":\"hushhush\"}]}",
        "{\"version\":1,\"secrets\":[{\"secret\":\"hushhush\",\"stage\":\"hushhush\"}]}",
        "{\"version\":1,\"secrets\":[{\"secret\":\"hushhush\",\"stage\":\"previous\"}]}",
        "{\"version\":1,\"secrets\":[{\"secret\":\" \",\"stage\":\"current\"}]}",
        "{\"version\":1,\"secrets\":[],\"hushhush\":1}",
        "{\"version\":3,\"secrets\":[]}",
    ] {
        write(&path, form.as_bytes());
        let error = source.load().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt, "{form}");
        let text = format!("{error:?}");
        assert!(text.contains("secrets.json") && !text.contains("hushhush"), "{text}");
    }
    let blank = SecretPlace::Value { name: "SECRET".to_owned(), value: " ".to_owned() };
    let error = LocalSecrets::new(vec![blank], clock).load().await.unwrap_err();
    assert!(format!("{error:?}").contains("SECRET holds no usable"), "{error:?}");
}

/// A broken file says where it is broken, whether it is read or changed.
#[tokio::test]
async fn broken_json_is_told_with_its_place() {
    let (_directory, path, _clock, source) = scene();
    for (form, place) in [
        ("{\n  \"version\": 1,\n  \"secrets\": [}\n", "(line 3, column 15)"),
        ("{\"secret\":\"hushhush\"", "(line 1, column 20)"),
        ("\"hushhush", "(line 1, column 9)"),
    ] {
        write(&path, form.as_bytes());
        let text = format!("{:?}", source.load().await.unwrap_err());
        assert!(text.contains(&format!("is not valid JSON {place}")), "{text}");
        assert!(!text.contains("ambiguous") && !text.contains("hushhush"), "{text}");
        let error = SecretsFile::new(&path).prepare().unwrap_err();
        assert!(error.to_string().contains(place), "{error}");
    }
}

/// Preparing changes no secret, and finds out whether one could be kept.
#[test]
fn a_file_is_prepared_before_a_secret_is_made() {
    let (directory, path, _clock, _source) = scene();
    let file = SecretsFile::new(&path);
    file.prepare().unwrap();
    assert!(file.list().unwrap().is_empty() && path.exists());
    file.add(stored("s1", "w1")).unwrap();
    let before = std::fs::read(&path).unwrap();
    file.prepare().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let nowhere = SecretsFile::new(&directory.path().join("none/secrets.json"));
    assert!(matches!(nowhere.prepare(), Err(SecretsFileError::Io { .. })));
}

/// A file that others may read is refused, and the error says what to do.
#[tokio::test]
async fn a_file_open_to_others_is_refused() {
    let (_directory, path, _clock, source) = scene();
    write(&path, b"secret");
    for mode in [0o640, 0o604, 0o620, 0o601] {
        chmod(&path, mode);
        let error = source.load().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied);
        assert!(format!("{error:?}").contains("run `chmod 600 "), "{error:?}");
    }
    for mode in [0o600, 0o400] {
        chmod(&path, mode);
        assert_eq!(texts(&source).await, ["secret"]);
    }
}

#[tokio::test]
async fn a_file_is_read_up_to_its_limit() {
    let (directory, path, clock, source) = scene();
    let error = source.load().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(format!("{error:?}").contains("gleaner webhooks create"), "{error:?}");
    let mut content = b"secret".to_vec();
    content.resize(SECRETS_FILE_BYTES_MAX, b' ');
    write(&path, &content);
    assert_eq!(texts(&source).await, ["secret"]);
    content.push(b' ');
    write(&path, &content);
    assert!(format!("{:?}", source.load().await.unwrap_err()).contains("longer than 65536 bytes"));
    write(&path, b"\xff\xfe");
    assert!(format!("{:?}", source.load().await.unwrap_err()).contains("not UTF-8"));
    let place = SecretPlace::File(directory.path().to_owned());
    let error = LocalSecrets::new(vec![place], clock).load().await.unwrap_err();
    assert!(format!("{error:?}").contains("not a regular file"), "{error:?}");
}

/// SM-08: each webhook's secret is in force, with those of every other place.
#[tokio::test]
async fn all_places_are_in_force() {
    let (_directory, path, clock, _source) = scene();
    let file = SecretsFile::new(&path);
    for id in ["w1", "w2", "w3"] {
        file.add(stored(&format!("secret-{id}"), id)).unwrap();
    }
    let value = SecretPlace::Value { name: "SECRET".to_owned(), value: "typed".to_owned() };
    let source = LocalSecrets::new(vec![SecretPlace::File(path), value], clock);
    assert_eq!(texts(&source).await, ["secret-w1", "secret-w2", "secret-w3", "typed"]);
    let secrets = source.load().await.unwrap().secrets;
    assert_eq!(secrets[1].webhook_id(), Some("w2"));
}

#[test]
fn the_file_is_private_and_its_format_fixed() {
    let (_directory, path, _clock, _source) = scene();
    let file = SecretsFile::new(&path);
    assert!(file.list().unwrap().is_empty());
    file.add(stored("s1", "w1")).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let wanted = "{\n  \"version\": 1,\n  \"secrets\": [\n    {\n      \"secret\": \"s1\",\n      \
                  \"webhook_id\": \"w1\",\n      \"stage\": \"current\",\n      \
                  \"url\": \"https://example.com/hook\",\n      \
                  \"event_type\": \"extract_completed\"\n    }\n  ]\n}\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), wanted);
    let listed = file.list().unwrap();
    assert_eq!(listed[0].url.as_deref(), Some("https://example.com/hook"));
    assert!(!format!("{listed:?}").contains("s1"));
}

/// A file written by version 1 is read whole.
#[test]
fn the_fixture_of_version_1_is_read() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/secrets-v1.json");
    let (_directory, path, _clock, _source) = scene();
    write(&path, &std::fs::read(fixture).unwrap());
    let listed = SecretsFile::new(&path).list().unwrap();
    let stages: Vec<_> = listed.iter().map(|stored| stored.secret.stage()).collect();
    assert_eq!(stages, [Stage::Current, Stage::Pending, Stage::Previous]);
    assert_eq!(listed[0].secret.label(), "shop");
    assert_eq!(listed[2].until, Some(start()));
}

/// A file written by version 2 is read whole, and its slots are what rotations made them.
#[tokio::test]
async fn the_fixture_of_version_2_is_read() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/secrets-v2.json");
    let (_directory, path, _clock, source) = scene();
    write(&path, &std::fs::read(fixture).unwrap());
    assert_eq!(
        texts(&source).await,
        ["whsec_test_current", "whsec_test_pending", "whsec_test_another"]
    );
    let vault = FileVault::new(SecretsFile::new(&path), Limits::default().previous_grace);
    let slots = vault.slots().await.unwrap();
    let names: Vec<_> = slots.iter().map(SlotId::as_str).collect();
    let (first, other) =
        ("11111111-1111-4111-8111-111111111111", "44444444-4444-4444-8444-444444444444");
    assert_eq!(names, [first, other]);
    let slot = vault.read(&slots[0]).await.unwrap();
    let held = slot.versions().map(|it| (it.id.as_str(), it.secret().unwrap().webhook_id()));
    assert_eq!(
        held.collect::<Vec<_>>(),
        [
            ("0f7c2a9d4be84f1fa0d35c6e7b8190a2", Some("22222222-2222-4222-8222-222222222222")),
            ("5d1e8c3b7f2a4096b8e4d7c1a0f39265", Some("33333333-3333-4333-8333-333333333333")),
            ("ent-secret-of-webhook:------11111111-1111-4111-8111-111111111111", Some(first)),
        ]
    );
    let other = vault.read(&slots[1]).await.unwrap();
    assert!(other.pending.is_none() && other.previous.is_none());
}

/// SM-07: what was replaced is accepted for the grace that is set.
#[tokio::test]
async fn sm_07_the_grace_is_as_long_as_it_is_set() {
    let (_directory, path, clock, source) = scene();
    let file = SecretsFile::new(&path);
    file.add(stored("s1", "w1")).unwrap();
    let minute = Duration::from_mins(1);
    let vault = FileVault::new(file, minute);
    let slot = SlotId::parse("w1").unwrap();
    let version = VersionId::parse(&"v".repeat(32)).unwrap();
    let secret = Secret::new("s2").unwrap().with_webhook_id("w2").unwrap();
    let over = vault.read(&slot).await.unwrap().versions().next().unwrap().id.clone();
    vault.put_pending(&slot, &version, &secret).await.unwrap();
    vault.promote(&slot, &version, &over, clock.now()).await.unwrap();
    clock.advance(minute.saturating_sub(Duration::from_secs(1)));
    assert_eq!(texts(&source).await, ["s2", "s1"]);
    clock.advance(Duration::from_secs(1));
    assert_eq!(texts(&source).await, ["s2"]);
}

/// A vault waits for nobody in another process; its caller tries again.
#[tokio::test]
async fn a_vault_that_is_being_changed_is_unavailable() {
    let (directory, path, _clock, _source) = scene();
    let file = SecretsFile::new(&path);
    file.add(stored("s1", "w1")).unwrap();
    let lock = std::fs::File::create(directory.path().join("secrets.json.lock")).unwrap();
    lock.lock().unwrap();
    let vault = FileVault::new(file, Limits::default().previous_grace);
    let slot = SlotId::parse("w1").unwrap();
    let version = VersionId::parse(&"v".repeat(32)).unwrap();
    let secret = Secret::new("s2").unwrap().with_webhook_id("w2").unwrap();
    let error = vault.put_pending(&slot, &version, &secret).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(vault.read(&slot).await.is_ok());
    lock.unlock().unwrap();
    vault.put_pending(&slot, &version, &secret).await.unwrap();
}

#[test]
fn a_webhook_has_one_secret_per_stage() {
    let (_directory, path, _clock, _source) = scene();
    let file = SecretsFile::new(&path);
    file.add(stored("s1", "w1")).unwrap();
    let error = file.add(stored("s2", "w1")).unwrap_err();
    assert!(matches!(error, SecretsFileError::Present { .. }), "{error:?}");
    let mut pending = stored("s2", "w1");
    pending.secret = pending.secret.with_stage(Stage::Pending);
    file.add(pending).unwrap();
    assert_eq!(file.list().unwrap().len(), 2);
    assert_eq!(file.remove("w2").unwrap(), 0);
    assert_eq!(file.remove("w1").unwrap(), 2);
    assert!(file.list().unwrap().is_empty());
}

/// A webhook that moved is noted, and every secret of it stays, in its stage.
#[test]
fn a_moved_webhook_keeps_its_secrets() {
    let (_directory, path, _clock, _source) = scene();
    let file = SecretsFile::new(&path);
    file.add(stored("s1", "w1")).unwrap();
    let mut pending = stored("s2", "w1");
    pending.secret = pending.secret.with_stage(Stage::Pending);
    file.add(pending).unwrap();
    file.add(stored("other", "w2")).unwrap();
    file.follow("w1", "https://example.com/elsewhere").unwrap();
    file.follow("w9", "https://example.com/nowhere").unwrap();
    let listed = file.list().unwrap();
    let told: Vec<_> = listed
        .iter()
        .map(|stored| (stored.secret.expose(), stored.secret.stage(), stored.url.as_deref()))
        .collect();
    let (moved, there) = ("https://example.com/elsewhere", "https://example.com/hook");
    assert_eq!(
        told,
        [
            ("s1", Stage::Current, Some(moved)),
            ("s2", Stage::Pending, Some(moved)),
            ("other", Stage::Current, Some(there)),
        ]
    );
}

/// A file has the oldest version that can hold it, and one of a later version is refused.
#[test]
fn a_file_is_of_version_2_when_a_secret_was_rotated() {
    let (_directory, path, _clock, _source) = scene();
    let file = SecretsFile::new(&path);
    file.add(stored("s1", "w1")).unwrap();
    let text = || std::fs::read_to_string(&path).unwrap();
    assert!(text().contains("\"version\": 1,"), "{}", text());
    let rotated = StoredSecret { slot: Some("w1".to_owned()), ..stored("s2", "w2") };
    file.add(rotated).unwrap();
    assert!(text().contains("\"version\": 2,") && text().contains("\"slot\": \"w1\""));
    let listed = file.list().unwrap();
    assert_eq!((listed[0].slot.as_deref(), listed[1].slot.as_deref()), (None, Some("w1")));
    write(&path, text().replace("\"version\": 2", "\"version\": 3").as_bytes());
    let error = file.list().unwrap_err();
    assert!(error.to_string().contains("versions up to 2"), "{error}");
}

#[test]
fn what_cannot_be_kept_is_refused_and_changes_nothing() {
    let (directory, path, _clock, _source) = scene();
    let file = SecretsFile::new(&path);
    let mut nameless = stored("s", "w");
    nameless.secret = Secret::new("s").unwrap();
    assert!(matches!(file.add(nameless), Err(SecretsFileError::NoWebhook)));
    let mut endless = stored("s", "w");
    endless.secret = endless.secret.with_stage(Stage::Previous);
    assert!(matches!(file.add(endless), Err(SecretsFileError::Endless)));
    for number in 0..SECRETS_MAX {
        file.add(stored("s", &number.to_string())).unwrap();
    }
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(file.add(stored("s", "over")), Err(SecretsFileError::Full { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), before);

    let long = SecretsFile::new(&directory.path().join("long.json"));
    let text = "s".repeat(4_096);
    let full = (0..SECRETS_MAX)
        .map(|number| long.add(stored(&text, &number.to_string())))
        .find_map(Result::err);
    assert!(matches!(full, Some(SecretsFileError::Full { .. })), "{full:?}");
    assert_eq!(long.list().unwrap().len(), 15);

    write(&path, b"typed by hand");
    assert!(matches!(file.add(stored("s", "w")), Err(SecretsFileError::NotOurs { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"typed by hand");
}

#[test]
fn one_process_changes_the_file_at_a_time() {
    let (directory, path, _clock, _source) = scene();
    let lock = std::fs::File::create(directory.path().join("secrets.json.lock")).unwrap();
    lock.lock().unwrap();
    let file = SecretsFile::new(&path);
    assert!(matches!(file.add(stored("s", "w")), Err(SecretsFileError::Busy { .. })));
    lock.unlock().unwrap();
    std::fs::write(directory.path().join("secrets.json.partial"), "half").unwrap();
    file.add(stored("s", "w")).unwrap();
    assert_eq!(file.list().unwrap().len(), 1);
}
