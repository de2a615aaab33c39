//! Schemes as configured: refused, or of one mind about signing and verifying.
//!
//! An input is a scheme as JSON, an empty line, and the body.

use domain::signature::Verifier;
use domain::signature::scheme::{Scheme, SchemeConfig};
use domain::signature::secret::Secret;
use domain::signature::sign::{SignError, sign};
use domain::signature::verdict::Verdict;
use domain::time::Timestamp;

/// One secret for each treatment of keys that there may be.
const SECRETS: [&str; 4] =
    ["test-secret-1", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjU", "0a0b0c0d"];

pub(crate) fn check(input: &[u8]) {
    let at = input.windows(2).position(|pair| pair == b"\n\n").unwrap_or(input.len());
    let body = input.get(at + 2..).unwrap_or_default();
    let Ok(config) = serde_json::from_slice::<SchemeConfig>(&input[..at]) else { return };
    let Ok(scheme) = Scheme::try_from(config) else { return };
    for secret in SECRETS.map(|text| Secret::new(text).unwrap()) {
        agree(&scheme, &secret, body);
    }
}

fn agree(scheme: &Scheme, secret: &Secret, body: &[u8]) {
    let now = Timestamp::constant(1_796_000_000, 500_000_000);
    let verifier = Verifier::new(scheme.clone(), std::slice::from_ref(secret));
    let signed = match sign(scheme, secret, body, "msg_1", now) {
        Ok(signed) => signed,
        Err(SignError::Key) => {
            assert!(verifier.is_err(), "no key to sign with, yet one to verify with");
            return;
        }
        Err(SignError::Id) => panic!("the id is plain"),
    };
    let signed: Vec<_> =
        signed.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
    let verifier = verifier.unwrap();
    let verdict = verifier.verify(&signed, body, now);
    let Verdict::Verified(delivery) = verdict else { panic!("{verdict:?} under {scheme:?}") };
    assert_eq!(delivery.body.as_ref(), body);
    if scheme.signs_body() {
        let longer = [body, b"x"].concat();
        let verdict = verifier.verify(&signed, &longer, now);
        assert!(!matches!(verdict, Verdict::Verified(_)), "a byte was added");
    }
}

#[test]
fn the_seeds_of_schemes_hold() {
    testkit::corpus::check("scheme", 6, check);
}
