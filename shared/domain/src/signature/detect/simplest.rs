//! The shortest configuration that accepts what was found.

use super::{Delivered, Form, accepts};
use crate::signature::dimension::{BodyForm, HeaderName};
use crate::signature::preset::Preset;
use crate::signature::scheme::{PresetConfig, SchemeConfig};
use crate::signature::secret::Secret;

/// The presets, those that accept one form alone first.
const PRESETS: [Preset; 6] = [
    Preset::BodyHex,
    Preset::Github,
    Preset::Stripe,
    Preset::StandardWebhooks,
    Preset::StaticHeader,
    Preset::Geonode,
];

/// The preset that accepts a delivery of this form with the fewest changes; `None` if only a scheme
/// that is spelled out does.
pub fn simplest(
    form: &Form,
    headers: &Delivered,
    raw_body: &[u8],
    secrets: &[Secret],
) -> Option<PresetConfig> {
    let secret = secrets
        .iter()
        .find(|secret| accepts(&form.config, headers, raw_body, secret, form.signed_at))?;
    let (names, body) = (Some(names(&form.config)), Some(body(&form.config)));
    // Fewer changes go before more.
    let changes = [(None, None), (names.clone(), None), (None, body), (names, body)];
    let presets = changes.into_iter().flat_map(|(headers, body)| {
        PRESETS.map(|name| PresetConfig {
            name,
            headers: headers.clone(),
            body,
            tolerance_secs: None,
        })
    });
    let mut fitting = presets.filter(|preset| {
        let config = SchemeConfig::Preset(preset.clone());
        accepts(&config, headers, raw_body, secret, form.signed_at)
    });
    fitting.next()
}

fn names(config: &SchemeConfig) -> Vec<HeaderName> {
    match config {
        SchemeConfig::Hmac(hmac) => hmac.headers.clone(),
        SchemeConfig::StaticHeader(fixed) => fixed.headers.clone(),
        SchemeConfig::Preset(preset) => preset.headers.clone().unwrap_or_default(),
    }
}

fn body(config: &SchemeConfig) -> BodyForm {
    match config {
        SchemeConfig::Hmac(hmac) => hmac.body,
        SchemeConfig::StaticHeader(_) | SchemeConfig::Preset(_) => BodyForm::AsReceived,
    }
}
