//! Schemes as configured, and what each dimension accepts.

use super::*;
use crate::signature::scheme::SchemeError;
use crate::signature::sign::{SignError, sign};
use crate::signature::verdict::Unconfigured;
use crate::signature::{SECRETS_MAX, Verifier};

const STANDARD_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn fault(json: &str) -> SchemeError {
    Scheme::try_from(serde_json::from_str::<SchemeConfig>(json).unwrap()).unwrap_err()
}

/// An HMAC scheme with `change` put over a valid body-only one.
fn hmac(change: &str) -> String {
    let mut config: serde_json::Value = serde_json::from_str(
        r#"{"headers":["x-sig"],"grammar":"bare","encodings":["hex"],"signed":"{body}","keys":["whole"]}"#,
    )
    .unwrap();
    let change: serde_json::Map<String, serde_json::Value> = serde_json::from_str(change).unwrap();
    config.as_object_mut().unwrap().extend(change);
    serde_json::json!({ "hmac": config }).to_string()
}

#[test]
fn every_preset_is_a_valid_scheme_with_all_its_headers() {
    for kind in Preset::ALL {
        let found = scheme(&format!(r#"{{"preset":{{"name":"{}"}}}}"#, kind.name()));
        assert_eq!(found, preset(kind));
    }
    assert_eq!(preset(Preset::StandardWebhooks).headers.len(), 2);
    assert_eq!(Preset::default(), Preset::Geonode);
}

#[test]
fn contradictions_are_refused_when_a_scheme_is_built() {
    let stamp = r#"{"from":{"headers":["x-time"]},"unit":"seconds","tolerance_secs":300}"#;
    for (change, expected) in [
        (r#"{"headers":[]}"#.to_owned(), SchemeError::Headers),
        (r#"{"headers":["x-sig","X-Sig "]}"#.to_owned(), SchemeError::Headers),
        (r#"{"encodings":[]}"#.to_owned(), SchemeError::Encodings),
        (r#"{"keys":["whole","whole"]}"#.to_owned(), SchemeError::Keys),
        (r#"{"grammar":{"prefixed":{"prefix":""}}}"#.to_owned(), SchemeError::Word),
        (r#"{"grammar":{"key-value":{"key":"v1="}}}"#.to_owned(), SchemeError::Word),
        (r#"{"grammar":{"versioned":{"version":"v 1"}}}"#.to_owned(), SchemeError::Word),
        (r#"{"signed":"{timestamp}.{body}"}"#.to_owned(), SchemeError::Timestamp),
        (format!(r#"{{"timestamp":{stamp}}}"#), SchemeError::Timestamp),
        (
            format!(r#"{{"signed":"{{id}}.{{timestamp}}.{{body}}","timestamp":{stamp}}}"#),
            SchemeError::Id,
        ),
        (r#"{"id":{"headers":["x-id"]}}"#.to_owned(), SchemeError::Id),
        (
            format!(
                r#"{{"signed":"{{timestamp}}.{{body}}","timestamp":{}}}"#,
                stamp.replace("300", "0")
            ),
            SchemeError::Tolerance,
        ),
        (
            format!(
                r#"{{"signed":"{{timestamp}}.{{body}}","timestamp":{}}}"#,
                stamp.replace("300", "86401")
            ),
            SchemeError::Tolerance,
        ),
        (
            format!(
                r#"{{"signed":"{{timestamp}}.{{body}}","timestamp":{}}}"#,
                stamp.replace(r#"{"headers":["x-time"]}"#, r#"{"signature-key":"t"}"#)
            ),
            SchemeError::SignatureKey,
        ),
    ] {
        assert_eq!(fault(&hmac(&change)), expected, "{change}");
    }
    let tolerance = r#"{"preset":{"name":"geonode","tolerance_secs":300}}"#;
    assert_eq!(fault(tolerance), SchemeError::Timestamp);
    assert_eq!(fault(r#"{"static-header":{"headers":[]}}"#), SchemeError::Headers);
}

#[test]
fn unknown_keys_and_bad_header_names_are_refused() {
    for json in [
        r#"{"preset":{"name":"geonode","header":["x"]}}"#,
        r#"{"preset":{"name":"nobody"}}"#,
        r#"{"preset":{"name":"geonode","headers":["x sig"]}}"#,
        r#"{"preset":{"name":"geonode","headers":[""]}}"#,
        r#"{"preset":{"name":"geonode","headers":["x:sig"]}}"#,
        &hmac(r#"{"extra":1}"#),
        &hmac(r#"{"signed":"{body}.{timestamp}"}"#),
        &hmac(r#"{"grammar":{"prefixed":{"prefix":"a=","mode":"x"}}}"#),
    ] {
        assert!(serde_json::from_str::<Scheme>(json).is_err(), "{json}");
    }
}

#[test]
fn a_preset_takes_other_headers_and_another_tolerance() {
    let renamed = scheme(r#"{"preset":{"name":"body-hex","headers":[" X-Scrape-Signature "]}}"#);
    let headers = pairs(&[("X-SCRAPE-SIGNATURE", V1_HEX.as_bytes())]);
    assert_eq!(reason(&renamed, &headers, V1), None);
    assert_eq!(reason(&renamed, &signed(V1_HEX), V1), Some(Reason::Missing));

    let patient = scheme(r#"{"preset":{"name":"stripe","tolerance_secs":5000}}"#);
    let signed_at = now() - jiff::SignedDuration::from_secs(4000);
    let old = sign(&patient, &secret(SECRET), V1, "", signed_at).unwrap();
    let headers = pairs(&[("stripe-signature", old[0].1.as_bytes())]);
    assert_eq!(reason(&patient, &headers, V1), None);
    assert_eq!(reason(&preset(Preset::Stripe), &headers, V1), Some(Reason::Stale));
}

/// SG-04: a prefix put into the secret; the key as a whole, without prefix, or decoded.
#[test]
fn geonode_accepts_each_candidate_key_and_body_hex_only_the_whole_text() {
    let whole = secret(STANDARD_SECRET);
    let stripped = secret(STANDARD_SECRET.strip_prefix("whsec_").unwrap());
    let lenient = Verifier::new(preset(Preset::Geonode), std::slice::from_ref(&whole)).unwrap();
    let strict = Verifier::new(preset(Preset::BodyHex), std::slice::from_ref(&whole)).unwrap();
    let decoded = scheme(&hmac(r#"{"keys":["base64"]}"#));
    for (scheme, secret, is_strict) in [
        (preset(Preset::BodyHex), &whole, true),
        (preset(Preset::BodyHex), &stripped, false),
        (decoded, &stripped, false),
    ] {
        let headers = signed(&sign(&scheme, secret, V1, "", now()).unwrap()[0].1);
        assert!(matches!(lenient.verify(&headers, V1, now()), Verdict::Verified(_)));
        let found = strict.verify(&headers, V1, now());
        assert_eq!(matches!(found, Verdict::Verified(_)), is_strict);
    }
}

/// The example of the Standard Webhooks specification's reference libraries.
#[test]
fn the_published_standard_webhooks_vector_is_accepted() {
    let body = br#"{"test": 2432232314}"#;
    let secrets = [secret(STANDARD_SECRET)];
    let at = Timestamp::from_second(1_614_265_330).unwrap();
    let digest = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    let unprefixed = [secret(STANDARD_SECRET.strip_prefix("whsec_").unwrap())];
    for names in [
        ["webhook-id", "webhook-timestamp", "webhook-signature"],
        ["svix-id", "svix-timestamp", "svix-signature"],
    ] {
        let signature = format!("v1,{digest}");
        let headers = pairs(&[
            (names[0], b"msg_p5jXN8AQM9LWM0D4loKWxJek"),
            (names[1], b"1614265330"),
            (names[2], signature.as_bytes()),
        ]);
        let scheme = preset(Preset::StandardWebhooks);
        for secrets in [&secrets, &unprefixed] {
            let found = verify(&scheme, &headers, body, secrets, at);
            assert!(matches!(found, Verdict::Verified(_)), "{found:?}");
        }
    }
}

#[test]
fn any_of_several_signatures_may_match_up_to_the_limit() {
    let stripe = preset(Preset::Stripe);
    let good = sign(&stripe, &secret(SECRET), V1, "", now()).unwrap()[0].1.clone();
    let (stamp, v1) = good.split_once(',').unwrap();
    let junk = format!("v1={}", "0".repeat(64));
    let header = |value: String| pairs(&[("stripe-signature", value.as_bytes())]);
    let list = |count: usize| vec![junk.clone(); count].join(",");
    assert_eq!(reason(&stripe, &header(format!("{stamp},{},{v1}", list(7))), V1), None);
    assert_eq!(reason(&stripe, &header(format!("{stamp},v0=old,v1=short, {v1} ")), V1), None);
    let many = header(format!("{stamp},{},{v1}", list(8)));
    assert_eq!(reason(&stripe, &many, V1), Some(Reason::TooManySignatures));
    let other = header(format!("{stamp},v0={}", "0".repeat(64)));
    assert_eq!(reason(&stripe, &other, V1), Some(Reason::WrongAlgorithm));
    let loose = header(format!("{stamp},loose,{v1}"));
    assert_eq!(reason(&stripe, &loose, V1), Some(Reason::Malformed));

    let repeated: Pairs = signed(V1_OLD_HEX).into_iter().chain(signed(V1_HEX)).collect();
    assert_eq!(reason(&preset(Preset::Geonode), &repeated, V1), None);
    let repeated: Pairs = (0..9).flat_map(|_| signed(V1_OLD_HEX)).collect();
    let found = reason(&preset(Preset::Geonode), &repeated, V1);
    assert_eq!(found, Some(Reason::TooManySignatures));
}

#[test]
fn standard_webhooks_refuses_other_versions_and_ids_that_move_the_borders() {
    let scheme = preset(Preset::StandardWebhooks);
    let secrets = [secret(STANDARD_SECRET)];
    let good = sign(&scheme, &secrets[0], V1, "msg_1", now()).unwrap();
    let with = |name: &str, value: Option<&str>| -> Pairs {
        let other = good.iter().filter(|(other, _)| other != name);
        let mut headers: Pairs =
            other.map(|(name, value)| (name.clone(), value.clone().into_bytes())).collect();
        headers.extend(value.map(|value| (name.to_owned(), value.as_bytes().to_vec())));
        headers
    };
    let found = |headers: &Pairs| match verify(&scheme, headers, V1, &secrets, now()) {
        Verdict::Rejected(reason) => reason.code(),
        other => panic!("{other:?}"),
    };
    let asymmetric = good[2].1.replace("v1,", "v1a,");
    assert_eq!(found(&with("webhook-signature", Some(&asymmetric))), "signature_wrong_algorithm");
    assert_eq!(found(&with("webhook-signature", Some("v1"))), "signature_malformed");
    assert_eq!(found(&with("webhook-signature", Some("v1,"))), "signature_empty_digest");
    assert_eq!(found(&with("webhook-id", None)), "signed_id_missing");
    assert_eq!(found(&with("webhook-id", Some("a.b"))), "signed_id_malformed");
    assert_eq!(found(&with("webhook-id", Some("msg_2"))), "signature_mismatch");
    assert_eq!(found(&with("webhook-timestamp", None)), "timestamp_missing");
    assert_eq!(sign(&scheme, &secrets[0], V1, "a.b", now()), Err(SignError::Id));
}

#[test]
fn milliseconds_and_iso_timestamps_keep_the_same_window() {
    for (unit, late, later) in [
        ("milliseconds", format!("{}", (NOW - 300) * 1000), format!("{}", (NOW - 300) * 1000 - 1)),
        ("iso8601", "2026-11-30T00:48:20.000Z".to_owned(), "2026-11-30T00:48:19.999Z".to_owned()),
    ] {
        let config = hmac(&format!(
            r#"{{"signed":"{{timestamp}}.{{body}}","timestamp":{{"from":{{"headers":["x-time"]}},"unit":"{unit}","tolerance_secs":300}}}}"#
        ));
        let scheme = scheme(&config);
        for (stamp, expected) in [(late, None), (later, Some(Reason::Stale))] {
            let content = [stamp.as_bytes(), b".", V1].concat();
            let digest =
                sign(&preset(Preset::BodyHex), &secret(SECRET), &content, "", now()).unwrap();
            let headers = pairs(&[("x-sig", digest[0].1.as_bytes()), ("X-Time", stamp.as_bytes())]);
            if unit == "milliseconds" {
                assert_eq!(reason(&scheme, &headers, V1), expected, "{unit} {stamp}");
            } else {
                let at: Timestamp = "2026-11-30T00:53:20Z".parse().unwrap();
                let found = verify(&scheme, &headers, V1, &[secret(SECRET)], at);
                assert_eq!(matches!(found, Verdict::Verified(_)), expected.is_none());
            }
        }
    }
}

#[test]
fn a_static_header_must_equal_a_secret() {
    let scheme = preset(Preset::StaticHeader);
    let header = |value: &[u8]| pairs(&[("Authorization", value)]);
    assert_eq!(reason(&scheme, &header(b" test-secret-1 "), V1), None);
    assert_eq!(reason(&scheme, &header(b"test-secret-2"), V1), Some(Reason::Mismatch));
    assert_eq!(reason(&scheme, &header(b"test-secret-1x"), V1), Some(Reason::Mismatch));
    assert_eq!(reason(&scheme, &header(b"\xff\x00"), V1), Some(Reason::Mismatch));
    assert_eq!(reason(&scheme, &header(b""), V1), Some(Reason::EmptyDigest));
    assert_eq!(reason(&scheme, &pairs(&[]), V1), Some(Reason::Missing));
    let long = vec![b'a'; 8 * 1024 + 1];
    assert_eq!(reason(&scheme, &header(&long), V1), Some(Reason::HeaderTooLong));
    assert!(!scheme.signs_body());
}

/// SG-06: a secret that makes no key is a fault of ours, not of the sender.
#[test]
fn an_unusable_secret_turns_a_mismatch_into_unconfigured() {
    let scheme = preset(Preset::StandardWebhooks);
    let (good, bad) = (secret(STANDARD_SECRET), secret("whsec_!!"));
    let alone = Verifier::new(scheme.clone(), std::slice::from_ref(&bad)).unwrap_err();
    assert_eq!(alone, Unconfigured::UnusableSecret);
    assert_eq!(sign(&scheme, &bad, V1, "m", now()), Err(SignError::Key));

    let both = Verifier::new(scheme.clone(), &[bad, good.clone()]).unwrap();
    assert!(both.has_unusable_secret());
    let headers = |body: &[u8]| -> Pairs {
        let list = sign(&scheme, &good, body, "m", now()).unwrap();
        list.into_iter().map(|(name, value)| (name, value.into_bytes())).collect()
    };
    assert!(matches!(both.verify(&headers(V1), V1, now()), Verdict::Verified(_)));
    let missed = both.verify(&headers(V2), V1, now());
    assert_eq!(missed, Verdict::Unconfigured(Unconfigured::UnusableSecret));
}

#[test]
fn thirty_secrets_are_tried_and_one_more_is_refused() {
    let mut secrets: Vec<Secret> = (2..=SECRETS_MAX).map(|n| secret(&format!("s-{n}"))).collect();
    secrets.push(secret(SECRET));
    let scheme = preset(Preset::Geonode);
    let found = verify(&scheme, &signed(V1_HEX), V1, &secrets, now());
    assert!(matches!(found, Verdict::Verified(_)));
    secrets.push(secret("one-more"));
    let found = verify(&scheme, &signed(V1_HEX), V1, &secrets, now());
    assert_eq!(found, Verdict::Unconfigured(Unconfigured::TooManySecrets));
}

#[test]
fn equal_keys_are_hashed_once() {
    let plain = Verifier::new(preset(Preset::Geonode), &[secret(SECRET), secret(SECRET)]).unwrap();
    assert_eq!(plain.keys.len(), 1);
    let prefixed = Verifier::new(preset(Preset::Geonode), &[secret(STANDARD_SECRET)]).unwrap();
    assert_eq!(prefixed.keys.len(), 3);
}
