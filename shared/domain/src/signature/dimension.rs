//! The dimensions in which senders' schemes differ, as written in a configuration file.

use serde::{Deserialize, Serialize};

use super::scheme::SchemeError;

/// Longest configured prefix, key, version or header name, in bytes.
pub(super) const WORD_BYTES_MAX: usize = 64;

/// A header's name: a lower-case HTTP token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String")]
pub struct HeaderName(String);

impl HeaderName {
    /// Parses a name: surrounding white space is trimmed, letters are lowered.
    ///
    /// # Errors
    ///
    /// [`SchemeError::HeaderName`] if what remains is no HTTP token (RFC 9110 section 5.6.2) of
    /// at most 64 bytes.
    pub fn parse(text: &str) -> Result<Self, SchemeError> {
        let name = text.trim().to_ascii_lowercase();
        let is_token = !name.is_empty() && name.bytes().all(is_token_byte);
        if !is_token || name.len() > WORD_BYTES_MAX {
            return Err(SchemeError::HeaderName);
        }
        Ok(Self(name))
    }

    /// The lower-case name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for HeaderName {
    type Error = SchemeError;

    fn try_from(text: String) -> Result<Self, SchemeError> {
        Self::parse(&text)
    }
}

/// How signatures are laid out in a header's value. Surrounding blanks never count.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Grammar {
    /// The digest alone.
    Bare,
    /// A label such as `sha256=`, then the digest.
    Prefixed(Prefix),
    /// `t=1,v1=aa,v1=bb`: pairs by comma; the named key may repeat, other keys are ignored.
    KeyValue(KeyValue),
    /// `v1,aa v1,bb`: entries by space; entries of other versions are ignored.
    Versioned(Versioned),
}

/// The label of [`Grammar::Prefixed`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// The label, its `=` included.
    pub prefix: String,
    /// Whether the label may be absent, and whether its case matters.
    #[serde(default)]
    pub matching: PrefixMatching,
}

/// How strictly a prefix is matched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrefixMatching {
    /// Must be there, in this very case.
    #[default]
    Exact,
    /// May be absent; case does not matter.
    Lenient,
}

/// The signature's key in [`Grammar::KeyValue`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KeyValue {
    /// Key of a signature, such as `v1`.
    pub key: String,
}

/// The version in [`Grammar::Versioned`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Versioned {
    /// Version label, such as `v1`.
    pub version: String,
}

/// How the 32 bytes of a digest are written. Only canonical spellings are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// 64 hexadecimal digits of either case; lower case when signing.
    Hex,
    /// Standard alphabet, padded: 44 characters.
    Base64,
    /// Standard alphabet, unpadded: 43 characters.
    Base64Unpadded,
    /// URL alphabet, padded: 44 characters.
    Base64Url,
    /// URL alphabet, unpadded: 43 characters.
    Base64UrlUnpadded,
}

/// What is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum SignedContent {
    /// The body alone.
    #[serde(rename = "{body}")]
    Body,
    /// Timestamp, full stop, body.
    #[serde(rename = "{timestamp}.{body}")]
    TimestampBody,
    /// Id, full stop, timestamp, full stop, body.
    #[serde(rename = "{id}.{timestamp}.{body}")]
    IdTimestampBody,
}

/// Where a signed value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The first of these headers that is present; it must be there once.
    Headers(Vec<HeaderName>),
    /// A key of the signature header's own `k=v` list.
    SignatureKey(String),
}

/// Where the signed timestamp comes from and how old or early it may be.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TimestampRule {
    /// Where it comes from.
    pub from: Source,
    /// Its unit.
    pub unit: TimestampUnit,
    /// Accepted difference to the receiver's clock in either direction, in seconds, inclusive.
    pub tolerance_secs: u32,
}

/// A timestamp's unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimestampUnit {
    /// Seconds since the Unix epoch, digits only.
    Seconds,
    /// Milliseconds since the Unix epoch, digits only.
    Milliseconds,
    /// ISO 8601 with an offset.
    Iso8601,
}

/// How a key is made of a secret's text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyTreatment {
    /// The whole text as UTF-8.
    Whole,
    /// The text after this prefix; not applicable without it.
    StripPrefix(String),
    /// The base64-decoded text after this prefix; not applicable without it.
    StripPrefixBase64(String),
    /// The whole text, base64-decoded.
    Base64,
    /// The whole text, hex-decoded.
    Hex,
}

/// Which form of the body is signed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BodyForm {
    /// The bytes as received. A content coding is undone only after they were verified.
    #[default]
    AsReceived,
    /// The bytes after undoing the content coding, within hard caps.
    Inflated,
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
