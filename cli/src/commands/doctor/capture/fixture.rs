//! A redacted delivery that can be verified: signed anew with a secret that is no secret.

use std::io::Write as _;

use domain::signature::detect::Form;
use domain::signature::dimension::{BodyForm, HeaderName, KeyTreatment, Source};
use domain::signature::scheme::{HmacConfig, Scheme, SchemeConfig};
use domain::signature::secret::Secret;
use domain::signature::sign::sign;
use domain::signature::verdict::Verdict;
use domain::signature::verify;
use domain::time::Timestamp;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::redact::Redaction;
use super::request::Delivery;
use crate::error::CliError;
use crate::exit::Exit;

/// The test secret without its prefix: base64 of `gleaner-doctor-test-secret`. Documented in
/// docs/doctor.md; whoever uses it for more than tests has no secret.
const BASE64: &str = "Z2xlYW5lci1kb2N0b3ItdGVzdC1zZWNyZXQ=";
/// The same in hexadecimal digits.
const HEX: &str = "676c65616e65722d646f63746f722d746573742d736563726574";
/// The prefix that platforms use.
const PREFIX: &str = "whsec_";
/// The host in the fixture.
const HOST: &str = "receiver.example.org";
/// The id that is signed where a scheme signs one.
const ID: &str = "00000000-0000-4000-8000-000000000000";
/// Shortest secret that is looked for in a fixture, in bytes; a shorter one is in it by chance.
const SHOWN_BYTES_MIN: usize = 8;
/// Headers that are the way's and not the sender's.
const OF_THE_WAY: [&str; 14] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "forwarded",
    "host",
    "keep-alive",
    "te",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-api-key",
];
/// Beginnings of further ones.
const WAY_PREFIXES: [&str; 6] =
    ["cf-", "cloudfront-", "x-amz", "x-forwarded", "x-real-", "x-envoy"];

/// A redacted delivery.
pub(super) struct Fixture {
    /// The request over HTTP/1.1.
    pub(super) bytes: Vec<u8>,
    /// The test secret that it is signed with.
    pub(super) secret: String,
}

impl Fixture {
    /// Redacts a delivery and signs it in the form in which it was.
    ///
    /// # Errors
    /// When that cannot be done without showing something: a bug.
    pub(super) fn of(
        delivery: &Delivery,
        form: &Form,
        path: &str,
        secrets: &[Secret],
    ) -> Result<Self, CliError> {
        let bug = |what: &str| CliError::new(Exit::Bug, format!("no fixture can be made: {what}"));
        let text = test_secret(&form.config);
        let secret = Secret::new(&text).map_err(|error| bug("the secret").because(error))?;
        let scheme = Scheme::try_from(form.config.clone())
            .map_err(|error| bug("the scheme").because(error))?;
        let is_gzip =
            delivery.header("content-encoding").is_some_and(|coding| coding != "identity");
        let mut redaction = Redaction::default();
        let plain = redaction.body(&plain_body(delivery, is_gzip));
        let sent = if is_gzip { gzip(&plain) } else { plain.clone() };
        let signed = if is_inflated(&form.config) { &plain } else { &sent };
        let at = form.signed_at.unwrap_or(Timestamp::UNIX_EPOCH);
        let signature = sign(&scheme, &secret, signed, ID, at)
            .map_err(|error| bug("the signature").because(error))?;
        let headers = headers(delivery, &form.config, &mut redaction, signature, sent.len());
        let fixture = Delivery { path: path.to_owned(), headers, body: sent };
        let verdict =
            verify(&scheme, &fixture.headers, &fixture.body, std::slice::from_ref(&secret), at);
        if !matches!(verdict, Verdict::Verified(_)) {
            return Err(bug("it does not verify"));
        }
        let bytes = fixture.to_bytes();
        let shows = |secret: &Secret| {
            let secret = secret.expose().as_bytes();
            secret.len() >= SHOWN_BYTES_MIN
                && secret != text.as_bytes()
                && bytes.windows(secret.len()).any(|part| part == secret)
        };
        if secrets.iter().any(shows) {
            return Err(bug("it would show a secret"));
        }
        Ok(Self { bytes, secret: text })
    }
}

/// A test secret that fits the way in which the key is made.
fn test_secret(config: &SchemeConfig) -> String {
    let SchemeConfig::Hmac(HmacConfig { keys, .. }) = config else {
        return format!("{PREFIX}{BASE64}");
    };
    match keys.first() {
        Some(KeyTreatment::StripPrefix(prefix) | KeyTreatment::StripPrefixBase64(prefix)) => {
            format!("{prefix}{BASE64}")
        }
        Some(KeyTreatment::Base64) => BASE64.to_owned(),
        Some(KeyTreatment::Hex) => HEX.to_owned(),
        Some(KeyTreatment::Whole) | None => format!("{PREFIX}{BASE64}"),
    }
}

fn is_inflated(config: &SchemeConfig) -> bool {
    matches!(config, SchemeConfig::Hmac(HmacConfig { body: BodyForm::Inflated, .. }))
}

/// The body before its content coding, as far as it can be had.
fn plain_body(delivery: &Delivery, is_gzip: bool) -> Vec<u8> {
    use std::io::Read as _;
    if !is_gzip {
        return delivery.body.clone();
    }
    let mut plain = Vec::new();
    let limit = domain::signature::inflate::INFLATED_BYTES_MAX;
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    let decoder = flate2::read::MultiGzDecoder::new(delivery.body.as_slice());
    match decoder.take(limit).read_to_end(&mut plain) {
        Ok(_) => plain,
        Err(_) => Vec::new(),
    }
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let written = encoder.write_all(plain).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// The sender's headers, redacted, with the new signature in the old one's place.
fn headers(
    delivery: &Delivery,
    config: &SchemeConfig,
    redaction: &mut Redaction,
    signature: Vec<(String, String)>,
    length: usize,
) -> Vec<(String, Vec<u8>)> {
    let signed = signed_names(config);
    let is_kept = |name: &str| {
        let name = name.to_ascii_lowercase();
        let is_of_the_way = OF_THE_WAY.contains(&name.as_str())
            || WAY_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        !is_of_the_way && !signed.contains(&name)
    };
    let mut headers = vec![("host".to_owned(), HOST.as_bytes().to_vec())];
    for (name, value) in delivery.headers.iter().filter(|(name, _)| is_kept(name)) {
        let value = String::from_utf8_lossy(value);
        let is_format = ["content-type", "content-encoding"]
            .iter()
            .any(|format| name.eq_ignore_ascii_case(format));
        let value =
            if is_format { value.trim().to_owned() } else { redaction.header(name, value.trim()) };
        headers.push((name.clone(), value.into_bytes()));
    }
    headers.extend(signature.into_iter().map(|(name, value)| (name, value.into_bytes())));
    headers.push(("content-length".to_owned(), length.to_string().into_bytes()));
    headers
}

/// The headers that a scheme reads, in lower case.
fn signed_names(config: &SchemeConfig) -> Vec<String> {
    let lower = |name: &HeaderName| name.as_str().to_owned();
    match config {
        SchemeConfig::Hmac(hmac) => {
            let sources = [hmac.id.as_ref(), hmac.timestamp.as_ref().map(|rule| &rule.from)];
            let of_sources = sources.into_iter().flatten().filter_map(|source| match source {
                Source::Headers(names) => Some(names),
                Source::SignatureKey(_) => None,
            });
            hmac.headers.iter().chain(of_sources.flatten()).map(lower).collect()
        }
        SchemeConfig::StaticHeader(fixed) => fixed.headers.iter().map(lower).collect(),
        SchemeConfig::Preset(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
