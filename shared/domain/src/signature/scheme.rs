//! How a sender signs, as one validated value.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::dimension::{
    BodyForm, Encoding, Grammar, HeaderName, KeyTreatment, SignedContent, Source, TimestampRule,
    WORD_BYTES_MAX,
};
use super::preset::Preset;

/// Most header names that one scheme may list; each is looked up per delivery.
pub const HEADER_NAMES_MAX: usize = 8;

/// Largest tolerance for signed timestamps, in seconds: one day. A wider window means a unit mix-up.
pub const TOLERANCE_SECS_MAX: u32 = 86_400;

/// A validated description of how deliveries are signed.
///
/// Deserialised from [`SchemeConfig`]; every contradiction is refused when it is built, so
/// verification itself has no configuration errors.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "SchemeConfig")]
pub struct Scheme {
    pub(super) headers: Vec<HeaderName>,
    pub(super) mode: Mode,
    pub(super) body: BodyForm,
}

/// What proves that a delivery is genuine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    Hmac(HmacMode),
    Static,
}

/// The validated HMAC dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HmacMode {
    pub(super) grammar: Grammar,
    pub(super) encodings: Vec<Encoding>,
    pub(super) content: Content,
    pub(super) keys: Vec<KeyTreatment>,
}

/// The signed content together with where its parts come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Body,
    TimestampBody(TimestampRule),
    IdTimestampBody(Source, TimestampRule),
}

/// A scheme as written in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SchemeConfig {
    /// A preset, with the few things that users change about one.
    Preset(PresetConfig),
    /// HMAC-SHA256 with every dimension spelled out.
    Hmac(HmacConfig),
    /// A header whose whole value equals the secret; the body is not authenticated.
    StaticHeader(StaticConfig),
}

/// A preset and what to change about it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PresetConfig {
    /// The preset's name.
    pub name: Preset,
    /// Header names in place of the preset's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<HeaderName>>,
    /// Body form in place of the preset's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyForm>,
    /// Tolerance in seconds in place of the preset's own; only for presets with a timestamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance_secs: Option<u32>,
}

/// Every dimension of an HMAC-SHA256 scheme.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HmacConfig {
    /// Headers that may carry the signature; all that are present are considered.
    pub headers: Vec<HeaderName>,
    /// How signatures are laid out in the header's value.
    pub grammar: Grammar,
    /// Digest encodings that are accepted; the first one is used for signing.
    pub encodings: Vec<Encoding>,
    /// What is signed.
    pub signed: SignedContent,
    /// Where the id comes from; required exactly if it is signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Source>,
    /// Where the timestamp comes from; required exactly if it is signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<TimestampRule>,
    /// How the key is made of the secret; any that applies may match, the first one signs.
    pub keys: Vec<KeyTreatment>,
    /// Whether the body is signed as received or inflated.
    #[serde(default)]
    pub body: BodyForm,
}

/// A static header scheme.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StaticConfig {
    /// Headers that may carry the secret.
    pub headers: Vec<HeaderName>,
}

/// A contradiction in a scheme's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// A name that no HTTP message can carry.
    #[error("header names must be HTTP tokens of at most 64 bytes")]
    HeaderName,
    /// No header name, or too many.
    #[error("list 1 to 8 header names")]
    Headers,
    /// Nothing could ever be decoded.
    #[error("list at least one encoding and no encoding twice")]
    Encodings,
    /// No key could ever be made.
    #[error("list at least one key treatment and no treatment twice")]
    Keys,
    /// A prefix, key or version that cannot occur.
    #[error(
        "prefixes, keys and versions must be 1 to 64 visible ASCII characters that do not separate entries"
    )]
    Word,
    /// The timestamp's rule and the signed content disagree.
    #[error(
        "`timestamp` must be given exactly if `signed` names it: an unsigned timestamp proves nothing"
    )]
    Timestamp,
    /// The id's source and the signed content disagree.
    #[error("`id` must be given exactly if `signed` names it")]
    Id,
    /// A key of the signature header was asked for where it has none.
    #[error("`signature-key` needs the grammar `key-value` and a key of its own")]
    SignatureKey,
    /// A tolerance outside the sensible range.
    #[error("`tolerance_secs` must be between 1 and 86400")]
    Tolerance,
}

impl Scheme {
    /// Whether a delivery is proven by an HMAC, rather than by a static header.
    pub fn signs_body(&self) -> bool {
        matches!(self.mode, Mode::Hmac(_))
    }

    /// How far a signed timestamp may be from the receiver's clock; `None` if none is signed.
    pub fn tolerance(&self) -> Option<Duration> {
        let Mode::Hmac(mode) = &self.mode else { return None };
        match &mode.content {
            Content::Body => None,
            Content::TimestampBody(rule) | Content::IdTimestampBody(_, rule) => {
                Some(Duration::from_secs(u64::from(rule.tolerance_secs)))
            }
        }
    }
}

