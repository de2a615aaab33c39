//! [`domain::ports::SecretSource`].

use std::error::Error as _;
use std::sync::Arc;

use domain::ports::{ErrorKind, LoadedSecrets, PortError, SecretSource};
use domain::signature::secret::{SECRET_BYTES_MAX, Secret, Stage};
use futures_util::future::join_all;

use super::secrets_subject::{Absence, Kept, SecretsSubject};

/// Part of every text that must not be shown.
const HUSH: &str = "hushhush";

/// Texts that no place may take for a secret.
const UNREADABLE: [&str; 9] = [
    "",
    " \r\n\t",
    "whsec_",
    "null",
    "[\"hushhush\"]",
    "{hushhush",
    "{\"other\":\"hushhush\"}",
    "hushhush\nhushhush",
    "hushhush\u{0}",
];

/// A secret of a webhook of its own.
fn secret(text: &str, stage: Stage) -> Secret {
    let digits = text.bytes().take(16).map(|byte| format!("{byte:02x}"));
    let webhook_id = format!("webhook-{}", digits.collect::<String>());
    Secret::new(text).unwrap().with_stage(stage).with_webhook_id(&webhook_id).unwrap()
}

fn plain(text: &str) -> Secret {
    secret(text, Stage::Current)
}

/// Everything that a secret is, in the order in which secrets are tried.
fn told(mut secrets: Vec<Secret>) -> Vec<(Stage, String, Option<String>)> {
    secrets.sort_by_key(Secret::stage);
    let tell = |secret: Secret| {
        (secret.stage(), secret.expose().to_owned(), secret.webhook_id().map(str::to_owned))
    };
    secrets.into_iter().map(tell).collect()
}

fn texts(secrets: &[Secret]) -> Vec<&str> {
    secrets.iter().map(Secret::expose).collect()
}

fn keep(subject: &SecretsSubject, secrets: &[Secret]) -> Arc<dyn SecretSource> {
    (subject.keep)(Kept::Secrets(secrets)).expect("secrets can always be kept")
}

/// All that an error says, wherever it may be printed.
fn said(error: &PortError) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text} {error} {error:?} {error:#?}");
        cause = error.source();
    }
    text
}

/// All secrets come, of each stage, as they were kept.
pub async fn every_secret_comes_with_its_stage(subject: &SecretsSubject) {
    let stages: &[Stage] = if subject.caps.keeps_stages {
        &[Stage::Previous, Stage::Current, Stage::Pending]
    } else {
        &[Stage::Current]
    };
    for count in 1..=stages.len() {
        let numbered = stages.iter().take(count).zip(1..);
        let kept: Vec<_> =
            numbered.map(|(stage, number)| secret(&format!("secret-{number}"), *stage)).collect();
        let loaded = keep(subject, &kept).load().await.unwrap().secrets;
        assert_eq!(told(loaded), told(kept));
    }
}

/// Secrets that look like something else, and the longest one, come as they are.
pub async fn odd_secrets_come_as_they_are(subject: &SecretsSubject) {
    let longest = "s".repeat(SECRET_BYTES_MAX);
    for text in [
        "a",
        "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
        "{\"secret\":1}",
        "\"quoted\"",
        "null",
        "a b",
        "schl\u{fc}ssel \u{1f980}",
        "back\\slash",
        "a=b#c,d",
        &longest,
    ] {
        let loaded = keep(subject, &[plain(text)]).load().await.unwrap().secrets;
        assert_eq!(texts(&loaded), [text]);
    }
}

/// The next load sees what was changed meanwhile, without a restart.
pub async fn a_changed_secret_is_seen_by_the_next_load(subject: &SecretsSubject) {
    if !subject.caps.is_live {
        return;
    }
    let source = keep(subject, &[plain("first")]);
    assert_eq!(texts(&source.load().await.unwrap().secrets), ["first"]);
    for kept in [vec![plain("second")], vec![plain("third"), secret("fourth", Stage::Previous)]] {
        keep(subject, &kept);
        assert_eq!(told(source.load().await.unwrap().secrets), told(kept));
    }
    keep(subject, &[]);
    assert!(
        source.load().await.unwrap().secrets.is_empty(),
        "a retired secret must not stay in force"
    );
}

