//! A delivery without what it says: its shape, its kinds of value, and nothing of anybody's.

use std::collections::BTreeMap;

use domain::time::parse_lenient;
use serde_json::{Map, Number, Value};

/// What stands for a text.
const TEXT: &str = "redacted";
/// Items kept of a list.
const ITEMS_MAX: usize = 3;
/// Longest key and word that are kept, in bytes.
const WORD_BYTES_MAX: usize = 64;
/// Keys whose words say what kind of thing it is, and nothing of it.
const KINDS: [&str; 7] = ["code", "error_code", "event", "event_type", "kind", "status", "type"];

/// Redacts the parts of one delivery, so that an id that occurs twice stays one id.
#[derive(Default)]
pub(super) struct Redaction {
    ids: BTreeMap<String, String>,
    keys: BTreeMap<String, String>,
}

impl Redaction {
    /// A body of the same shape. What is no JSON becomes one word.
    pub(super) fn body(&mut self, body: &[u8]) -> Vec<u8> {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => self.value(None, value).to_string().into_bytes(),
            Err(_) if body.is_empty() => Vec::new(),
            Err(_) => TEXT.as_bytes().to_vec(),
        }
    }

    /// A header's value of the same shape. Only what is the sender's name for itself or for the
    /// event, a time or an id is more than one word.
    pub(super) fn header(&mut self, name: &str, value: &str) -> String {
        let name = name.to_ascii_lowercase();
        let is_kind = ["event", "topic", "type"].iter().any(|kind| name.ends_with(kind));
        let is_kept = (is_kind && is_word(value))
            || (name == "user-agent" && is_agent(value))
            || is_time(value)
            || is_number_of_time(value);
        if is_kept { Some(value.to_owned()) } else { self.id(value) }
            .unwrap_or_else(|| TEXT.to_owned())
    }

    fn value(&mut self, key: Option<&str>, value: Value) -> Value {
        match value {
            Value::Object(map) => {
                let redacted = map.into_iter().map(|(key, value)| {
                    let value = self.value(Some(&key), value);
                    (self.key(&key), value)
                });
                Value::Object(redacted.collect::<Map<_, _>>())
            }
            Value::Array(items) => {
                let kept = items.into_iter().take(ITEMS_MAX);
                Value::Array(kept.map(|item| self.value(key, item)).collect())
            }
            Value::String(text) => Value::String(self.text(key, &text)),
            Value::Number(number) if number.is_f64() => {
                Number::from_f64(0.5).map_or(Value::Null, Value::Number)
            }
            Value::Number(_) => Value::Number(0.into()),
            kept @ (Value::Null | Value::Bool(_)) => kept,
        }
    }

    fn text(&mut self, key: Option<&str>, text: &str) -> String {
        let is_kind = key.is_some_and(|key| KINDS.contains(&key)) && is_word(text);
        if is_kind || is_time(text) || text.is_empty() {
            return text.to_owned();
        }
        self.id(text).unwrap_or_else(|| TEXT.to_owned())
    }

    /// The id that stands for an id, if it is one.
    fn id(&mut self, text: &str) -> Option<String> {
        let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
        let mut bytes = text.bytes().enumerate();
        let is_uuid = text.len() == 36
            && bytes.all(|(at, b)| if is_hyphen(at) { b == b'-' } else { b.is_ascii_hexdigit() });
        if !is_uuid {
            return None;
        }
        let number = self.ids.len().saturating_add(1);
        let stand_in = || format!("00000000-0000-4000-8000-{number:012}");
        Some(self.ids.entry(text.to_ascii_lowercase()).or_insert_with(stand_in).clone())
    }

    /// A key that says what it is of is kept; one that may be somebody's is not.
    fn key(&mut self, key: &str) -> String {
        if is_word(key) {
            return key.to_owned();
        }
        let number = self.keys.len().saturating_add(1);
        self.keys.entry(key.to_owned()).or_insert_with(|| format!("key-{number}")).clone()
    }
}

/// A short word of letters, as programs name things.
fn is_word(text: &str) -> bool {
    let is_of_word = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
    !text.is_empty() && text.len() <= WORD_BYTES_MAX && text.bytes().all(is_of_word)
}

fn is_time(text: &str) -> bool {
    let is_of_time = |byte: u8| byte.is_ascii_digit() || b"-:.TZtz+ ".contains(&byte);
    text.bytes().all(is_of_time) && text.contains(':') && parse_lenient(text).is_some()
}

/// Seconds or milliseconds of the epoch, in these decades.
fn is_number_of_time(text: &str) -> bool {
    matches!(text.len(), 10 | 13) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A program and its version.
fn is_agent(text: &str) -> bool {
    text.split_once('/').is_some_and(|(name, version)| {
        is_word(name) && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

#[cfg(test)]
mod tests;
