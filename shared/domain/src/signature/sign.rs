//! Signing, for the simulator, for tests and for tools that replay a captured delivery.

use jiff::Timestamp;

use super::dimension::{Grammar, PrefixMatching, Source, TimestampUnit};
use super::scheme::{Content, HmacMode, Mode, Scheme};
use super::secret::Secret;
use super::{finish, keyed};

/// Why a body cannot be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// None of the scheme's key treatments applies to the secret.
    #[error("the signing secret does not fit the scheme's key treatment")]
    Key,
    /// The scheme signs an id, and the given one cannot be signed.
    #[error(
        "the scheme signs an id: give one of 1 to 256 visible ASCII characters without a full stop"
    )]
    Id,
}

/// Signs `body` and returns the headers to send, names in lower case.
///
/// Of what the scheme accepts, the first form is produced: first header, first encoding, first
/// key treatment that applies, no optional prefix. `body` is the signed form: for a scheme that
/// signs inflated bodies, the bytes before compression. `id` is used only if the scheme signs one.
///
/// # Errors
///
/// [`SignError`] if the secret or the id does not fit the scheme.
pub fn sign(
    scheme: &Scheme,
    secret: &Secret,
    body: &[u8],
    id: &str,
    now: Timestamp,
) -> Result<Vec<(String, String)>, SignError> {
    let name = scheme.headers.first().map(|name| name.as_str().to_owned()).unwrap_or_default();
    let Mode::Hmac(mode) = &scheme.mode else {
        return Ok(vec![(name, secret.expose().to_owned())]);
    };
    let mut headers = Vec::new();
    let mut pairs = Vec::new();
    let mut before_body = String::new();
    for (source, value) in signed_values(mode, id, now)? {
        before_body.push_str(&value);
        before_body.push('.');
        match source {
            Source::Headers(names) => {
                let name = names.first().map(|name| name.as_str().to_owned()).unwrap_or_default();
                headers.push((name, value));
            }
            Source::SignatureKey(key) => pairs.push(format!("{key}={value}")),
        }
    }
    let key = mode.keys.iter().find_map(|treatment| secret.key(treatment)).ok_or(SignError::Key)?;
    let state = keyed(&key).ok_or(SignError::Key)?;
    let digest = finish(state, before_body.as_bytes(), body);
    let text = mode.encodings.first().map(|encoding| encoding.encode(&digest)).unwrap_or_default();
    let value = match &mode.grammar {
        Grammar::Bare => text,
        Grammar::Prefixed(prefix) => match prefix.matching {
            PrefixMatching::Exact => format!("{}{text}", prefix.prefix),
            PrefixMatching::Lenient => text,
        },
        Grammar::KeyValue(list) => {
            pairs.push(format!("{}={text}", list.key));
            pairs.join(",")
        }
        Grammar::Versioned(list) => format!("{},{text}", list.version),
    };
    headers.push((name, value));
    Ok(headers)
}

/// The values that are signed before the body, in order.
fn signed_values<'m>(
    mode: &'m HmacMode,
    id: &str,
    now: Timestamp,
) -> Result<Vec<(&'m Source, String)>, SignError> {
    let (source, rule) = match &mode.content {
        Content::Body => return Ok(Vec::new()),
        Content::TimestampBody(rule) => (None, rule),
        Content::IdTimestampBody(source, rule) => (Some(source), rule),
    };
    let mut signed = Vec::new();
    if let Some(source) = source {
        let is_plain = id.bytes().all(|b| b.is_ascii_graphic() && b != b'.' && b != b',');
        if id.is_empty() || id.len() > super::header::SIGNED_VALUE_BYTES_MAX || !is_plain {
            return Err(SignError::Id);
        }
        signed.push((source, id.to_owned()));
    }
    let stamp = match rule.unit {
        TimestampUnit::Seconds => now.as_second().to_string(),
        TimestampUnit::Milliseconds => now.as_millisecond().to_string(),
        TimestampUnit::Iso8601 => now.to_string(),
    };
    signed.push((&rule.from, stamp));
    Ok(signed)
}
