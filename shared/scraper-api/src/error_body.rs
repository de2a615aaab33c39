//! The shapes in which the platform says what went wrong.
//!
//! Published are a flat object (A), `FastAPI`'s list of validation errors (B), an extraction error
//! (C) and nothing at all (D); a bare `detail` text (E) is `FastAPI`'s default. Unknown codes and
//! shapes are survived. A body that is none of them (a gateway's HTML, plain text) is not quoted.

use domain::job::JobError;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::Maybe;
use crate::config::ApiKey;

/// Longest code kept, in characters.
const CODE_CHARS_MAX: usize = 64;
/// Longest message kept, in characters.
const MESSAGE_CHARS_MAX: usize = 300;
/// Longest trace id kept, in characters.
const CORRELATION_ID_CHARS_MAX: usize = 128;
/// Validation errors that are put into one message.
const VALIDATION_ERRORS_MAX: usize = 5;
/// Parts of a validation error's place that are kept.
const PLACE_PARTS_MAX: usize = 8;

/// What an error body says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) retryable: Option<bool>,
    pub(crate) correlation_id: Option<String>,
}

#[derive(Default, Deserialize)]
struct ErrorObject {
    #[serde(default)]
    code: Maybe<String>,
    #[serde(default)]
    message: Maybe<String>,
    #[serde(default)]
    retryable: Maybe<bool>,
    #[serde(default)]
    correlation_id: Maybe<String>,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    error: Maybe<ErrorObject>,
    #[serde(default)]
    detail: Maybe<Box<RawValue>>,
    #[serde(default)]
    code: Maybe<String>,
    #[serde(default)]
    message: Maybe<String>,
    #[serde(default)]
    retryable: Maybe<bool>,
    #[serde(default)]
    correlation_id: Maybe<String>,
}

#[derive(Deserialize)]
struct ValidationError {
    #[serde(default)]
    loc: Maybe<Vec<Box<RawValue>>>,
    #[serde(default)]
    msg: Maybe<String>,
}

/// Reads an error body. `blot` removes what no error may hold before texts are cut, so that not
/// even a part of it is left.
pub(crate) fn parse(body: &str, blot: &dyn Fn(&str) -> String) -> Said {
    let Ok(body) = serde_json::from_str::<Body>(body) else {
        return Said::default();
    };
    let inner = body.error.0.unwrap_or_default();
    let message = inner.message.0.or(body.message.0).or_else(|| detail_message(body.detail.0));
    let kept = |text: Option<String>, chars_max| text.map(|text| clean(&blot(&text), chars_max));
    Said {
        code: kept(inner.code.0.or(body.code.0), CODE_CHARS_MAX),
        message: kept(message, MESSAGE_CHARS_MAX),
        retryable: inner.retryable.0.or(body.retryable.0),
        correlation_id: kept(
            inner.correlation_id.0.or(body.correlation_id.0),
            CORRELATION_ID_CHARS_MAX,
        ),
    }
}

/// The text of shape B or E; rejected values, which B may repeat, are left out.
fn detail_message(detail: Option<Box<RawValue>>) -> Option<String> {
    let detail = detail?;
    if let Ok(text) = serde_json::from_str::<String>(detail.get()) {
        return Some(text);
    }
    let errors = serde_json::from_str::<Vec<Maybe<ValidationError>>>(detail.get()).ok()?;
    let texts = errors.into_iter().filter_map(|error| {
        let error = error.0?;
        let places = error.loc.0.unwrap_or_default();
        let places =
            places.iter().take(PLACE_PARTS_MAX).map(|part| part.get().trim_matches('"').to_owned());
        let place = places.collect::<Vec<_>>().join(".");
        let message = error.msg.0.unwrap_or_default();
        Some(if place.is_empty() { message } else { format!("{place}: {message}") })
    });
    let text = texts.take(VALIDATION_ERRORS_MAX).collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then_some(text)
}

/// A job's error with both texts on one line.
pub(crate) fn job_error(key: &ApiKey, code: &str, message: &str, retryable: bool) -> JobError {
    // The key goes before the text is cut, so that no part of it is left at the cut.
    let kept = |text: &str, chars_max| clean(&key.blot(text), chars_max);
    JobError::new(&kept(code, CODE_CHARS_MAX), &kept(message, MESSAGE_CHARS_MAX), retryable)
}

/// The text on one line, cut between characters.
pub(crate) fn clean(text: &str, chars_max: usize) -> String {
    let shown = |character: char| if character.is_control() { ' ' } else { character };
    text.chars().take(chars_max).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str, message: &str, retryable: bool) -> Said {
        Said {
            code: Some(code.to_owned()),
            message: Some(message.to_owned()),
            retryable: Some(retryable),
            correlation_id: None,
        }
    }

    fn read(body: &str) -> Said {
        parse(body, &|text| text.to_owned())
    }

    /// WK-12: every published shape of an error body is read.
    #[test]
    fn published_shapes_are_read() {
        let flat = r#"{"code":"RATE_LIMITED","message":"slow down","retryable":true}"#;
        assert_eq!(read(flat), said("RATE_LIMITED", "slow down", true));

        let nested = r#"{"error":{"code":"NEW_CODE","message":"m","retryable":false,
            "correlation_id":"c-1","details":{"a":"b"}},"tokens_charged":0}"#;
        let expected =
            Said { correlation_id: Some("c-1".to_owned()), ..said("NEW_CODE", "m", false) };
        assert_eq!(read(nested), expected);

        let validation = r#"{"detail":[{"loc":["body","urls",0],"msg":"bad","type":"t","input":"x"},
            {"loc":[],"msg":"worse"}]}"#;
        assert_eq!(read(validation).message.as_deref(), Some("body.urls.0: bad; worse"));

        assert_eq!(read(r#"{"detail":"Not Found"}"#).message.as_deref(), Some("Not Found"));
    }

    /// WK-12, WK-16: nulls, wrong types, HTML and nothing at all are survived, and not quoted.
    #[test]
    fn other_bodies_say_nothing() {
        for body in [
            "",
            "null",
            "[]",
            "<html>secret</html>",
            "plain text",
            r#"{"error":null}"#,
            r#"{"error":"text"}"#,
            r#"{"code":7,"message":null,"retryable":"yes"}"#,
            r#"{"detail":7}"#,
            r#"{"detail":[]}"#,
            r#"{"code":"#,
        ] {
            assert_eq!(read(body), Said::default(), "{body}");
        }
        assert_eq!(read(r#"{"error":null,"code":"X"}"#).code.as_deref(), Some("X"));
    }

    #[test]
    fn texts_are_cut_between_characters_and_kept_on_one_line() {
        let body = format!(r#"{{"message":"a\n\u001b[31m{}"}}"#, "ä".repeat(400));
        let message = read(&body).message.unwrap();
        assert_eq!(message.chars().count(), 300);
        assert!(message.starts_with("a  [31mä"), "{message}");
    }
}
