//! Reading signature headers: bytes in, candidate digests out, nothing hashed.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use jiff::Timestamp;

use super::Headers;
use super::dimension::{
    Encoding, Grammar, HeaderName, PrefixMatching, Source, TimestampRule, TimestampUnit,
};
use super::scheme::{Content, HmacMode, Scheme};
use super::verdict::Reason;

/// Longest header value looked at, in bytes: 8 KiB, what HTTP servers commonly allow for a line.
pub const HEADER_BYTES_MAX: usize = 8 * 1024;

/// Most signatures in one delivery. Senders put two or three while they roll a secret.
pub const SIGNATURES_MAX: usize = 8;

/// Longest signed id or timestamp, in bytes.
pub(super) const SIGNED_VALUE_BYTES_MAX: usize = 256;

/// Longest timestamp of digits: milliseconds reach 15 digits in the year 33658.
const TIMESTAMP_DIGITS_MAX: usize = 15;

/// Bytes of an HMAC-SHA256.
pub(super) const DIGEST_BYTES: usize = 32;

/// A digest as sent.
pub(super) type Digest = [u8; DIGEST_BYTES];

/// What the headers of a delivery say.
#[derive(Debug)]
pub(super) struct Claimed {
    /// One to eight digests, any of which may match.
    pub(super) digests: Vec<Digest>,
    /// The signed bytes that come before the body.
    pub(super) before_body: Vec<u8>,
}

/// The values of the scheme's signature headers, trimmed and bounded.
pub(super) fn signature_values<'h>(
    scheme: &Scheme,
    headers: &'h dyn Headers,
) -> Result<Vec<&'h [u8]>, Reason> {
    let mut values = Vec::new();
    for name in &scheme.headers {
        for value in headers.values(name.as_str()) {
            if value.len() > HEADER_BYTES_MAX {
                return Err(Reason::HeaderTooLong);
            }
            if values.len() == SIGNATURES_MAX {
                return Err(Reason::TooManySignatures);
            }
            values.push(value.trim_ascii());
        }
    }
    if values.is_empty() { Err(Reason::Missing) } else { Ok(values) }
}

/// Reads everything that an HMAC scheme needs from the headers.
pub(super) fn read(
    scheme: &Scheme,
    mode: &HmacMode,
    headers: &dyn Headers,
    now: Timestamp,
) -> Result<Claimed, Reason> {
    let values = signature_values(scheme, headers)?;
    let mut digests = Vec::new();
    // The first thing that was wrong is reported if nothing was right.
    let mut fault = None;
    for value in &values {
        for digest in signatures(&mode.grammar, value, &mode.encodings) {
            match digest {
                Ok(_) if digests.len() == SIGNATURES_MAX => {
                    return Err(Reason::TooManySignatures);
                }
                Ok(digest) => digests.push(digest),
                Err(reason @ Reason::TooManySignatures) => return Err(reason),
                Err(reason) => fault = fault.or(Some(reason)),
            }
        }
    }
    if digests.is_empty() {
        return Err(fault.unwrap_or(Reason::Missing));
    }
    let before_body = before_body(mode, &values, headers, now)?;
    Ok(Claimed { digests, before_body })
}

/// The id and timestamp as they are signed, once they passed their own checks.
fn before_body(
    mode: &HmacMode,
    values: &[&[u8]],
    headers: &dyn Headers,
    now: Timestamp,
) -> Result<Vec<u8>, Reason> {
    let (id, rule) = match &mode.content {
        Content::Body => return Ok(Vec::new()),
        Content::TimestampBody(rule) => (None, rule),
        Content::IdTimestampBody(source, rule) => (Some(source), rule),
    };
    let mut signed = Vec::new();
    if let Some(source) = id {
        let id = signed_value(source, values, headers, Reason::IdMissing, Reason::IdMalformed)?;
        // With a full stop inside, the borders between id, timestamp and body could be moved.
        if !id.bytes().all(|b| b.is_ascii_graphic() && b != b'.') {
            return Err(Reason::IdMalformed);
        }
        signed.extend_from_slice(id.as_bytes());
        signed.push(b'.');
    }
    let timestamp = signed_value(
        &rule.from,
        values,
        headers,
        Reason::TimestampMissing,
        Reason::TimestampMalformed,
    )?;
    check_timestamp(timestamp, rule, now)?;
    signed.extend_from_slice(timestamp.as_bytes());
    signed.push(b'.');
    Ok(signed)
}