impl TryFrom<SchemeConfig> for Scheme {
    type Error = SchemeError;

    fn try_from(config: SchemeConfig) -> Result<Self, SchemeError> {
        match config {
            SchemeConfig::Preset(preset) => Self::from_preset(preset),
            SchemeConfig::Hmac(hmac) => Self::from_hmac(hmac),
            SchemeConfig::StaticHeader(config) => Ok(Self {
                headers: checked_headers(config.headers)?,
                mode: Mode::Static,
                body: BodyForm::AsReceived,
            }),
        }
    }
}

impl Scheme {
    fn from_preset(preset: PresetConfig) -> Result<Self, SchemeError> {
        let mut config = preset.name.config();
        match &mut config {
            SchemeConfig::Hmac(hmac) => {
                if let Some(headers) = preset.headers {
                    hmac.headers = headers;
                }
                if let Some(body) = preset.body {
                    hmac.body = body;
                }
                if let Some(tolerance_secs) = preset.tolerance_secs {
                    let rule = hmac.timestamp.as_mut().ok_or(SchemeError::Timestamp)?;
                    rule.tolerance_secs = tolerance_secs;
                }
            }
            SchemeConfig::StaticHeader(config) => {
                if preset.tolerance_secs.is_some() {
                    return Err(SchemeError::Timestamp);
                }
                if let Some(headers) = preset.headers {
                    config.headers = headers;
                }
            }
            SchemeConfig::Preset(_) => {}
        }
        Self::try_from(config)
    }

    fn from_hmac(config: HmacConfig) -> Result<Self, SchemeError> {
        if !is_unique_list(&config.encodings) {
            return Err(SchemeError::Encodings);
        }
        if !is_unique_list(&config.keys) {
            return Err(SchemeError::Keys);
        }
        check_grammar(&config.grammar)?;
        let content = match (config.signed, config.id, config.timestamp) {
            (SignedContent::Body, None, None) => Content::Body,
            (SignedContent::TimestampBody, None, Some(rule)) => Content::TimestampBody(rule),
            (SignedContent::IdTimestampBody, Some(id), Some(rule)) => {
                check_source(&id, &config.grammar)?;
                Content::IdTimestampBody(id, rule)
            }
            (SignedContent::Body, None, Some(_))
            | (SignedContent::TimestampBody | SignedContent::IdTimestampBody, _, None) => {
                return Err(SchemeError::Timestamp);
            }
            _ => return Err(SchemeError::Id),
        };
        if let Content::TimestampBody(rule) | Content::IdTimestampBody(_, rule) = &content {
            check_source(&rule.from, &config.grammar)?;
            if !(1..=TOLERANCE_SECS_MAX).contains(&rule.tolerance_secs) {
                return Err(SchemeError::Tolerance);
            }
        }
        Ok(Self {
            headers: checked_headers(config.headers)?,
            mode: Mode::Hmac(HmacMode {
                grammar: config.grammar,
                encodings: config.encodings,
                content,
                keys: config.keys,
            }),
            body: config.body,
        })
    }
}

fn checked_headers(headers: Vec<HeaderName>) -> Result<Vec<HeaderName>, SchemeError> {
    if headers.len() > HEADER_NAMES_MAX || !is_unique_list(&headers) {
        return Err(SchemeError::Headers);
    }
    Ok(headers)
}

fn is_unique_list<T: PartialEq>(list: &[T]) -> bool {
    !list.is_empty()
        && list
            .iter()
            .enumerate()
            .all(|(at, item)| !list.iter().take(at).any(|other| other == item))
}

fn check_grammar(grammar: &Grammar) -> Result<(), SchemeError> {
    let (word, separators) = match grammar {
        Grammar::Bare => return Ok(()),
        Grammar::Prefixed(prefix) => (&prefix.prefix, ""),
        Grammar::KeyValue(list) => (&list.key, ",="),
        Grammar::Versioned(list) => (&list.version, ","),
    };
    check_word(word, separators)
}

fn check_source(source: &Source, grammar: &Grammar) -> Result<(), SchemeError> {
    match source {
        Source::Headers(names) => checked_headers(names.clone()).map(drop),
        Source::SignatureKey(key) => match grammar {
            Grammar::KeyValue(list) if list.key != *key => check_word(key, ",="),
            _ => Err(SchemeError::SignatureKey),
        },
    }
}

fn check_word(word: &str, separators: &str) -> Result<(), SchemeError> {
    let is_plain = word.chars().all(|c| c.is_ascii_graphic() && !separators.contains(c));
    if word.is_empty() || word.len() > WORD_BYTES_MAX || !is_plain {
        return Err(SchemeError::Word);
    }
    Ok(())
}
