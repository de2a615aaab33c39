//! Finding out how a sender signs, from one delivery and the secrets that may have signed it.
//!
//! The dimensions of a scheme are tried against each other: every header that could carry a
//! signature, its grammar and encoding, what may be signed, and every key that can be made of a
//! secret. Reading the headers comes first and is cheap; then each signed content is hashed once
//! per key and compared, in constant time, with all digests that were read. What matches is
//! confirmed by the verification itself, so that a form that is reported is one that is accepted.

mod claims;
mod contents;
mod keys;
mod simplest;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use self::claims::{Claim, claims};
use self::contents::{Content, Contents, Signed, contents};
use self::keys::{Key, keys};
pub use self::simplest::simplest;
use super::dimension::{HeaderName, TimestampRule};
use super::scheme::{HmacConfig, Scheme, SchemeConfig, StaticConfig};
use super::secret::{Secret, Stage};
use super::verdict::{Reason, Verdict};
use super::{Verifier, finish, keyed};

/// Most headers of a delivery that are looked at.
pub const HEADERS_LOOKED_AT_MAX: usize = 128;
/// Most bytes that are hashed in one search. A delivery of 6 MiB with three secrets takes about
/// 400 MiB; this much takes some ten seconds on a slow machine.
pub const HASHED_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024; // 4 GiB
/// Most forms that are reported.
pub const FORMS_MAX: usize = 8;
/// Tolerance of the schemes that are found, in seconds: what senders' own libraries use.
const TOLERANCE_SECS: u32 = 300;

/// Headers of a delivery, in order of arrival.
pub type Delivered = [(String, Vec<u8>)];

/// The outcome of a search.
#[derive(Debug, Clone)]
pub struct Detected {
    /// The forms that accept the delivery, the likeliest first.
    pub forms: Vec<Form>,
    /// What was tried.
    pub tried: Tried,
}

/// A form that accepts the delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// The scheme with every dimension as it was found and nothing else.
    pub config: SchemeConfig,
    /// Label of the secret that matched.
    pub label: String,
    /// Its stage.
    pub stage: Stage,
    /// The webhook that it belongs to, if it says so.
    pub webhook_id: Option<String>,
    /// When it was signed, if a timestamp is signed. It may be older than the scheme tolerates.
    pub signed_at: Option<Timestamp>,
}

/// What a search tried. Shows names and counts, no values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tried {
    /// Headers with a value of the shape of a signature.
    pub headers: Vec<String>,
    /// Digests that were read out of them.
    pub digests: usize,
    /// Headers and keys of a signature's list with a value of the shape of a timestamp.
    pub timestamps: Vec<String>,
    /// The same of an id.
    pub ids: Vec<String>,
    /// Contents that may be signed.
    pub contents: usize,
    /// Distinct keys that can be made of the secrets.
    pub keys: usize,
    /// Why a compressed body could not be looked into.
    pub not_inflated: Option<Reason>,
    /// Whether the search ended before everything was tried, because that is too much to hash.
    pub is_cut: bool,
}

/// Tries everything on a delivery.
pub fn detect(headers: &Delivered, raw_body: &[u8], secrets: &[Secret]) -> Detected {
    let headers = headers.get(..HEADERS_LOOKED_AT_MAX).unwrap_or(headers);
    let claims = claims(headers);
    let contents = contents(headers, raw_body, &claims);
    let keys = keys(secrets);
    let mut tried = Tried {
        headers: Vec::new(),
        digests: claims.len(),
        timestamps: contents.timestamps.clone(),
        ids: contents.ids.clone(),
        contents: contents.all.len(),
        keys: keys.len(),
        not_inflated: contents.not_inflated,
        is_cut: false,
    };
    for claim in &claims {
        let name = claim.header.as_str();
        if !tried.headers.iter().any(|known| known == name) {
            tried.headers.push(name.to_owned());
        }
    }
    let mut search = Search { headers, raw_body, forms: Vec::new(), hashed: 0 };
    search.try_static(secrets);
    if !claims.is_empty() {
        tried.is_cut = !search.try_signed(&claims, &contents, &keys);
    }
    Detected { forms: search.forms, tried }
}

