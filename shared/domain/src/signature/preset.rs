//! Ready-made schemes for known senders.

use serde::{Deserialize, Serialize};

use super::dimension::{
    BodyForm, Encoding, Grammar, HeaderName, KeyTreatment, KeyValue, Prefix, PrefixMatching,
    SignedContent, Source, TimestampRule, TimestampUnit, Versioned,
};
use super::scheme::{HmacConfig, PresetConfig, Scheme, SchemeConfig, SchemeError, StaticConfig};

/// Tolerance of the timestamped presets, in seconds: what the senders' own libraries use.
const TOLERANCE_SECS: u32 = 300;

/// Prefix of signing secrets, as the platform, Stripe and Standard Webhooks write it.
pub(super) const SECRET_PREFIX: &str = "whsec_";

/// A scheme known by name. All but [`Preset::Geonode`] accept one form only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The platform. Its exact form is not known for certain, so any candidate encoding of an
    /// HMAC-SHA256 over the raw body is accepted; each of them needs the secret.
    #[default]
    Geonode,
    /// `X-Hub-Signature-256: sha256=<hex>` over the body.
    Github,
    /// `Stripe-Signature: t=<seconds>,v1=<hex>` over timestamp and body.
    Stripe,
    /// `webhook-signature: v1,<base64>` over id, timestamp and body; also as `svix-*`.
    StandardWebhooks,
    /// `X-Webhook-Signature: <hex>` over the body.
    BodyHex,
    /// `Authorization: <secret>`, for senders that sign nothing.
    StaticHeader,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 6] = [
        Self::Geonode,
        Self::Github,
        Self::Stripe,
        Self::StandardWebhooks,
        Self::BodyHex,
        Self::StaticHeader,
    ];

    /// The name used in configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Geonode => "geonode",
            Self::Github => "github",
            Self::Stripe => "stripe",
            Self::StandardWebhooks => "standard-webhooks",
            Self::BodyHex => "body-hex",
            Self::StaticHeader => "static-header",
        }
    }

    /// Builds the preset's scheme unchanged.
    ///
    /// # Errors
    ///
    /// None for the presets of this module, as a test shows for each of them.
    pub fn scheme(self) -> Result<Scheme, SchemeError> {
        Scheme::try_from(SchemeConfig::Preset(PresetConfig {
            name: self,
            headers: None,
            body: None,
            tolerance_secs: None,
        }))
    }

    /// The preset spelled out.
    pub fn config(self) -> SchemeConfig {
        match self {
            Self::Geonode => SchemeConfig::Hmac(HmacConfig {
                grammar: Grammar::Prefixed(Prefix {
                    prefix: "sha256=".to_owned(),
                    matching: PrefixMatching::Lenient,
                }),
                encodings: vec![
                    Encoding::Hex,
                    Encoding::Base64,
                    Encoding::Base64Unpadded,
                    Encoding::Base64Url,
                    Encoding::Base64UrlUnpadded,
                ],
                keys: vec![
                    KeyTreatment::Whole,
                    KeyTreatment::StripPrefix(SECRET_PREFIX.to_owned()),
                    KeyTreatment::StripPrefixBase64(SECRET_PREFIX.to_owned()),
                ],
                ..body_hex("x-webhook-signature")
            }),
            Self::Github => SchemeConfig::Hmac(HmacConfig {
                grammar: Grammar::Prefixed(Prefix {
                    prefix: "sha256=".to_owned(),
                    matching: PrefixMatching::Exact,
                }),
                ..body_hex("x-hub-signature-256")
            }),
            Self::Stripe => SchemeConfig::Hmac(HmacConfig {
                grammar: Grammar::KeyValue(KeyValue { key: "v1".to_owned() }),
                signed: SignedContent::TimestampBody,
                timestamp: Some(seconds_from(Source::SignatureKey("t".to_owned()))),
                ..body_hex("stripe-signature")
            }),
            Self::StandardWebhooks => SchemeConfig::Hmac(HmacConfig {
                headers: names(&["webhook-signature", "svix-signature"]),
                grammar: Grammar::Versioned(Versioned { version: "v1".to_owned() }),
                encodings: vec![Encoding::Base64],
                signed: SignedContent::IdTimestampBody,
                id: Some(Source::Headers(names(&["webhook-id", "svix-id"]))),
                timestamp: Some(seconds_from(Source::Headers(names(&[
                    "webhook-timestamp",
                    "svix-timestamp",
                ])))),
                keys: vec![
                    KeyTreatment::StripPrefixBase64(SECRET_PREFIX.to_owned()),
                    KeyTreatment::Base64,
                ],
                body: BodyForm::AsReceived,
            }),
            Self::BodyHex => SchemeConfig::Hmac(body_hex("x-webhook-signature")),
            Self::StaticHeader => {
                SchemeConfig::StaticHeader(StaticConfig { headers: names(&["authorization"]) })
            }
        }
    }
}

fn body_hex(header: &str) -> HmacConfig {
    HmacConfig {
        headers: names(&[header]),
        grammar: Grammar::Bare,
        encodings: vec![Encoding::Hex],
        signed: SignedContent::Body,
        id: None,
        timestamp: None,
        keys: vec![KeyTreatment::Whole],
        body: BodyForm::AsReceived,
    }
}

fn seconds_from(from: Source) -> TimestampRule {
    TimestampRule { from, unit: TimestampUnit::Seconds, tolerance_secs: TOLERANCE_SECS }
}

/// Names that are tokens already; one that is not would leave the list short and the test of
/// every preset red.
fn names(list: &[&str]) -> Vec<HeaderName> {
    list.iter().filter_map(|name| HeaderName::parse(name).ok()).collect()
}
