//! Properties over random bodies, secrets and headers.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::signature::sign::sign;

fn any_preset() -> impl Strategy<Value = Preset> {
    proptest::sample::select(Preset::ALL.to_vec())
}

/// A secret that every preset accepts: 32 bytes, base64 after the usual prefix.
fn any_secret() -> impl Strategy<Value = Secret> {
    use base64::Engine as _;
    any::<[u8; 32]>().prop_map(|bytes| {
        secret(&format!("whsec_{}", base64::engine::general_purpose::STANDARD.encode(bytes)))
    })
}

/// Header values that look like signatures, and some that do not.
fn any_value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..200),
        "[tv01a-fsh256= ,]{0,120}".prop_map(String::into_bytes),
        "(t=[0-9]{0,22},)?(v1[=,][0-9a-fA-F]{64}[ ,]?){0,10}".prop_map(String::into_bytes),
        "(sha256= ?)?[0-9a-fA-F]{60,66}".prop_map(String::into_bytes),
    ]
}

fn owned(headers: Vec<(String, String)>) -> Pairs {
    headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect()
}

proptest! {
    #[test]
    fn what_is_signed_verifies_and_gives_the_same_bytes(
        kind in any_preset(), secret in any_secret(), body in vec(any::<u8>(), 0..300), id in "[a-z0-9_-]{1,40}",
    ) {
        let scheme = preset(kind);
        let headers = owned(sign(&scheme, &secret, &body, &id, now()).unwrap());
        let secrets = [secret];
        let verdict = verify(&scheme, &headers, &body, &secrets, now());
        let Verdict::Verified(verified) = verdict else {
            return Err(TestCaseError::fail(format!("{verdict:?}")));
        };
        prop_assert_eq!(verified.body.as_ref(), body.as_slice());
    }

    #[test]
    fn another_secret_or_a_changed_body_never_verifies(
        kind in any_preset(), signer in any_secret(), other in any_secret(), body in vec(any::<u8>(), 1..300), at in any::<prop::sample::Index>(),
    ) {
        prop_assume!(!signer.same_text(&other));
        let scheme = preset(kind);
        let headers = owned(sign(&scheme, &signer, &body, "id", now()).unwrap());
        let missed = verify(&scheme, &headers, &body, std::slice::from_ref(&other), now());
        prop_assert_eq!(missed, Verdict::Rejected(Reason::Mismatch));
        if scheme.signs_body() {
            let mut changed = body.clone();
            changed[at.index(body.len())] ^= 1;
            let missed = verify(&scheme, &headers, &changed, std::slice::from_ref(&signer), now());
            prop_assert_eq!(missed, Verdict::Rejected(Reason::Mismatch));
        }
    }

    #[test]
    fn random_headers_never_panic_and_never_verify(
        kind in any_preset(), values in vec(any_value(), 0..4), stamp in any_value(), coding in any_value(), body in vec(any::<u8>(), 0..80),
    ) {
        let scheme = preset(kind);
        let mut headers = pairs(&[("webhook-timestamp", &stamp), ("webhook-id", b"id")]);
        for value in &values {
            headers.extend(scheme.headers.iter().map(|name| (name.as_str().to_owned(), value.clone())));
        }
        headers.push(("content-encoding".to_owned(), coding));
        let secret = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let verdict = verify(&scheme, &headers, &body, &[secret], now());
        prop_assert!(matches!(verdict, Verdict::Rejected(_)), "{:?}", verdict);
    }

    #[test]
    fn random_gzip_never_panics_and_stays_within_the_ratio(body in vec(any::<u8>(), 0..200), has_magic in any::<bool>()) {
        let body = if has_magic { [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3], body.as_slice()].concat() } else { body };
        if let Ok(inflated) = crate::signature::inflate::inflate(&body) {
            prop_assert!(inflated.len() <= body.len() * crate::signature::inflate::INFLATE_RATIO_MAX);
        }
    }

    #[test]
    fn random_stored_secrets_never_panic_and_are_never_blank(text in "\\PC{0,60}") {
        if let Ok(secret) = Secret::parse_stored(&text) {
            let inner = secret.expose();
            prop_assert_eq!(inner, inner.trim_matches(|c: char| c.is_ascii_whitespace()));
            prop_assert!(!inner.is_empty() && inner.len() <= text.len());
        }
    }
}
