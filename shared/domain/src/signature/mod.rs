//! Verifying that a delivery was signed by somebody who holds one of our secrets.
//!
//! Pure: headers, body, secrets and the time come in, a verdict goes out. Headers are read and
//! refused before anything is hashed, each distinct key hashes the body at most once, and the
//! bytes to be parsed are returned together with the verdict.

pub mod detect;
pub mod dimension;
pub mod header;
pub mod inflate;
pub mod preset;
pub mod scheme;
pub mod secret;
pub mod sign;
pub mod verdict;

use std::borrow::Cow;
use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use self::dimension::{BodyForm, KeyTreatment};
use self::header::{Claimed, Digest, SIGNATURES_MAX};
use self::inflate::{Coding, inflate};
use self::scheme::{Mode, Scheme};
use self::secret::Secret;
use self::verdict::{Diagnostics, Reason, Unconfigured, Verdict, Verified};

/// Most secrets that one receiver tries: ten webhooks in three stages.
pub const SECRETS_MAX: usize = 30;

type HmacSha256 = Hmac<Sha256>;

/// The headers of one delivery.
pub trait Headers: Sync {
    /// All values of the header `name`, which is given in lower case, in order of arrival.
    ///
    /// Implementations match names without regard to case and return values as received.
    fn values(&self, name: &str) -> Vec<&[u8]>;
}

impl Headers for [(String, Vec<u8>)] {
    fn values(&self, name: &str) -> Vec<&[u8]> {
        self.iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
            .collect()
    }
}

impl Headers for Vec<(String, Vec<u8>)> {
    fn values(&self, name: &str) -> Vec<&[u8]> {
        self.as_slice().values(name)
    }
}

/// Verifies one delivery; [`Verifier`] does the same without deriving the keys again.
pub fn verify<'b>(
    scheme: &Scheme,
    headers: &dyn Headers,
    raw_body: &'b [u8],
    secrets: &[Secret],
    now: Timestamp,
) -> Verdict<'b> {
    match Verifier::new(scheme.clone(), secrets) {
        Ok(verifier) => verifier.verify(headers, raw_body, now),
        Err(unconfigured) => Verdict::Unconfigured(unconfigured),
    }
}

/// A scheme with its keys, built once per set of secrets.
pub struct Verifier {
    scheme: Scheme,
    keys: Vec<Key>,
    has_unusable_secret: bool,
}

/// One distinct key, and the secret that it was first made of.
struct Key {
    secret: Secret,
    check: Check,
}

enum Check {
    /// The keyed state before any input; cloning it is cheaper than keying again.
    Hmac(Box<HmacSha256>),
    /// SHA-256 of the expected value, so that comparing does not even show its length.
    Static(Digest),
}

impl Verifier {
    /// Derives the keys that `scheme` makes of `secrets`.
    ///
    /// # Errors
    ///
    /// [`Unconfigured`] if there is no secret, or too many, or none that fits the scheme.
    pub fn new(scheme: Scheme, secrets: &[Secret]) -> Result<Self, Unconfigured> {
        if secrets.is_empty() {
            return Err(Unconfigured::NoSecret);
        }
        if secrets.len() > SECRETS_MAX {
            return Err(Unconfigured::TooManySecrets);
        }
        let mut ordered: Vec<&Secret> = secrets.iter().collect();
        ordered.sort_by_key(|secret| secret.stage());
        let treatments = match &scheme.mode {
            Mode::Hmac(mode) => mode.keys.as_slice(),
            Mode::Static => &[KeyTreatment::Whole],
        };
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut keys = Vec::new();
        // Treatments outside, secrets inside: the likeliest key of each secret is tried first.
        for treatment in treatments {
            for secret in &ordered {
                let Some(bytes) = secret.key(treatment) else { continue };
                if seen.contains(&bytes) {
                    continue;
                }
                keys.push(Key { secret: (*secret).clone(), check: Check::new(&scheme, &bytes)? });
                seen.push(bytes);
            }
        }
        if keys.is_empty() {
            return Err(Unconfigured::UnusableSecret);
        }
        let has_unusable_secret = secrets
            .iter()
            .any(|secret| treatments.iter().all(|treatment| secret.key(treatment).is_none()));
        Ok(Self { scheme, keys, has_unusable_secret })
    }

    /// The same where there is one more secret, which cannot be read.
    #[must_use]
    pub fn beside_an_unread_one(self) -> Self {
        Self { has_unusable_secret: true, ..self }
    }

    /// Whether a secret fits none of the scheme's key treatments, or cannot be read: worth an alarm.
    pub fn has_unusable_secret(&self) -> bool {
        self.has_unusable_secret
    }

