//! Known faults of other receivers, each tried literally.

use std::io::Write as _;
use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::signature::Verifier;
use crate::signature::secret::{SecretError, Stage};
use crate::signature::sign::sign;
use crate::signature::verdict::{Answer, Unconfigured};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gzipped(signature: &str, coding: &[u8]) -> Pairs {
    pairs(&[("x-webhook-signature", signature.as_bytes()), ("Content-Encoding", coding)])
}

/// SG-01: hash of re-serialised JSON.
#[test]
fn every_spelling_of_a_body_needs_its_own_signature() {
    let v3 = hex::decode(V3).unwrap();
    let vectors: [(&[u8], &str); 5] =
        [(V1, V1_HEX), (V2, V2_HEX), (&v3, V3_HEX), (V4, V4_HEX), (V4B, V4B_HEX)];
    for kind in [Preset::Geonode, Preset::BodyHex] {
        for (at, (body, _)) in vectors.iter().enumerate() {
            for (other, (_, hex)) in vectors.iter().enumerate() {
                let expected = (at != other).then_some(Reason::Mismatch);
                assert_eq!(reason(&preset(kind), &signed(hex), body), expected, "{at} {other}");
            }
        }
    }
}

/// SG-02: text detour breaks non-ASCII payloads.
#[test]
fn bytes_that_are_no_text_are_verified_as_bytes() {
    let scheme = preset(Preset::Geonode);
    assert_eq!(reason(&scheme, &signed(V4_HEX), V4), None);
    assert_eq!(reason(&scheme, &signed(V5_HEX), V5), None);
    assert_eq!(reason(&scheme, &signed(V8_HEX), b""), None);
    let emoji = "{\"job_id\":\"j1\",\"note\":\"\u{1f99c}\"}".as_bytes();
    let headers = sign(&scheme, &secret(SECRET), emoji, "", now()).unwrap();
    assert_eq!(reason(&scheme, &signed(&headers[0].1), emoji), None);
}

/// SG-03: wrong-length or non-ASCII header crashes the comparison.
#[test]
fn odd_headers_are_refused_without_hashing_or_crashing() {
    let mut accented = "\u{e9}".as_bytes().to_vec();
    accented.extend(std::iter::repeat_n(b'a', 63));
    let cases: [(Vec<u8>, Reason); 8] = [
        (Vec::new(), Reason::EmptyDigest),
        (b"abc".to_vec(), Reason::WrongLength),
        (V1_HEX.as_bytes()[..63].to_vec(), Reason::WrongLength),
        ([V1_HEX.as_bytes(), b"a"].concat(), Reason::WrongLength),
        (V1_HEX.as_bytes()[..33].to_vec(), Reason::WrongLength),
        (vec![b'z'; 64], Reason::Malformed),
        (accented, Reason::Malformed),
        (vec![b'a'; 10 * 1024], Reason::HeaderTooLong),
    ];
    for kind in [Preset::Geonode, Preset::BodyHex] {
        for (value, expected) in &cases {
            let found = reason(&preset(kind), &signed(value), V1);
            assert_eq!(found, Some(*expected), "{} bytes", value.len());
            assert_eq!(expected.answer(), Answer::Unauthorized);
        }
        assert_eq!(reason(&preset(kind), &pairs(&[]), V1), Some(Reason::Missing));
    }
}

/// SG-04: prefix and spacing variants of one signature.
#[test]
fn an_optional_prefix_is_trimmed_and_other_labels_are_named() {
    let scheme = preset(Preset::Geonode);
    let upper = V1_HEX.to_ascii_uppercase();
    for value in [
        format!("sha256={V1_HEX}"),
        format!("sha256= {V1_HEX}"),
        format!(" {V1_HEX} "),
        format!("SHA256={V1_HEX}"),
        format!("sha256={upper}"),
        upper,
    ] {
        assert_eq!(reason(&scheme, &signed(&value), V1), None, "{value}");
    }
    let other = format!("sha1={V1_HEX}");
    assert_eq!(reason(&scheme, &signed(&other), V1), Some(Reason::WrongAlgorithm));
    assert_eq!(reason(&scheme, &signed("sha256="), V1), Some(Reason::EmptyDigest));
}

