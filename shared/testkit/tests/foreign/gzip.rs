//! Compressed bytes: undone within the caps or refused, whether they come with a delivery or lie
//! in the result store.
//!
//! An input is a compressed body.

use std::io::Read as _;

use domain::object;
use domain::signature::dimension::BodyForm;
use domain::signature::inflate::{INFLATE_RATIO_MAX, INFLATED_BYTES_MAX};
use domain::signature::preset::Preset;
use domain::signature::scheme::{PresetConfig, Scheme, SchemeConfig};
use domain::signature::secret::Secret;
use domain::signature::sign::sign;
use domain::signature::verdict::{Reason, Verdict};
use domain::signature::verify;
use domain::time::Timestamp;
use flate2::read::MultiGzDecoder;

const KEY: &str = "kind=extract/dt=2026-11-30/a.json.gz";

pub(crate) fn check(body: &[u8]) {
    let limit = INFLATED_BYTES_MAX.min(body.len().saturating_mul(INFLATE_RATIO_MAX));
    let mut plain = Vec::new();
    let cap = u64::try_from(limit).unwrap() + 1;
    let inflated = MultiGzDecoder::new(body).take(cap).read_to_end(&mut plain);
    let expected = match inflated {
        Ok(bytes) if bytes > limit => Err(Reason::BodyTooLarge),
        Ok(_) => Ok(plain.as_slice()),
        Err(_) => Err(Reason::MalformedCoding),
    };
    for form in [BodyForm::AsReceived, BodyForm::Inflated] {
        let signed = match (form, expected) {
            (BodyForm::Inflated, Ok(plain)) => plain,
            _ => body,
        };
        deliver(form, signed, body, expected);
    }
    stored(body, expected);
}

fn deliver(form: BodyForm, signed: &[u8], body: &[u8], expected: Result<&[u8], Reason>) {
    let scheme = Scheme::try_from(SchemeConfig::Preset(PresetConfig {
        name: Preset::BodyHex,
        headers: None,
        body: Some(form),
        tolerance_secs: None,
    }))
    .unwrap();
    let secrets = [Secret::new("test-secret-1").unwrap()];
    let now = Timestamp::UNIX_EPOCH;
    let mut headers: Vec<_> = sign(&scheme, &secrets[0], signed, "", now)
        .unwrap()
        .into_iter()
        .map(|(name, value)| (name, value.into_bytes()))
        .collect();
    headers.push(("Content-Encoding".to_owned(), b"gzip".to_vec()));
    match (verify(&scheme, &headers, body, &secrets, now), expected) {
        (Verdict::Verified(verified), Ok(plain)) => assert_eq!(verified.body.as_ref(), plain),
        (Verdict::Rejected(reason), Err(expected)) => assert_eq!(reason, expected),
        (verdict, expected) => panic!("{verdict:?}, not {:?}", expected.map(<[u8]>::len)),
    }
}

/// The same bytes as an object: its cap is the larger one, and there is none on the ratio.
fn stored(bytes: &[u8], expected: Result<&[u8], Reason>) {
    match (object::decode(KEY, bytes), expected) {
        (Ok(content), Ok(plain)) => {
            assert_eq!(content, plain);
            let again = object::encode(KEY, &content).unwrap();
            assert_eq!(object::decode(KEY, &again).unwrap(), content);
        }
        (Ok(_), Err(reason)) => assert_eq!(reason, Reason::BodyTooLarge),
        (Err(error), Ok(_)) => panic!("{error}"),
        (Err(_), Err(_)) => {}
    }
}

#[test]
fn the_seeds_of_compressed_bytes_hold() {
    testkit::corpus::check("gzip", 5, check);
}