    /// Verifies one delivery.
    ///
    /// Stops at the first key that matches, which tells the sender no more than the acceptance
    /// does; within a key every signature is compared in constant time. With an unusable secret
    /// in the set, a mismatch is [`Verdict::Unconfigured`]: that secret might have matched.
    pub fn verify<'b>(
        &self,
        headers: &dyn Headers,
        raw_body: &'b [u8],
        now: Timestamp,
    ) -> Verdict<'b> {
        match self.try_verify(headers, raw_body, now) {
            Ok(verified) => Verdict::Verified(verified),
            Err(Reason::Mismatch) if self.has_unusable_secret => {
                Verdict::Unconfigured(Unconfigured::UnusableSecret)
            }
            Err(reason) => Verdict::Rejected(reason),
        }
    }

    /// Gathers what may be logged about a delivery. Hashes the body: for logs that are rate
    /// limited, not for every refusal.
    pub fn diagnose(
        &self,
        code: &'static str,
        headers: &dyn Headers,
        raw_body: &[u8],
    ) -> Diagnostics {
        let lengths = self
            .scheme
            .headers
            .iter()
            .flat_map(|name| headers.values(name.as_str()))
            .map(<[u8]>::len)
            .take(SIGNATURES_MAX)
            .collect();
        let mut labels: Vec<String> = Vec::new();
        for key in &self.keys {
            if !labels.iter().any(|label| label == key.secret.label()) {
                labels.push(key.secret.label().to_owned());
            }
        }
        Diagnostics::new(code, lengths, headers, raw_body, labels)
    }

    fn try_verify<'b>(
        &self,
        headers: &dyn Headers,
        raw_body: &'b [u8],
        now: Timestamp,
    ) -> Result<Verified<'b>, Reason> {
        let claimed = self.claimed(headers, now)?;
        let coding = Coding::of(headers)?;
        let signed = match (self.scheme.body, coding) {
            (BodyForm::Inflated, Coding::Gzip) => Cow::Owned(inflate(raw_body)?),
            _ => Cow::Borrowed(raw_body),
        };
        let secret = self.matching_secret(&claimed, &signed).ok_or(Reason::Mismatch)?;
        let body = match (self.scheme.body, coding) {
            (BodyForm::AsReceived, Coding::Gzip) => Cow::Owned(inflate(&signed)?),
            _ => signed,
        };
        Ok(Verified {
            label: secret.label().to_owned(),
            stage: secret.stage(),
            webhook_id: secret.webhook_id().map(str::to_owned),
            body,
        })
    }

    fn claimed(&self, headers: &dyn Headers, now: Timestamp) -> Result<Claimed, Reason> {
        let Mode::Hmac(mode) = &self.scheme.mode else {
            let values = header::signature_values(&self.scheme, headers)?;
            let digests: Vec<Digest> = values
                .iter()
                .filter(|value| !value.is_empty())
                .map(|value| Sha256::digest(value).into())
                .collect();
            if digests.is_empty() {
                return Err(Reason::EmptyDigest);
            }
            return Ok(Claimed { digests, before_body: Vec::new() });
        };
        header::read(&self.scheme, mode, headers, now)
    }

    fn matching_secret(&self, claimed: &Claimed, body: &[u8]) -> Option<&Secret> {
        self.keys.iter().find(|key| key.matches(claimed, body)).map(|key| &key.secret)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("scheme", &self.scheme)
            .field("keys", &self.keys.len())
            .field("has_unusable_secret", &self.has_unusable_secret)
            .finish_non_exhaustive()
    }
}

impl Key {
    fn matches(&self, claimed: &Claimed, body: &[u8]) -> bool {
        let expected = match &self.check {
            Check::Hmac(state) => finish((**state).clone(), &claimed.before_body, body),
            Check::Static(expected) => *expected,
        };
        let mut found = Choice::from(0);
        for digest in &claimed.digests {
            found |= digest.ct_eq(&expected);
        }
        found.into()
    }
}

impl Check {
    fn new(scheme: &Scheme, key: &[u8]) -> Result<Self, Unconfigured> {
        if scheme.signs_body() {
            Ok(Self::Hmac(Box::new(keyed(key).ok_or(Unconfigured::UnusableSecret)?)))
        } else {
            Ok(Self::Static(Sha256::digest(key).into()))
        }
    }
}

fn keyed(key: &[u8]) -> Option<HmacSha256> {
    HmacSha256::new_from_slice(key).ok()
}

fn finish(mut state: HmacSha256, before_body: &[u8], body: &[u8]) -> Digest {
    state.update(before_body);
    state.update(body);
    state.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests;