fn signed_value<'h>(
    source: &Source,
    values: &[&'h [u8]],
    headers: &'h dyn Headers,
    missing: Reason,
    malformed: Reason,
) -> Result<&'h str, Reason> {
    let found: Vec<&[u8]> = match source {
        Source::Headers(names) => first_present(names, headers),
        Source::SignatureKey(key) => values
            .iter()
            .flat_map(|value| value.split(|b| *b == b','))
            .filter_map(split_pair)
            .filter(|(name, _)| *name == key.as_bytes())
            .map(|(_, value)| value)
            .collect(),
    };
    let value = match found.as_slice() {
        [] => return Err(missing),
        [value] => value.trim_ascii(),
        // Which of two values was signed is the sender's guess against ours.
        _ => return Err(malformed),
    };
    if value.is_empty() {
        return Err(missing);
    }
    if value.len() > SIGNED_VALUE_BYTES_MAX {
        return Err(malformed);
    }
    std::str::from_utf8(value).map_err(|_| malformed)
}

fn first_present<'h>(names: &[HeaderName], headers: &'h dyn Headers) -> Vec<&'h [u8]> {
    names
        .iter()
        .map(|name| headers.values(name.as_str()))
        .find(|values| !values.is_empty())
        .unwrap_or_default()
}

/// Checks both directions of the window, in the timestamp's own unit.
fn check_timestamp(text: &str, rule: &TimestampRule, now: Timestamp) -> Result<(), Reason> {
    let tolerance = i128::from(rule.tolerance_secs);
    let (stamp, now, tolerance) = match rule.unit {
        TimestampUnit::Seconds => (digits(text)?, i128::from(now.as_second()), tolerance),
        TimestampUnit::Milliseconds => {
            (digits(text)?, i128::from(now.as_millisecond()), tolerance * 1000)
        }
        TimestampUnit::Iso8601 => {
            let stamp: Timestamp = text.parse().map_err(|_| Reason::TimestampMalformed)?;
            let stamp = i128::from(stamp.as_millisecond());
            (stamp, i128::from(now.as_millisecond()), tolerance * 1000)
        }
    };
    if stamp < now - tolerance {
        return Err(Reason::Stale);
    }
    if stamp > now + tolerance {
        return Err(Reason::Future);
    }
    Ok(())
}

/// A canonical non-negative integer: no sign, no leading zero, nothing after it.
fn digits(text: &str) -> Result<i128, Reason> {
    let is_canonical = text.bytes().all(|b| b.is_ascii_digit())
        && text.len() <= TIMESTAMP_DIGITS_MAX
        && (text == "0" || !text.starts_with('0'));
    if !is_canonical {
        return Err(Reason::TimestampMalformed);
    }
    text.parse().map_err(|_| Reason::TimestampMalformed)
}

/// The signatures in one header value, each decoded or with what is wrong about it.
fn signatures(
    grammar: &Grammar,
    value: &[u8],
    encodings: &[Encoding],
) -> Vec<Result<Digest, Reason>> {
    if value.is_empty() {
        return vec![Err(Reason::EmptyDigest)];
    }
    match grammar {
        Grammar::Bare => vec![unlabelled(value, encodings)],
        Grammar::Prefixed(prefix) => {
            vec![prefixed(prefix.prefix.as_bytes(), prefix.matching, value, encodings)]
        }
        Grammar::KeyValue(list) => {
            let pairs = value.split(|b| *b == b',').map(split_pair);
            labelled_list(pairs, list.key.as_bytes(), encodings)
        }
        Grammar::Versioned(list) => {
            let entries = value
                .split(|b| *b == b' ')
                .filter(|entry| !entry.is_empty())
                .map(|entry| split_at_byte(entry, b','));
            labelled_list(entries, list.version.as_bytes(), encodings)
        }
    }
}

