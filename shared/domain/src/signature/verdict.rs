//! What verification concludes, and what may be said about it in a log.

use std::borrow::Cow;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::Headers;
use super::secret::Stage;

/// Hexadecimal digits of a body's SHA-256 shown in diagnostics: enough to match two log lines.
const BODY_HASH_DIGITS: usize = 12;

/// Longest content type or coding copied into diagnostics, in bytes.
const SHOWN_BYTES_MAX: usize = 64;

/// The outcome of verifying one delivery.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<'b> {
    /// Genuine: signed with one of the secrets.
    Verified(Verified<'b>),
    /// Not genuine, or not usable; final for this delivery.
    Rejected(Reason),
    /// Nothing can be concluded until an operator repairs the secrets: to be answered as
    /// "try again later", never as a refusal, never as accepted.
    Unconfigured(Unconfigured),
}

/// A genuine delivery.
#[derive(PartialEq, Eq)]
pub struct Verified<'b> {
    /// Label of the secret that matched.
    pub label: String,
    /// Stage of the secret that matched.
    pub stage: Stage,
    /// Webhook that the matching secret belongs to, if the secret says so.
    pub webhook_id: Option<String>,
    /// The content to parse: the verified bytes, or what they inflate to.
    pub body: Cow<'b, [u8]>,
}

impl std::fmt::Debug for Verified<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verified")
            .field("label", &self.label)
            .field("stage", &self.stage)
            .field("webhook_id", &self.webhook_id)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// Why no verdict is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unconfigured {
    /// There is no secret at all.
    #[error("no signing secret is configured")]
    NoSecret,
    /// More secrets than one receiver may try.
    #[error("more than 30 signing secrets are configured; remove retired ones")]
    TooManySecrets,
    /// A secret cannot be read, or makes no key under the scheme, and no other secret matched.
    #[error(
        "a signing secret cannot be read or does not fit the scheme's key treatment; store it as the sender shows it"
    )]
    UnusableSecret,
}

impl Unconfigured {
    /// The stable code for logs and metrics.
    pub fn code(self) -> &'static str {
        match self {
            Self::NoSecret => "no_secret",
            Self::TooManySecrets => "too_many_secrets",
            Self::UnusableSecret => "unusable_secret",
        }
    }
}

/// Why a delivery was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No signature header.
    Missing,
    /// A signature header that the grammar does not allow, or digits outside the encoding.
    Malformed,
    /// A label or version that the scheme does not accept, such as `sha1=`.
    WrongAlgorithm,
    /// A label or key with nothing after it, or an empty header.
    EmptyDigest,
    /// A digest of a length that no accepted encoding has.
    WrongLength,
    /// A header value over the limit.
    HeaderTooLong,
    /// More signatures than the limit.
    TooManySignatures,
    /// The signed id is absent.
    IdMissing,
    /// The signed id is repeated, too long or of odd characters.
    IdMalformed,
    /// The signed timestamp is absent.
    TimestampMissing,
    /// The signed timestamp is repeated or no timestamp of the configured unit.
    TimestampMalformed,
    /// The signed timestamp is older than the tolerance.
    Stale,
    /// The signed timestamp is later than the tolerance.
    Future,
    /// Well-formed, and signed with none of the secrets.
    Mismatch,
    /// A content coding other than gzip and identity.
    UnsupportedCoding,
    /// Bytes that are not what the content coding says.
    MalformedCoding,
    /// Inflates beyond the size or ratio cap.
    BodyTooLarge,
}

/// The class of answer that a rejection calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// HTTP 401.
    Unauthorized,
    /// HTTP 415.
    UnsupportedCoding,
    /// HTTP 413.
    TooLarge,
    /// HTTP 400.
    Unusable,
}

impl Reason {
    /// The stable code for logs and metrics.
    pub fn code(self) -> &'static str {
        match self {
            Self::Missing => "signature_missing",
            Self::Malformed => "signature_malformed",
            Self::WrongAlgorithm => "signature_wrong_algorithm",
            Self::EmptyDigest => "signature_empty_digest",
            Self::WrongLength => "signature_wrong_length",
            Self::HeaderTooLong => "signature_header_too_long",
            Self::TooManySignatures => "too_many_signatures",
            Self::IdMissing => "signed_id_missing",
            Self::IdMalformed => "signed_id_malformed",
            Self::TimestampMissing => "timestamp_missing",
            Self::TimestampMalformed => "timestamp_malformed",
            Self::Stale => "timestamp_stale",
            Self::Future => "timestamp_future",
            Self::Mismatch => "signature_mismatch",
            Self::UnsupportedCoding => "unsupported_coding",
            Self::MalformedCoding => "malformed_coding",
            Self::BodyTooLarge => "inflated_body_too_large",
        }
    }

    /// The class of answer.
    pub fn answer(self) -> Answer {
        match self {
            Self::UnsupportedCoding => Answer::UnsupportedCoding,
            Self::MalformedCoding => Answer::Unusable,
            Self::BodyTooLarge => Answer::TooLarge,
            _ => Answer::Unauthorized,
        }
    }

    /// Whether the same delivery might verify under a newer secret, so that re-reading the
    /// secrets is worth its price.
    pub fn may_be_new_secret(self) -> bool {
        self == Self::Mismatch
    }
}

/// What may be logged about a delivery: shapes and fingerprints, no values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    /// Code of the reason.
    pub code: &'static str,
    /// Length of each signature header value, in bytes; at most eight are listed.
    pub signature_bytes: Vec<usize>,
    /// Length of the body as received, in bytes.
    pub body_bytes: usize,
    /// First digits of the SHA-256 of the body as received.
    pub body_hash: String,
    /// The declared content type without parameters, if it is a plain token.
    pub content_type: Option<String>,
    /// Whether a content coding other than identity is declared.
    pub encoded: bool,
    /// Labels of the secrets that were tried.
    pub key_labels: Vec<String>,
}

impl Diagnostics {
    pub(super) fn new(
        code: &'static str,
        signature_bytes: Vec<usize>,
        headers: &dyn Headers,
        raw_body: &[u8],
        key_labels: Vec<String>,
    ) -> Self {
        let encoded = headers
            .values("content-encoding")
            .iter()
            .any(|value| !value.trim_ascii().eq_ignore_ascii_case(b"identity"));
        Self {
            code,
            signature_bytes,
            body_bytes: raw_body.len(),
            body_hash: short_hash(raw_body),
            content_type: content_type(headers),
            encoded,
            key_labels,
        }
    }
}

fn content_type(headers: &dyn Headers) -> Option<String> {
    let values = headers.values("content-type");
    let essence = values.first()?.split(|b| *b == b';').next()?.trim_ascii();
    let is_plain =
        essence.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'+' | b'-' | b'.'));
    if !is_plain || essence.is_empty() || essence.len() > SHOWN_BYTES_MAX {
        return None;
    }
    String::from_utf8(essence.to_ascii_lowercase()).ok()
}

fn short_hash(body: &[u8]) -> String {
    let digest = Sha256::digest(body);
    let mut text = String::with_capacity(BODY_HASH_DIGITS);
    for byte in digest.iter().take(BODY_HASH_DIGITS / 2) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
