//! What is told of a delivery. Names, counts and settings; no value of it.

mod display;
mod words;

use std::time::Duration;

use domain::envelope::{Envelope, EnvelopeFormat};
use domain::signature::detect::{Form, Tried};
use domain::signature::dimension::HeaderName;
use domain::signature::scheme::{PresetConfig, SchemeConfig};
use domain::signature::secret::Secret;
use domain::signature::verdict::Reason;
use domain::time::Timestamp;
use serde::Serialize;

use self::words::in_words;
use super::request::Delivery;
use super::written::{Written, of_preset, of_scheme};
use crate::error::CliError;

/// Everything that was found out.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    version: u32,
    r#type: &'static str,
    /// What the delivery was answered; `None` if it came from a file.
    answered: Option<u16>,
    bytes: usize,
    content_type: Option<String>,
    content_encoding: Option<String>,
    /// The names of its headers.
    headers: Vec<String>,
    in_force: InForce,
    found: Vec<Found>,
    tried: TriedRow,
    envelope: EnvelopeRow,
    fixture: Option<Saved>,
    #[serde(skip)]
    is_on_aws: bool,
}

/// Whether the settings as they are accept the delivery.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct InForce {
    pub(super) accepted: bool,
    pub(super) reason: Option<&'static str>,
}

/// One form that accepts the delivery.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    header: String,
    /// How it is signed, in words.
    form: String,
    stage: &'static str,
    webhook_id: Option<String>,
    signed_at: Option<Timestamp>,
    age_secs: Option<u64>,
    /// The settings that accept this form: a preset where one does.
    settings: Vec<Written>,
    /// The same form and nothing else, spelled out.
    scheme: Written,
}

/// What was tried.
#[derive(Debug, Serialize)]
struct TriedRow {
    signature_headers: Vec<String>,
    digests: usize,
    timestamps: Vec<String>,
    ids: Vec<String>,
    contents: usize,
    keys: usize,
    not_inflated: Option<&'static str>,
    is_cut: bool,
}

/// What the receiver would read of the body.
#[derive(Debug, Serialize)]
pub(super) struct EnvelopeRow {
    event: Option<String>,
    /// Why no job id can be read; `None` if one can.
    error: Option<&'static str>,
    /// The webhook that the body names.
    webhook_id: Option<String>,
    /// Whether a secret of that webhook is here.
    webhook_secret_known: Option<bool>,
}

/// A saved fixture.
#[derive(Debug, Serialize)]
pub(super) struct Saved {
    pub(super) file: String,
    pub(super) secret: String,
}

/// The parts of an outcome.
pub(super) struct Told<'a> {
    pub(super) delivery: &'a Delivery,
    pub(super) answered: Option<u16>,
    pub(super) in_force: InForce,
    pub(super) found: Vec<Found>,
    pub(super) tried: Tried,
    pub(super) envelope: EnvelopeRow,
    pub(super) fixture: Option<Saved>,
    pub(super) is_on_aws: bool,
}

/// Reads what a receiver reads of a body, verified or not. For hints alone.
pub(super) fn read_envelope(
    delivery: &Delivery,
    format: &EnvelopeFormat,
    secrets: &[Secret],
) -> EnvelopeRow {
    match Envelope::parse(format, &delivery.body) {
        Ok(envelope) => {
            let id = envelope.webhook_id;
            let is_known = id
                .as_deref()
                .map(|id| secrets.iter().any(|secret| secret.webhook_id() == Some(id)));
            EnvelopeRow {
                event: Some(envelope.event.as_str().to_owned()),
                error: None,
                webhook_id: id,
                webhook_secret_known: is_known,
            }
        }
        Err(error) => EnvelopeRow {
            event: None,
            error: Some(error.code()),
            webhook_id: None,
            webhook_secret_known: None,
        },
    }
}

impl Outcome {
    pub(super) fn new(told: Told<'_>) -> Self {
        let Told { delivery, tried, .. } = told;
        let text = |name: &str| delivery.header(name).map(shown);
        Self {
            version: 1,
            r#type: "capture",
            answered: told.answered,
            bytes: delivery.body.len(),
            content_type: text("content-type"),
            content_encoding: text("content-encoding"),
            headers: delivery.headers.iter().map(|(name, _)| shown(name)).collect(),
            in_force: told.in_force,
            found: told.found,
            tried: TriedRow {
                signature_headers: tried.headers,
                digests: tried.digests,
                timestamps: tried.timestamps,
                ids: tried.ids,
                contents: tried.contents,
                keys: tried.keys,
                not_inflated: tried.not_inflated.map(Reason::code),
                is_cut: tried.is_cut,
            },
            envelope: told.envelope,
            fixture: told.fixture,
            is_on_aws: told.is_on_aws,
        }
    }

    /// Whether some settings accept the delivery.
    pub(super) const fn is_found(&self) -> bool {
        !self.found.is_empty()
    }
}

/// A text of the delivery's that is short and of visible characters.
fn shown(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 64;
    text.chars().filter(char::is_ascii_graphic).take(SHOWN_CHARS_MAX).collect()
}

impl Found {
    /// # Errors
    /// None that is known.
    pub(super) fn of(
        form: &Form,
        short: Option<&PresetConfig>,
        age: Option<Duration>,
    ) -> Result<Self, CliError> {
        let (header, words) = match &form.config {
            SchemeConfig::Hmac(hmac) => (first(&hmac.headers), in_words(hmac)),
            SchemeConfig::StaticHeader(fixed) => {
                (first(&fixed.headers), "the secret itself; the body is not signed".to_owned())
            }
            SchemeConfig::Preset(preset) => (String::new(), preset.name.name().to_owned()),
        };
        let scheme = of_scheme(&form.config)?;
        let settings = short.map_or_else(|| vec![scheme.clone()], of_preset);
        Ok(Self {
            header,
            form: words,
            stage: form.stage.as_str(),
            webhook_id: form.webhook_id.clone(),
            signed_at: form.signed_at,
            age_secs: age.map(|age| age.as_secs()),
            settings,
            scheme,
        })
    }
}

fn first(names: &[HeaderName]) -> String {
    names.first().map(|name| name.as_str().to_owned()).unwrap_or_default()
}
