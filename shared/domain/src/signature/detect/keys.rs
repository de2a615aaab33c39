//! The keys that can be made of secrets.

use crate::signature::dimension::KeyTreatment;
use crate::signature::preset::SECRET_PREFIX;
use crate::signature::secret::Secret;

/// Most prefixes of one secret that are taken off, besides the usual one.
const PREFIXES_MAX: usize = 3;
/// Longest of them, in bytes.
const PREFIX_BYTES_MAX: usize = 24;

/// A key, and how it was made first.
pub(super) struct Key<'s> {
    pub(super) secret: &'s Secret,
    pub(super) treatment: KeyTreatment,
    pub(super) bytes: Vec<u8>,
}

/// All distinct keys. Treatments outside, secrets inside: the likeliest key of each comes first.
pub(super) fn keys(secrets: &[Secret]) -> Vec<Key<'_>> {
    let mut keys: Vec<Key<'_>> = Vec::new();
    let treatments: Vec<_> = secrets.iter().map(treatments).collect();
    let most = treatments.iter().map(Vec::len).max().unwrap_or(0);
    for rank in 0..most {
        for (secret, treatments) in secrets.iter().zip(&treatments) {
            let Some(treatment) = treatments.get(rank) else { continue };
            let Some(bytes) = secret.key(treatment) else { continue };
            if !keys.iter().any(|key| key.bytes == bytes) {
                keys.push(Key { secret, treatment: treatment.clone(), bytes });
            }
        }
    }
    keys
}

/// The ways in which a key can be made of a secret, the likeliest first.
fn treatments(secret: &Secret) -> Vec<KeyTreatment> {
    let prefix = || SECRET_PREFIX.to_owned();
    let mut treatments = vec![
        KeyTreatment::Whole,
        KeyTreatment::StripPrefix(prefix()),
        KeyTreatment::StripPrefixBase64(prefix()),
        KeyTreatment::Base64,
        KeyTreatment::Hex,
    ];
    for prefix in prefixes(secret.expose()) {
        treatments.push(KeyTreatment::StripPrefix(prefix.to_owned()));
        treatments.push(KeyTreatment::StripPrefixBase64(prefix.to_owned()));
    }
    treatments
}

/// Beginnings that look like a label, such as `sk_` and `sk_live_`.
fn prefixes(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('_')
        .map(|(at, _)| at.saturating_add(1))
        .take_while(|end| *end <= PREFIX_BYTES_MAX)
        .filter_map(|end| text.get(..end))
        .filter(|prefix| *prefix != SECRET_PREFIX)
        .take(PREFIXES_MAX)
}
