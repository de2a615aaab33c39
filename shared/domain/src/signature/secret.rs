//! Signing secrets: one normalisation, redacted, compared in constant time.

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use subtle::ConstantTimeEq as _;

use super::dimension::KeyTreatment;
use super::preset::SECRET_PREFIX;

/// Longest accepted secret, in bytes. Platforms issue well under 100.
pub const SECRET_BYTES_MAX: usize = 4096;

/// Longest label or webhook id kept with a secret, in bytes.
pub const LABEL_BYTES_MAX: usize = 128;

const LENIENT_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const KEY_STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT_PADDING);
const KEY_URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT_PADDING);

/// A secret's place in a rotation. The order is the order in which secrets are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The one that deliveries are signed with.
    Current,
    /// The one that deliveries will be signed with.
    Pending,
    /// The one that deliveries were signed with; accepted for a grace time.
    Previous,
}

impl Stage {
    /// The word used in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Pending => "pending",
            Self::Previous => "previous",
        }
    }
}

/// A signing secret.
///
/// Its text is normalised once, here: surrounding ASCII white space is trimmed, since files,
/// consoles and command lines append line ends. Receiver, rotation and tools all go through this
/// type, so they agree on the key. Neither `Debug` nor any error shows the text.
#[derive(Clone)]
pub struct Secret {
    text: String,
    stage: Stage,
    label: String,
    webhook_id: Option<String>,
}

/// Why a text is no usable secret. Never contains any of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Anybody can compute signatures under an empty key.
    #[error("the signing secret is empty or blank; set it to the value that the platform showed")]
    Blank,
    /// Longer than any platform's secret.
    #[error("the signing secret is longer than 4096 bytes")]
    TooLong,
    /// Line breaks, NUL or a byte order mark inside: two values, or a damaged one.
    #[error(
        "the signing secret contains control characters or a byte order mark; store one value without line breaks"
    )]
    Control,
    /// Reads like JSON but is none of the documented forms.
    #[error(
        "the stored signing secret is ambiguous; store the plain text, a JSON string, or a JSON object with `secret` and optionally `webhook_id`"
    )]
    Ambiguous,
    /// A label or webhook id that cannot go into a log line.
    #[error("labels and webhook ids of secrets must be 1 to 128 printable ASCII characters")]
    Label,
}

/// The JSON object form of a stored secret.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    secret: String,
    #[serde(default)]
    webhook_id: Option<String>,
}

impl Secret {
    /// Normalises and checks a secret; stage current, labelled `current`.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if nothing usable remains after trimming.
    pub fn new(text: &str) -> Result<Self, SecretError> {
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
        let remainder = text.strip_prefix(SECRET_PREFIX).unwrap_or(text);
        if remainder.chars().all(|c| c.is_whitespace() || c.is_control()) {
            return Err(SecretError::Blank);
        }
        if text.len() > SECRET_BYTES_MAX {
            return Err(SecretError::TooLong);
        }
        if text.chars().any(|c| c.is_control() || c == '\u{feff}') {
            return Err(SecretError::Control);
        }
        Ok(Self {
            text: text.to_owned(),
            stage: Stage::Current,
            label: Stage::Current.as_str().to_owned(),
            webhook_id: None,
        })
    }

    /// Reads a secret as stores keep it.
    ///
    /// After trimming, the first character decides: `{` is a JSON object with `secret` and
    /// optionally `webhook_id` and nothing else; `"` is a JSON string; `[` and the words `null`,
    /// `true`, `false` are refused; anything else is the secret's plain text.
    ///
    /// # Errors
    ///
    /// [`SecretError::Ambiguous`] for JSON of another shape and for plain text that begins like
    /// JSON; otherwise as [`Secret::new`].
    pub fn parse_stored(text: &str) -> Result<Self, SecretError> {
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
        match text.as_bytes().first() {
            Some(b'{') => {
                let stored: Stored =
                    serde_json::from_str(text).map_err(|_| SecretError::Ambiguous)?;
                let secret = Self::new(&stored.secret)?;
                match stored.webhook_id {
                    Some(id) => secret.with_webhook_id(&id),
                    None => Ok(secret),
                }
            }
            Some(b'"') => {
                let inner: String =
                    serde_json::from_str(text).map_err(|_| SecretError::Ambiguous)?;
                Self::new(&inner)
            }
            Some(b'[') => Err(SecretError::Ambiguous),
            _ if matches!(text, "null" | "true" | "false") => Err(SecretError::Ambiguous),
            _ => Self::new(text),
        }
    }

    /// Sets the stage, and the label to the stage's word.
    #[must_use]
    pub fn with_stage(mut self, stage: Stage) -> Self {
        self.stage = stage;
        stage.as_str().clone_into(&mut self.label);
        self
    }

    /// Sets the label that logs show.
    ///
    /// # Errors
    ///
    /// [`SecretError::Label`] if it is not 1 to 128 printable ASCII characters.
    pub fn with_label(mut self, label: &str) -> Result<Self, SecretError> {
        self.label = checked_label(label)?;
        Ok(self)
    }

    /// Sets the webhook that this secret belongs to.
    ///
    /// # Errors
    ///
    /// [`SecretError::Label`] if it is not 1 to 128 printable ASCII characters.
    pub fn with_webhook_id(mut self, id: &str) -> Result<Self, SecretError> {
        self.webhook_id = Some(checked_label(id.trim())?);
        Ok(self)
    }

    /// The place in a rotation.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The name that logs show; not secret.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The webhook that this secret belongs to, if known.
    pub fn webhook_id(&self) -> Option<&str> {
        self.webhook_id.as_deref()
    }

    /// The normalised text, for whoever must store it. Never log it.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The form that [`Secret::parse_stored`] reads, with the webhook's id. Never log it.
    pub fn to_stored(&self) -> String {
        serde_json::json!({ "secret": self.text, "webhook_id": self.webhook_id }).to_string()
    }

    /// Whether both hold the same text, in time that depends on the lengths only.
    pub fn same_text(&self, other: &Self) -> bool {
        self.text.as_bytes().ct_eq(other.text.as_bytes()).into()
    }

    /// The key that `treatment` makes of this secret; `None` where it does not apply.
    pub(super) fn key(&self, treatment: &KeyTreatment) -> Option<Vec<u8>> {
        let key = match treatment {
            KeyTreatment::Whole => Some(self.text.as_bytes().to_vec()),
            KeyTreatment::StripPrefix(prefix) => {
                self.text.strip_prefix(prefix.as_str()).map(|rest| rest.as_bytes().to_vec())
            }
            KeyTreatment::StripPrefixBase64(prefix) => {
                self.text.strip_prefix(prefix.as_str()).and_then(decode_base64)
            }
            KeyTreatment::Base64 => decode_base64(&self.text),
            KeyTreatment::Hex => hex::decode(&self.text).ok(),
        };
        key.filter(|key| !key.is_empty())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("stage", &self.stage)
            .field("label", &self.label)
            .field("webhook_id", &self.webhook_id)
            .finish_non_exhaustive()
    }
}

fn checked_label(label: &str) -> Result<String, SecretError> {
    let is_printable = label.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    if label.trim().is_empty() || label.len() > LABEL_BYTES_MAX || !is_printable {
        return Err(SecretError::Label);
    }
    Ok(label.to_owned())
}

/// A text that both alphabets accept decodes to the same bytes in both.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    KEY_STANDARD.decode(text).or_else(|_| KEY_URL.decode(text)).ok()
}