/// SG-04: the strict presets take one form only.
#[test]
fn strict_presets_demand_their_own_prefix() {
    let github = preset(Preset::Github);
    let header = |value: &str| pairs(&[("X-Hub-Signature-256", value.as_bytes())]);
    assert_eq!(reason(&github, &header(&format!("sha256={V1_HEX}")), V1), None);
    assert_eq!(reason(&github, &header(V1_HEX), V1), Some(Reason::Malformed));
    let shouted = header(&format!("SHA256={V1_HEX}"));
    assert_eq!(reason(&github, &shouted, V1), Some(Reason::WrongAlgorithm));
    let sha1 = header(&format!("sha1={V1_HEX}"));
    assert_eq!(reason(&github, &sha1, V1), Some(Reason::WrongAlgorithm));
    assert_eq!(reason(&github, &header("sha256="), V1), Some(Reason::EmptyDigest));
    let bare = preset(Preset::BodyHex);
    let labelled = signed(format!("sha256={V1_HEX}"));
    assert_eq!(reason(&bare, &labelled, V1), Some(Reason::WrongAlgorithm));
}

/// SG-05: base64 digests.
#[test]
fn base64_is_accepted_where_configured_and_in_canonical_form_only() {
    let digest = hex::decode(V1_HEX).unwrap();
    let (padded, bare) = (STANDARD.encode(&digest), STANDARD_NO_PAD.encode(&digest));
    let strict = preset(Preset::BodyHex);
    assert_eq!(reason(&strict, &signed(&padded), V1), Some(Reason::WrongLength));
    assert_eq!(reason(&strict, &signed(&bare), V1), Some(Reason::WrongLength));

    let base64 = scheme(
        r#"{"hmac":{"headers":["x-webhook-signature"],"grammar":"bare","encodings":["base64"],
            "signed":"{body}","keys":["whole"]}}"#,
    );
    assert_eq!(reason(&base64, &signed(&padded), V1), None);
    assert_eq!(reason(&base64, &signed(&bare), V1), Some(Reason::WrongLength));
    assert_eq!(reason(&base64, &signed(V1_HEX), V1), Some(Reason::WrongLength));

    let lenient = preset(Preset::Geonode);
    assert_eq!(reason(&lenient, &signed(&padded), V1), None);
    assert_eq!(reason(&lenient, &signed(&bare), V1), None);
    // The last character before the padding carries two stray bits; setting one changes nothing
    // for a lax decoder.
    let mut stray = padded.clone().into_bytes();
    stray[42] += 1;
    assert_eq!(STANDARD_NO_PAD.decode(&stray[..43]).ok(), None);
    assert_eq!(reason(&lenient, &signed(&stray), V1), Some(Reason::Malformed));
}

/// SG-06: empty or blank secret makes forgery trivial.
#[test]
fn empty_and_blank_secrets_are_refused() {
    for text in ["", "   ", "\n", "\u{a0}", "whsec_", " whsec_\n", "\0"] {
        assert_eq!(Secret::new(text).unwrap_err(), SecretError::Blank, "{text:?}");
    }
    for text in ["", "   ", r#"{"secret":""}"#, r#"{"secret":"  "}"#, r#""""#] {
        assert_eq!(Secret::parse_stored(text).unwrap_err(), SecretError::Blank, "{text:?}");
    }
}

/// SG-06: without any secret nothing is accepted and nothing is refused for good.
#[test]
fn no_secret_is_unconfigured_for_every_preset() {
    for kind in Preset::ALL {
        let found = verify(&preset(kind), &signed(V6_HEX), V1, &[], now());
        assert_eq!(found, Verdict::Unconfigured(Unconfigured::NoSecret));
    }
    let scheme = preset(Preset::Geonode);
    assert_eq!(reason(&scheme, &signed(V6_HEX), V1), Some(Reason::Mismatch));
}

/// SG-07: secret with a trailing newline.
#[test]
fn surrounding_white_space_of_a_secret_never_reaches_the_key() {
    let scheme = preset(Preset::Geonode);
    for text in ["test-secret-1\n", "test-secret-1\r\n", "  test-secret-1 ", "\ttest-secret-1"] {
        for secret in [Secret::new(text).unwrap(), Secret::parse_stored(text).unwrap()] {
            let secrets = [secret];
            let verdict = verify(&scheme, &signed(V1_HEX), V1, &secrets, now());
            assert!(matches!(verdict, Verdict::Verified(_)), "{text:?}");
            let untrimmed = verify(&scheme, &signed(V1_LF_KEY_HEX), V1, &secrets, now());
            assert_eq!(untrimmed, Verdict::Rejected(Reason::Mismatch));
        }
    }
}

