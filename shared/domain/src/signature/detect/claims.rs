//! Digests that headers may carry, under every grammar and encoding.

use crate::signature::dimension::{
    Encoding, Grammar, HeaderName, KeyValue, Prefix, PrefixMatching, Versioned,
};
use crate::signature::header::{Digest, HEADER_BYTES_MAX, split_at_byte};

use super::Delivered;

/// Most digests that are looked at. A sender's own headers carry a few.
const CLAIMS_MAX: usize = 64;
/// Longest label before a digest, in bytes.
const LABEL_BYTES_MAX: usize = 64;
/// Encodings in the order in which they are tried; of two that read the same digest the first one
/// counts.
const ENCODINGS: [Encoding; 5] = [
    Encoding::Hex,
    Encoding::Base64,
    Encoding::Base64Unpadded,
    Encoding::Base64Url,
    Encoding::Base64UrlUnpadded,
];

/// A digest that a header may carry.
pub(super) struct Claim {
    pub(super) header: HeaderName,
    pub(super) grammar: Grammar,
    pub(super) encoding: Encoding,
    pub(super) digest: Digest,
}

/// Reads all digests that the headers may carry.
pub(super) fn claims(headers: &Delivered) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (name, value) in headers {
        let Ok(header) = HeaderName::parse(name) else { continue };
        let value = value.trim_ascii();
        if value.len() > HEADER_BYTES_MAX {
            continue;
        }
        for (grammar, encoding, digest) in read(value) {
            claims.push(Claim { header: header.clone(), grammar, encoding, digest });
        }
    }
    claims.truncate(CLAIMS_MAX);
    claims
}

type Read = (Grammar, Encoding, Digest);

/// The digests in one value.
fn read(value: &[u8]) -> Vec<Read> {
    let mut found = Vec::new();
    found.extend(decode(value).map(|(encoding, digest)| (Grammar::Bare, encoding, digest)));
    found.extend(labelled(value));
    found.extend(pairs(value));
    found.extend(versions(value));
    found
}

fn decode(text: &[u8]) -> Option<(Encoding, Digest)> {
    let fits = |encoding: &Encoding| encoding.text_bytes() == text.len();
    ENCODINGS.into_iter().filter(fits).find_map(|encoding| Some((encoding, encoding.decode(text)?)))
}

/// A label, then one digest to the end.
fn labelled(value: &[u8]) -> Option<Read> {
    let mut lengths: Vec<_> = ENCODINGS.iter().map(|encoding| encoding.text_bytes()).collect();
    lengths.dedup();
    lengths.into_iter().find_map(|length| {
        let at = value.len().checked_sub(length).filter(|at| *at > 0)?;
        let (label, rest) = value.split_at_checked(at)?;
        // A label that ends like a digest is the digest's own beginning.
        let is_border = label.last().is_some_and(|byte| !is_digest_byte(*byte));
        let label = std::str::from_utf8(label).ok()?.trim();
        let is_plain = label.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
        let is_label = is_border && is_plain && !label.is_empty() && label.len() <= LABEL_BYTES_MAX;
        let (encoding, digest) = decode(rest).filter(|_| is_label)?;
        let prefix = Prefix { prefix: label.to_owned(), matching: PrefixMatching::Exact };
        Some((Grammar::Prefixed(prefix), encoding, digest))
    })
}

fn is_digest_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// A list of pairs by comma, two at least: one alone is a label and a digest.
fn pairs(value: &[u8]) -> Vec<Read> {
    let pairs: Option<Vec<_>> =
        value.split(|byte| *byte == b',').map(|pair| split_at_byte(pair, b'=')).collect();
    let pairs = pairs.filter(|pairs| pairs.len() > 1).unwrap_or_default();
    named(&pairs, |key| Grammar::KeyValue(KeyValue { key }))
}

/// A list of versions by space.
fn versions(value: &[u8]) -> Vec<Read> {
    let entries: Option<Vec<_>> = value
        .split(|byte| *byte == b' ')
        .filter(|entry| !entry.is_empty())
        .map(|entry| split_at_byte(entry, b','))
        .collect();
    let entries = entries.unwrap_or_default();
    named(&entries, |version| Grammar::Versioned(Versioned { version }))
}

/// The digests of a list, each under its name.
fn named(entries: &[(&[u8], &[u8])], grammar: impl Fn(String) -> Grammar) -> Vec<Read> {
    let mut found = Vec::new();
    for (name, text) in entries {
        let is_plain = name.iter().all(|byte| byte.is_ascii_graphic() && !b",=".contains(byte));
        let Ok(name) = std::str::from_utf8(name) else { continue };
        if !is_plain || name.is_empty() || name.len() > LABEL_BYTES_MAX {
            continue;
        }
        if let Some((encoding, digest)) = decode(text) {
            found.push((grammar(name.to_owned()), encoding, digest));
        }
    }
    found
}