/// Entries under `label` are signatures, others are ignored; one without a label spoils the value.
fn labelled_list<'v>(
    entries: impl Iterator<Item = Option<(&'v [u8], &'v [u8])>>,
    label: &[u8],
    encodings: &[Encoding],
) -> Vec<Result<Digest, Reason>> {
    let mut found = Vec::new();
    for entry in entries {
        let Some((name, digest)) = entry else {
            return vec![Err(Reason::Malformed)];
        };
        if name != label {
            continue;
        }
        if found.len() == SIGNATURES_MAX {
            return vec![Err(Reason::TooManySignatures)];
        }
        found.push(decode(digest, encodings));
    }
    if found.is_empty() {
        found.push(Err(Reason::WrongAlgorithm));
    }
    found
}

fn prefixed(
    prefix: &[u8],
    matching: PrefixMatching,
    value: &[u8],
    encodings: &[Encoding],
) -> Result<Digest, Reason> {
    if let Some((head, rest)) = value.split_at_checked(prefix.len()) {
        let is_prefix = match matching {
            PrefixMatching::Exact => head == prefix,
            PrefixMatching::Lenient => head.eq_ignore_ascii_case(prefix),
        };
        if is_prefix {
            return decode(rest.trim_ascii(), encodings);
        }
    }
    match (matching, unlabelled(value, encodings)) {
        (PrefixMatching::Lenient, outcome) | (_, outcome @ Err(Reason::WrongAlgorithm)) => outcome,
        (PrefixMatching::Exact, _) => Err(Reason::Malformed),
    }
}

/// A digest without a label; what looks like a label is reported as such.
fn unlabelled(value: &[u8], encodings: &[Encoding]) -> Result<Digest, Reason> {
    let has_label = split_pair(value).is_some_and(|(_, rest)| rest.iter().any(|b| *b != b'='));
    if has_label {
        return Err(Reason::WrongAlgorithm);
    }
    decode(value, encodings)
}

fn split_pair(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    split_at_byte(pair, b'=')
}

pub(super) fn split_at_byte(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|b| *b == separator)?;
    let (name, rest) = text.split_at_checked(at)?;
    Some((name.trim_ascii(), rest.get(1..)?.trim_ascii()))
}

fn decode(text: &[u8], encodings: &[Encoding]) -> Result<Digest, Reason> {
    if text.is_empty() {
        return Err(Reason::EmptyDigest);
    }
    if !text.is_ascii() {
        return Err(Reason::Malformed);
    }
    let mut reason = Reason::WrongLength;
    for encoding in encodings.iter().filter(|encoding| encoding.text_bytes() == text.len()) {
        match encoding.decode(text) {
            Some(digest) => return Ok(digest),
            None => reason = Reason::Malformed,
        }
    }
    Err(reason)
}

impl Encoding {
    pub(super) fn text_bytes(self) -> usize {
        match self {
            Self::Hex => 2 * DIGEST_BYTES,
            Self::Base64 | Self::Base64Url => 44,
            Self::Base64Unpadded | Self::Base64UrlUnpadded => 43,
        }
    }

    /// Decodes canonical text only: right padding, no stray bits.
    pub(super) fn decode(self, text: &[u8]) -> Option<Digest> {
        let decoded = match self {
            Self::Hex => hex::decode(text).ok(),
            Self::Base64 => STANDARD.decode(text).ok(),
            Self::Base64Unpadded => STANDARD_NO_PAD.decode(text).ok(),
            Self::Base64Url => URL_SAFE.decode(text).ok(),
            Self::Base64UrlUnpadded => URL_SAFE_NO_PAD.decode(text).ok(),
        };
        decoded?.try_into().ok()
    }

    /// Writes a digest.
    pub(super) fn encode(self, digest: &Digest) -> String {
        match self {
            Self::Hex => hex::encode(digest),
            Self::Base64 => STANDARD.encode(digest),
            Self::Base64Unpadded => STANDARD_NO_PAD.encode(digest),
            Self::Base64Url => URL_SAFE.encode(digest),
            Self::Base64UrlUnpadded => URL_SAFE_NO_PAD.encode(digest),
        }
    }
}