/// Whether a header of this delivery has the shape of a signature, or is one of the secrets: what
/// has neither was sent by somebody else.
pub fn may_be_signed(headers: &Delivered, secrets: &[Secret]) -> bool {
    let headers = headers.get(..HEADERS_LOOKED_AT_MAX).unwrap_or(headers);
    if !claims(headers).is_empty() {
        return true;
    }
    let mut search = Search { headers, raw_body: &[], forms: Vec::new(), hashed: 0 };
    search.try_static(secrets);
    !search.forms.is_empty()
}

struct Search<'d> {
    headers: &'d Delivered,
    raw_body: &'d [u8],
    forms: Vec<Form>,
    hashed: u64,
}

impl Search<'_> {
    /// Looks for a secret itself among the headers.
    fn try_static(&mut self, secrets: &[Secret]) {
        for (name, value) in self.headers {
            let Ok(header) = HeaderName::parse(name) else { continue };
            // Hashed first, so that comparing does not even show a length.
            let value = Sha256::digest(value.trim_ascii());
            for secret in secrets {
                if bool::from(value.ct_eq(&Sha256::digest(secret.expose().as_bytes()))) {
                    let config =
                        SchemeConfig::StaticHeader(StaticConfig { headers: vec![header.clone()] });
                    self.confirm(config, secret, None);
                }
            }
        }
    }

    /// Looks for an HMAC; `false` if there was too much to hash.
    fn try_signed(&mut self, claims: &[Claim], contents: &Contents, keys: &[Key<'_>]) -> bool {
        for content in &contents.all {
            let fitting: Vec<_> = claims.iter().filter(|claim| content.fits(claim)).collect();
            if fitting.is_empty() {
                continue;
            }
            let body = contents.body(content.form, self.raw_body);
            let length = content.before_body.len().saturating_add(body.len());
            for key in keys {
                if self.forms.len() >= FORMS_MAX {
                    return true;
                }
                self.hashed = self.hashed.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
                if self.hashed > HASHED_BYTES_MAX {
                    return false;
                }
                let Some(state) = keyed(&key.bytes) else { continue };
                let digest = finish(state, content.before_body.as_bytes(), body);
                for claim in &fitting {
                    if bool::from(claim.digest.ct_eq(&digest)) {
                        self.found(claim, content, key);
                    }
                }
            }
        }
        true
    }

    fn found(&mut self, claim: &Claim, content: &Content, key: &Key<'_>) {
        let (id, stamp) = match &content.signed {
            Signed::Body => (None, None),
            Signed::TimestampBody(stamp) => (None, Some(stamp)),
            Signed::IdTimestampBody(id, stamp) => (Some(id), Some(stamp)),
        };
        let config = HmacConfig {
            headers: vec![claim.header.clone()],
            grammar: claim.grammar.clone(),
            encodings: vec![claim.encoding],
            signed: content.signed.name(),
            id: id.map(|id| id.from.clone()),
            timestamp: stamp.map(|stamp| TimestampRule {
                from: stamp.from.clone(),
                unit: stamp.unit,
                tolerance_secs: TOLERANCE_SECS,
            }),
            keys: vec![key.treatment.clone()],
            body: content.form,
        };
        self.confirm(SchemeConfig::Hmac(config), key.secret, stamp.map(|stamp| stamp.at));
    }

    /// Keeps a form that the verification accepts, at the time at which it was signed.
    fn confirm(&mut self, config: SchemeConfig, secret: &Secret, signed_at: Option<Timestamp>) {
        let is_known = self.forms.iter().any(|form| form.config == config);
        if is_known || self.forms.len() >= FORMS_MAX {
            return;
        }
        if !accepts(&config, self.headers, self.raw_body, secret, signed_at) {
            return;
        }
        self.forms.push(Form {
            config,
            label: secret.label().to_owned(),
            stage: secret.stage(),
            webhook_id: secret.webhook_id().map(str::to_owned),
            signed_at,
        });
    }
}

/// Whether a scheme accepts a delivery that arrived at the moment at which it was signed.
fn accepts(
    config: &SchemeConfig,
    headers: &Delivered,
    raw_body: &[u8],
    secret: &Secret,
    signed_at: Option<Timestamp>,
) -> bool {
    let Ok(scheme) = Scheme::try_from(config.clone()) else { return false };
    let Ok(verifier) = Verifier::new(scheme, std::slice::from_ref(secret)) else { return false };
    let now = signed_at.unwrap_or(Timestamp::UNIX_EPOCH);
    matches!(verifier.verify(&headers.to_vec(), raw_body, now), Verdict::Verified(_))
}

#[cfg(test)]
mod tests;
