//! A form in words.

use domain::signature::dimension::{BodyForm, Encoding, Grammar, KeyTreatment, SignedContent};
use domain::signature::scheme::HmacConfig;

/// A form in words.
pub(super) fn in_words(hmac: &HmacConfig) -> String {
    let encoding = match hmac.encodings.first() {
        Some(Encoding::Hex) | None => "hex",
        Some(Encoding::Base64) => "base64",
        Some(Encoding::Base64Unpadded) => "base64 without padding",
        Some(Encoding::Base64Url) => "base64 for URLs",
        Some(Encoding::Base64UrlUnpadded) => "base64 for URLs without padding",
    };
    let grammar = match &hmac.grammar {
        Grammar::Bare => encoding.to_owned(),
        Grammar::Prefixed(prefix) => format!("`{}` and {encoding}", prefix.prefix),
        Grammar::KeyValue(list) => format!("{encoding} under `{}` in a list", list.key),
        Grammar::Versioned(list) => format!("{encoding} under the version `{}`", list.version),
    };
    let signed = match hmac.signed {
        SignedContent::Body => "the body",
        SignedContent::TimestampBody => "timestamp and body",
        SignedContent::IdTimestampBody => "id, timestamp and body",
    };
    let body = match hmac.body {
        BodyForm::AsReceived => "",
        BodyForm::Inflated => " before its compression",
    };
    let key = match hmac.keys.first() {
        Some(KeyTreatment::Whole) | None => "the whole secret".to_owned(),
        Some(KeyTreatment::StripPrefix(prefix)) => format!("the secret without `{prefix}`"),
        Some(KeyTreatment::StripPrefixBase64(prefix)) => {
            format!("the base64 of the secret after `{prefix}`")
        }
        Some(KeyTreatment::Base64) => "the base64 of the secret".to_owned(),
        Some(KeyTreatment::Hex) => "the hex digits of the secret".to_owned(),
    };
    format!("{grammar}, over {signed}{body}, with {key} as the key")
}