/// No secret is no secret: an empty list, or the error that the adapter documents.
pub async fn nothing_is_no_secret(subject: &SecretsSubject) {
    assert!(keep(subject, &[]).load().await.unwrap().secrets.is_empty());
    let Some(source) = (subject.keep)(Kept::Nothing) else { return };
    match (source.load().await, subject.caps.absence) {
        (Ok(loaded), Absence::Empty) => assert!(loaded.secrets.is_empty()),
        (Err(error), Absence::Error(kind)) => assert_eq!(error.kind, kind),
        (answer, absence) => panic!("{answer:?} instead of {absence:?}"),
    }
}

/// One secret that cannot be understood is told of and not shown, whether the load fails or the
/// others come.
pub async fn an_unreadable_secret_is_corrupt_and_not_shown(subject: &SecretsSubject) {
    let good = plain("good");
    let too_long = HUSH.repeat(SECRET_BYTES_MAX / HUSH.len() + 1);
    for text in UNREADABLE.into_iter().chain([too_long.as_str()]) {
        let Some(source) = (subject.keep)(Kept::Unreadable { beside: &good, text }) else { return };
        let error = match source.load().await {
            Ok(LoadedSecrets { secrets, unread }) => {
                assert_eq!(texts(&secrets), ["good"], "{text:?}");
                unread.expect("a secret that cannot be understood is told of")
            }
            Err(error) => error,
        };
        assert_eq!(error.kind, ErrorKind::Corrupt, "{text:?}");
        assert!(!error.is_transient());
        let said = said(&error);
        assert!(!said.contains(HUSH) && !said.contains("good"), "{said}");
    }
    let mended = keep(subject, std::slice::from_ref(&good)).load().await.unwrap().secrets;
    assert_eq!(texts(&mended), ["good"]);
}

/// A secret that may not be read is an operator's business, and not shown.
pub async fn a_locked_secret_is_denied(subject: &SecretsSubject) {
    let Some(source) = (subject.keep)(Kept::Locked(&plain(HUSH))) else { return };
    let error = source.load().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
    assert!(!said(&error).contains(HUSH));
    let opened = keep(subject, &[plain("good")]).load().await.unwrap().secrets;
    assert_eq!(texts(&opened), ["good"]);
}

/// Loading changes nothing.
pub async fn repeated_loads_are_alike(subject: &SecretsSubject) {
    let kept = [plain("first"), plain("second")];
    let source = keep(subject, &kept);
    for _ in 0..50 {
        assert_eq!(told(source.load().await.unwrap().secrets), told(kept.to_vec()));
    }
}

/// Many may load at a time.
pub async fn many_load_at_a_time(subject: &SecretsSubject) {
    let kept = [plain("first"), plain("second")];
    let source = keep(subject, &kept);
    for loaded in join_all((0..50).map(|_| source.load())).await {
        assert_eq!(told(loaded.unwrap().secrets), told(kept.to_vec()));
    }
}

/// Loads that overlap with a change see what was there before or what is there now.
pub async fn a_load_during_a_change_sees_one_of_both(subject: &SecretsSubject) {
    if !subject.caps.is_live {
        return;
    }
    let before = told(vec![plain("a-1"), plain("a-2")]);
    let source = keep(subject, &[plain("a-1"), plain("a-2")]);
    let after = [plain("b-1"), plain("b-2")];
    let loads = join_all((0..20).map(|number| {
        let (source, after) = (Arc::clone(&source), &after);
        async move {
            if number == 10 {
                keep(subject, after);
            }
            told(source.load().await.unwrap().secrets)
        }
    }));
    let after = told(after.to_vec());
    for loaded in loads.await {
        assert!(loaded == before || loaded == after, "a mixture");
    }
    assert!(told(source.load().await.unwrap().secrets) == after);
}

/// Neither the secrets nor what is said of them show their texts.
pub async fn loaded_secrets_are_not_shown(subject: &SecretsSubject) {
    let loaded = keep(subject, &[plain(HUSH)]).load().await.unwrap().secrets;
    assert_eq!(texts(&loaded), [HUSH]);
    let shown = format!("{loaded:?} {loaded:#?}");
    assert!(!shown.contains(HUSH), "{shown}");
}
