//! One pass over a body that keeps only what the pointers lead to.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::pointer::PointerList;
use super::{EnvelopeError, JSON_DEPTH_MAX};

/// Longest text that is decoded, in bytes of JSON. Ids have 128 bytes at most, each of which may
/// be written as a six byte escape; anything longer is reported by its length.
const TEXT_BYTES_MAX: usize = 6 * 256;

/// Fields of an envelope.
const FIELDS: usize = 4;

/// What a pointer leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Text(String),
    /// A text too long to be any id; its length as written, escapes not undone.
    LongText {
        bytes: usize,
    },
    /// Not a text, or a text that is no valid Unicode.
    Other,
}

/// A pointer that is followed: its place in the findings and the keys that are still to come.
#[derive(Clone, Copy)]
struct Path<'p> {
    slot: usize,
    keys: &'p [String],
}

/// What was found so far.
struct Findings {
    found: RefCell<Vec<Option<Found>>>,
    fault: Cell<Option<EnvelopeError>>,
}

/// For each field, what its first pointer that leads anywhere leads to.
pub(super) fn scan(
    fields: [&PointerList; FIELDS],
    body: &[u8],
) -> Result<[Option<Found>; FIELDS], EnvelopeError> {
    let text = std::str::from_utf8(body).map_err(|_| EnvelopeError::NotUtf8)?;
    check_depth(body)?;
    if body.trim_ascii().is_empty() {
        return Err(EnvelopeError::Empty);
    }
    let paths: Vec<Path<'_>> = fields
        .iter()
        .flat_map(|list| list.pointers())
        .enumerate()
        .map(|(slot, pointer)| Path { slot, keys: pointer.keys() })
        .collect();
    let findings =
        Findings { found: RefCell::new(vec![None; paths.len()]), fault: Cell::new(None) };
    let mut json = serde_json::Deserializer::from_str(text);
    let outcome = json
        .deserialize_map(Level { paths: &paths, findings: &findings })
        .and_then(|()| json.end());
    if let Err(error) = outcome {
        // The root is the only value whose type can be wrong.
        let other = if error.is_data() { EnvelopeError::NotObject } else { EnvelopeError::NotJson };
        return Err(findings.fault.get().unwrap_or(other));
    }
    let mut found = findings.found.into_inner().into_iter();
    Ok(fields.map(|list| found.by_ref().take(list.pointers().len()).fold(None, Option::or)))
}

/// Counts brackets outside strings, so that nesting is bounded in ignored fields too: the parser
/// skips those without any limit of its own. Exact for JSON; for anything else the parser refuses
/// whatever passes here.
fn check_depth(body: &[u8]) -> Result<(), EnvelopeError> {
    let mut depth = 0_usize;
    let mut bytes = body.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' | b'[' => {
                depth += 1;
                if depth > JSON_DEPTH_MAX {
                    return Err(EnvelopeError::TooDeep);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.find(|byte| matches!(byte, b'"' | b'\\')) {
        if *byte == b'"' {
            return;
        }
        bytes.next();
    }
}

/// Visits one object that pointers lead through.
#[derive(Clone, Copy)]
struct Level<'p> {
    paths: &'p [Path<'p>],
    findings: &'p Findings,
}

impl Level<'_> {
    /// Reads a value that is known to be sound JSON.
    fn read(self, json: &str) -> serde_json::Result<()> {
        match json.as_bytes().first() {
            Some(b'"') => {
                self.record(&text(json));
                Ok(())
            }
            Some(b'{') if self.paths.iter().any(|path| !path.keys.is_empty()) => {
                self.record(&Found::Other);
                serde_json::Deserializer::from_str(json).deserialize_map(self)
            }
            _ => {
                self.record(&Found::Other);
                Ok(())
            }
        }
    }

    /// Records what the pointers that end here lead to.
    fn record(self, value: &Found) {
        let mut found = self.findings.found.borrow_mut();
        for path in self.paths.iter().filter(|path| path.keys.is_empty()) {
            if let Some(slot) = found.get_mut(path.slot) {
                *slot = Some(value.clone());
            }
        }
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen: Vec<&str> = Vec::new();
        while let Some(followed) = map.next_key_seed(Key { paths: self.paths })? {
            let Some(key) = followed else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.contains(&key) {
                self.findings.fault.set(Some(EnvelopeError::DuplicateKey));
                return Err(A::Error::custom("duplicate key"));
            }
            seen.push(key);
            let next: Vec<Path<'_>> = self
                .paths
                .iter()
                .filter_map(|path| {
                    let (first, keys) = path.keys.split_first()?;
                    (first == key).then_some(Path { slot: path.slot, keys })
                })
                .collect();
            let value: &'de RawValue = map.next_value()?;
            let level = Level { paths: &next, findings: self.findings };
            if level.read(value.get()).is_err() {
                // An inner duplicate has set its own fault; all else is a key that is no Unicode.
                let fault = self.findings.fault.take().unwrap_or(EnvelopeError::NotJson);
                self.findings.fault.set(Some(fault));
                return Err(A::Error::custom("unusable object"));
            }
        }
        Ok(())
    }
}

/// Compares a key, escapes undone, with the next keys of the pointers; keeps none of its text.
struct Key<'p> {
    paths: &'p [Path<'p>],
}

impl<'de, 'p> DeserializeSeed<'de> for Key<'p> {
    type Value = Option<&'p str>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'p> Visitor<'_> for Key<'p> {
    type Value = Option<&'p str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self
            .paths
            .iter()
            .filter_map(|path| path.keys.first())
            .find(|key| *key == text)
            .map(String::as_str))
    }
}

fn text(json: &str) -> Found {
    if json.len() > TEXT_BYTES_MAX {
        return Found::LongText { bytes: json.len().saturating_sub(2) };
    }
    // The only fault left in sound JSON is an escape that is no Unicode.
    serde_json::from_str(json).map_or(Found::Other, Found::Text)
}
