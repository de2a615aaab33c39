//! Stored secrets.

use super::*;
use crate::signature::secret::{SECRET_BYTES_MAX, SecretError, Stage};

/// SM-04: plain text vs JSON vs binary.
#[test]
fn stored_secrets_are_read_by_the_documented_rule() {
    for text in [
        "test-secret-1",
        "test-secret-1\n",
        r#""test-secret-1""#,
        r#"{"secret":"test-secret-1"}"#,
        " {\"secret\" : \"test-secret-1\\n\", \"webhook_id\": null}\n",
    ] {
        let secret = Secret::parse_stored(text).unwrap();
        assert_eq!(secret.expose(), SECRET, "{text}");
        assert_eq!(secret.webhook_id(), None);
        assert_eq!((secret.stage(), secret.label()), (Stage::Current, "current"));
    }
    let with_id = Secret::parse_stored(r#"{"secret":"s","webhook_id":"w-1"}"#).unwrap();
    assert_eq!(with_id.webhook_id(), Some("w-1"));
}

/// SM-04: anything ambiguous fails closed.
#[test]
fn ambiguous_stored_secrets_are_refused_without_showing_the_value() {
    for text in [
        r#"{"other":"marker"}"#,
        r#"{"secret":"marker","other":"marker"}"#,
        r#"{"secret":"marker","secret":"marker2"}"#,
        r#"{"secret":7}"#,
        r#"{"secret":null}"#,
        r#"{"SECRET":"marker"}"#,
        "{marker",
        "{}",
        r#""marker"#,
        r#""marker" "marker""#,
        r#"["marker"]"#,
        "null",
        "true",
        "false",
    ] {
        let error = Secret::parse_stored(text).unwrap_err();
        assert_eq!(error, SecretError::Ambiguous, "{text}");
        assert!(!format!("{error} {error:?}").contains("marker"));
    }
}

/// SG-07: a secret with an inner line break is two secrets or a damaged one.
#[test]
fn damaged_secrets_are_refused() {
    for text in ["a\nb", "a\0b", "\u{feff}test-secret-1", "a\u{1b}b"] {
        assert_eq!(Secret::new(text).unwrap_err(), SecretError::Control, "{text:?}");
    }
    let longest = "s".repeat(SECRET_BYTES_MAX);
    assert!(Secret::new(&format!("{longest}\n")).is_ok());
    assert_eq!(Secret::new(&format!("{longest}s")).unwrap_err(), SecretError::TooLong);
}

#[test]
fn labels_must_be_fit_for_a_log_line() {
    for label in ["", " ", "a\nb", "caf\u{e9}"] {
        assert_eq!(secret(SECRET).with_label(label).unwrap_err(), SecretError::Label);
        assert_eq!(secret(SECRET).with_webhook_id(label).unwrap_err(), SecretError::Label);
    }
    assert_eq!(secret(SECRET).with_label(&"l".repeat(129)).unwrap_err(), SecretError::Label);
    assert_eq!(secret(SECRET).with_stage(Stage::Pending).label(), "pending");
}

#[test]
fn secrets_compare_by_their_normalised_text() {
    assert!(secret("a\n").same_text(&secret(" a").with_stage(Stage::Previous)));
    assert!(!secret("a").same_text(&secret("b")));
    assert!(!secret("a").same_text(&secret("ab")));
}

/// OB-01: secrets in logs.
#[test]
fn debug_output_of_a_secret_shows_no_text() {
    let shown = format!("{:?}", secret("marker-text").with_webhook_id("w-1").unwrap());
    assert_eq!(
        shown,
        r#"Secret { stage: Current, label: "current", webhook_id: Some("w-1"), .. }"#
    );
}