/// SG-08: control event handled before the signature.
#[test]
fn unsigned_control_events_are_refused_whatever_they_say() {
    for body in [&br#"{"event_type":"webhook_deactivated"}"#[..], br#"{"event":"ping"}"#, b""] {
        for kind in Preset::ALL {
            let headers = pairs(&[("X-Webhook-Event", b"webhook_deactivated")]);
            let secrets = [secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")];
            let verdict = verify(&preset(kind), &headers, body, &secrets, now());
            assert_eq!(verdict, Verdict::Rejected(Reason::Missing));
        }
    }
}

/// SG-09: compressed bodies.
#[test]
fn compressed_bodies_are_verified_as_received_or_inflated_as_configured() {
    let v7 = hex::decode(V7).unwrap();
    let received = preset(Preset::Geonode);
    let inflated = scheme(r#"{"preset":{"name":"geonode","body":"inflated"}}"#);
    for (scheme, own, crossed) in [(&received, V7_HEX, V1_HEX), (&inflated, V1_HEX, V7_HEX)] {
        let headers = gzipped(own, b"GZIP");
        let Verdict::Verified(verified) = check(scheme, &headers, &v7) else {
            panic!("not verified");
        };
        assert_eq!(verified.body.as_ref(), V1, "the parser gets what was verified");
        assert_eq!(reason(scheme, &gzipped(crossed, b"gzip"), &v7), Some(Reason::Mismatch));
        for coding in [&b"br"[..], b"gzip, gzip", b"deflate", b"\xff"] {
            let found = reason(scheme, &gzipped(own, coding), &v7);
            assert_eq!(found, Some(Reason::UnsupportedCoding));
        }
        assert_eq!(reason(scheme, &gzipped(V1_HEX, b"identity"), V1), None);
    }
    assert_eq!(Reason::UnsupportedCoding.answer(), Answer::UnsupportedCoding);
}

/// SG-09: bombs and torn streams end in a client error.
#[test]
fn inflation_is_capped_and_broken_gzip_is_refused() {
    let bomb = gzip(&vec![b' '; 20_000_000]);
    assert!(bomb.len() < 25_000, "{}", bomb.len());
    let inflated = scheme(r#"{"preset":{"name":"geonode","body":"inflated"}}"#);
    let headers = gzipped(V1_HEX, b"gzip");
    assert_eq!(reason(&inflated, &headers, &bomb), Some(Reason::BodyTooLarge));
    assert_eq!(Reason::BodyTooLarge.answer(), Answer::TooLarge);

    let received = preset(Preset::Geonode);
    let own = sign(&received, &secret(SECRET), &bomb, "", now()).unwrap();
    assert_eq!(reason(&received, &gzipped(&own[0].1, b"gzip"), &bomb), Some(Reason::BodyTooLarge));

    let v7 = hex::decode(V7).unwrap();
    for broken in [&v7[..40], V1, b"", &[v7.clone(), b"tail".to_vec()].concat()] {
        assert_eq!(reason(&inflated, &headers, broken), Some(Reason::MalformedCoding));
    }
    assert_eq!(Reason::MalformedCoding.answer(), Answer::Unusable);
}

/// SG-10: timestamp window errors.
#[test]
fn signed_timestamps_are_strict_and_bounded_in_both_directions() {
    let stripe = preset(Preset::Stripe);
    let millis = format!("{NOW}000");
    let cases = [
        ((NOW - 299).to_string(), None),
        ((NOW - 300).to_string(), None),
        ((NOW - 301).to_string(), Some(Reason::Stale)),
        ((NOW + 300).to_string(), None),
        ((NOW + 301).to_string(), Some(Reason::Future)),
        (millis, Some(Reason::Future)),
        ("0".to_owned(), Some(Reason::Stale)),
        ("-1".to_owned(), Some(Reason::TimestampMalformed)),
        (format!("+{NOW}"), Some(Reason::TimestampMalformed)),
        (format!("0{NOW}"), Some(Reason::TimestampMalformed)),
        ("123abc".to_owned(), Some(Reason::TimestampMalformed)),
        ("1".repeat(20), Some(Reason::TimestampMalformed)),
        (String::new(), Some(Reason::TimestampMissing)),
    ];
    for (stamp, expected) in cases {
        // Signed over this very stamp, so that only the stamp can be at fault.
        let content = [stamp.as_bytes(), b".", V1].concat();
        let digest = sign(&preset(Preset::BodyHex), &secret(SECRET), &content, "", now()).unwrap();
        let value = format!("t={stamp},v1={}", digest[0].1);
        let headers = pairs(&[("Stripe-Signature", value.as_bytes())]);
        assert_eq!(reason(&stripe, &headers, V1), expected, "{stamp}");
    }
    let absent = pairs(&[("Stripe-Signature", format!("v1={V1_HEX}").as_bytes())]);
    assert_eq!(reason(&stripe, &absent, V1), Some(Reason::TimestampMissing));
    let twice = format!("t={NOW},t={NOW},v1={V1_HEX}");
    let twice = pairs(&[("Stripe-Signature", twice.as_bytes())]);
    assert_eq!(reason(&stripe, &twice, V1), Some(Reason::TimestampMalformed));
}

/// SG-10: the stamp is inside the signed bytes.
#[test]
fn a_fresh_timestamp_does_not_revive_an_old_signature() {
    let stripe = preset(Preset::Stripe);
    let signed_at = now() - jiff::SignedDuration::from_secs(4000);
    let old = sign(&stripe, &secret(SECRET), V1, "", signed_at).unwrap();
    let fresh = old[0].1.replace(&(NOW - 4000).to_string(), &NOW.to_string());
    let headers = pairs(&[("stripe-signature", fresh.as_bytes())]);
    assert_eq!(reason(&stripe, &headers, V1), Some(Reason::Mismatch));
}

/// Headers that note which names were asked for.
struct Noting(Pairs, Mutex<Vec<String>>);

impl Headers for Noting {
    fn values(&self, name: &str) -> Vec<&[u8]> {
        self.1.lock().unwrap().push(name.to_owned());
        self.0.values(name)
    }
}

/// SG-11: dedupe key taken from an unsigned header.
#[test]
fn unsigned_delivery_ids_are_never_looked_at() {
    let mut verdicts = Vec::new();
    for id in [&b"first"[..], b"second"] {
        let mut headers = signed(V1_HEX);
        headers.extend(pairs(&[("X-Webhook-Delivery-Id", id), ("X-Request-Id", id)]));
        let headers = Noting(headers, Mutex::default());
        let verdict = check(&preset(Preset::Geonode), &headers, V1);
        assert!(matches!(verdict, Verdict::Verified(_)));
        assert_eq!(headers.1.into_inner().unwrap(), ["x-webhook-signature", "content-encoding"]);
        verdicts.push(verdict);
    }
    assert_eq!(verdicts[0], verdicts[1]);
}

/// SM-07, SM-08: several secrets in several stages, any of which may match.
#[test]
fn the_verdict_names_the_secret_that_matched() {
    let scheme = preset(Preset::Geonode);
    let secrets = [
        secret("test-secret-0").with_stage(Stage::Previous).with_webhook_id("w-1").unwrap(),
        secret(SECRET).with_label("extract").unwrap(),
    ];
    for (hex, label, stage, webhook) in [
        (V1_HEX, "extract", Stage::Current, None),
        (V1_OLD_HEX, "previous", Stage::Previous, Some("w-1")),
    ] {
        let headers = signed(hex);
        let Verdict::Verified(found) = verify(&scheme, &headers, V1, &secrets, now()) else {
            panic!("not verified");
        };
        assert_eq!((found.label.as_str(), found.stage), (label, stage));
        assert_eq!(found.webhook_id.as_deref(), webhook);
    }
}

/// OB-02: debug help that becomes a leak.
#[test]
fn diagnostics_show_shapes_and_no_values() {
    let verifier = Verifier::new(preset(Preset::Geonode), &[secret(SECRET)]).unwrap();
    let mut headers = signed(V1_OLD_HEX);
    headers.extend(pairs(&[
        ("Content-Type", b"application/json; charset=utf-8; marker"),
        ("Content-Encoding", b"gzip"),
    ]));
    let found = verifier.diagnose(Reason::Mismatch.code(), &headers, V1);
    assert_eq!(found.code, "signature_mismatch");
    assert_eq!((found.signature_bytes.as_slice(), found.body_bytes), (&[64_usize][..], 58));
    assert_eq!(found.content_type.as_deref(), Some("application/json"));
    assert_eq!((found.encoded, found.key_labels.as_slice()), (true, &["current".to_owned()][..]));
    assert_eq!(found.body_hash.len(), 12);
    let shown = format!("{found:?} {verifier:?} {:?}", secret(SECRET));
    for marker in [SECRET, V1_OLD_HEX, V1_HEX, "j1", "marker"] {
        assert!(!shown.contains(marker), "{marker} in {shown}");
    }
}
