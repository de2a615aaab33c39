use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use hmac::Mac as _;

use super::*;
use crate::signature::dimension::{BodyForm, KeyTreatment, SignedContent};
use crate::signature::keyed;
use crate::signature::preset::Preset;
use crate::signature::scheme::PresetConfig;
use crate::signature::sign::sign;

/// The secret and the body of the known vectors.
const SECRET: &str = "test-secret-1";
const V1: &[u8] = br#"{"job_id":"j1","event_type":"extract_completed","id":"d1"}"#;
const V1_HEX: &str = "ea826bf319909e18b85667f620fe669a612ab8a66c889d24005444e23c54baf7";
/// 2026-11-30T12:00:00Z.
const AT: i64 = 1_796_040_000;

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

/// Headers as a platform sends them, with these among them.
fn delivered(headers: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    let usual = [
        ("Host", "hooks.example.org"),
        ("Content-Type", "application/json"),
        ("Content-Length", "1796040000"),
        ("User-Agent", "scraper-api-webhook/1.0"),
        ("X-Webhook-Event", "extract_completed"),
    ];
    let all = usual.iter().chain(headers);
    all.map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect()
}

fn mac(key: &[u8], content: &[u8]) -> String {
    let mut state = keyed(key).unwrap();
    state.update(content);
    hex::encode(state.finalize().into_bytes())
}

/// The one form that is found, and its shortest configuration.
#[track_caller]
fn only(headers: &[(&str, &str)], body: &[u8], secrets: &[Secret]) -> (Form, Option<PresetConfig>) {
    let headers = delivered(headers);
    let detected = detect(&headers, body, secrets);
    let [form] = <[Form; 1]>::try_from(detected.forms).expect("one form");
    let short = simplest(&form, &headers, body, secrets);
    (form, short)
}

fn hmac(form: &Form) -> &HmacConfig {
    let SchemeConfig::Hmac(config) = &form.config else { panic!("{form:?}") };
    config
}

/// What each preset sends is found as it is, and the preset named.
#[test]
fn what_each_preset_signs_is_found() {
    let now = Timestamp::from_second(AT).unwrap();
    for (preset, text, wanted) in [
        // Of what it accepts, the platform's preset sends the bare form.
        (Preset::Geonode, SECRET, Preset::BodyHex),
        (Preset::Github, SECRET, Preset::Github),
        (Preset::Stripe, "whsec_abc", Preset::Stripe),
        (Preset::StandardWebhooks, "whsec_dGVzdC1zZWNyZXQtMQ==", Preset::StandardWebhooks),
        (Preset::BodyHex, SECRET, Preset::BodyHex),
        (Preset::StaticHeader, SECRET, Preset::StaticHeader),
    ] {
        let scheme = preset.scheme().unwrap();
        let secret = secret(text).with_webhook_id("w1").unwrap();
        let others = [self::secret("another"), secret.clone()];
        let sent = sign(&scheme, &secret, V1, "msg_1", now).unwrap();
        let sent: Vec<_> = sent.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let (form, short) = only(&sent, V1, &others);
        assert_eq!(form.webhook_id.as_deref(), Some("w1"), "{preset:?}");
        let short = short.unwrap();
        assert_eq!((short.name, short.headers, short.body), (wanted, None, None), "{preset:?}");
        let signs_time = matches!(preset, Preset::Stripe | Preset::StandardWebhooks);
        assert_eq!(form.signed_at, signs_time.then_some(now), "{preset:?}");
    }
}

/// SG-04, SG-05: every spelling of one digest is found, under its own grammar and encoding.
#[test]
fn every_spelling_of_a_digest_is_found() {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
    let digest = hex::decode(V1_HEX).unwrap();
    let (padded, unpadded) = (STANDARD.encode(&digest), STANDARD_NO_PAD.encode(&digest));
    let url = URL_SAFE_NO_PAD.encode(&digest);
    for value in [
        V1_HEX.to_owned(),
        V1_HEX.to_uppercase(),
        format!(" {V1_HEX} "),
        format!("sha256={V1_HEX}"),
        format!("sha256= {V1_HEX}"),
        format!("SHA256={V1_HEX}"),
        format!("hmac-sha256:{V1_HEX}"),
        format!("sha256 {V1_HEX}"),
        format!("a=1,v1={V1_HEX}"),
        format!("v1,{V1_HEX} v2,00"),
        padded.clone(),
        unpadded,
        url,
        format!("sha256={padded}"),
        format!("x=1,v1={padded}"),
        format!("v1,{padded}"),
    ] {
        let (form, _) = only(&[("X-Signature", &value)], V1, &[secret(SECRET)]);
        assert_eq!(hmac(&form).headers[0].as_str(), "x-signature", "{value}");
        assert_eq!(hmac(&form).signed, SignedContent::Body, "{value}");
        assert_eq!(hmac(&form).keys, [KeyTreatment::Whole], "{value}");
    }
}

/// Every way in which a key is made of a secret.
#[test]
fn every_treatment_of_a_secret_is_found() {
    let strip = |prefix: &str| KeyTreatment::StripPrefix(prefix.to_owned());
    let decode = |prefix: &str| KeyTreatment::StripPrefixBase64(prefix.to_owned());
    for (text, key, wanted) in [
        ("whsec_abc", &b"whsec_abc"[..], KeyTreatment::Whole),
        ("whsec_abc!", b"abc!", strip("whsec_")),
        ("whsec_dGVzdA==", b"test", decode("whsec_")),
        ("dGVzdC1zZWNyZXQ=", b"test-secret", KeyTreatment::Base64),
        ("746573742d736563726574", b"test-secret", KeyTreatment::Hex),
        ("sk_live_abc", b"abc", strip("sk_live_")),
        ("sk_dGVzdA", b"test", decode("sk_")),
    ] {
        let signature = mac(key, V1);
        let (form, short) = only(&[("X-Webhook-Signature", &signature)], V1, &[secret(text)]);
        assert_eq!(hmac(&form).keys, [wanted], "{text}");
        let is_usual = text.starts_with("whsec_");
        assert_eq!(short.is_some(), is_usual, "{text}: {short:?}");
    }
}

/// Timestamps in headers and lists, in every unit, alone and with an id.
#[test]
fn every_signed_content_is_found() {
    let key = SECRET.as_bytes();
    let id = "9c1f4f8e-6f9e-4a3e-9a39-000000000001";
    for stamp in ["1796040000", "1796040000123", "2026-11-30T12:00:00Z"] {
        let content = |before: &str| [before.as_bytes(), V1].concat();
        let in_header = mac(key, &content(&format!("{stamp}.")));
        let headers = [("X-Timestamp", stamp), ("X-Signature", &in_header)];
        let (form, _) = only(&headers, V1, &[secret(SECRET)]);
        assert_eq!(hmac(&form).signed, SignedContent::TimestampBody);
        assert_eq!(form.signed_at.map(Timestamp::as_second), Some(AT), "{stamp}");
        let list = format!("t={stamp},v1={in_header}");
        let (form, short) = only(&[("Stripe-Signature", &list)], V1, &[secret(SECRET)]);
        assert_eq!(hmac(&form).signed, SignedContent::TimestampBody);
        assert_eq!(short.is_some(), stamp == "1796040000", "{stamp}");
        let with_id = mac(key, &content(&format!("{id}.{stamp}.")));
        let headers = [("X-Delivery-Id", id), ("X-Timestamp", stamp), ("X-Signature", &with_id)];
        let (form, _) = only(&headers, V1, &[secret(SECRET)]);
        assert_eq!(hmac(&form).signed, SignedContent::IdTimestampBody, "{stamp}");
    }
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// SG-09: compressed bodies are found signed as they were sent, and as they were before.
#[test]
fn compressed_bodies_are_found_in_both_forms() {
    let body = gzip(V1);
    for (signed, form) in [(&body[..], BodyForm::AsReceived), (V1, BodyForm::Inflated)] {
        let signature = mac(SECRET.as_bytes(), signed);
        let headers = [("Content-Encoding", "gzip"), ("X-Webhook-Signature", &signature)];
        let (found, short) = only(&headers, &body, &[secret(SECRET)]);
        assert_eq!(hmac(&found).body, form);
        let changed = (form == BodyForm::Inflated).then_some(form);
        assert_eq!(short.unwrap().body, changed);
    }
    // What cannot be looked into is told, and does not end the search.
    let zeros = gzip(&vec![0; 20_000_000]);
    let signature = mac(SECRET.as_bytes(), &zeros);
    for (coding, reason) in [("gzip", Reason::BodyTooLarge), ("br", Reason::UnsupportedCoding)] {
        let headers = delivered(&[("Content-Encoding", coding), ("X-Signature", &signature)]);
        let detected = detect(&headers, &zeros, &[secret(SECRET)]);
        assert_eq!(detected.tried.not_inflated, Some(reason));
    }
}

/// Of two headers that carry the same, both are told, in the order of arrival.
#[test]
fn two_headers_are_two_forms() {
    let upper = V1_HEX.to_uppercase();
    let headers = delivered(&[("X-Signature", &upper), ("X-Signature-Lowercase", V1_HEX)]);
    let detected = detect(&headers, V1, &[secret(SECRET)]);
    let names: Vec<_> = detected.forms.iter().map(|form| hmac(form).headers[0].as_str()).collect();
    assert_eq!(names, ["x-signature", "x-signature-lowercase"]);
}

/// With a wrong secret nothing is found, and what was tried shows names and counts alone.
#[test]
fn a_wrong_secret_finds_nothing() {
    let headers = delivered(&[
        ("X-Timestamp", "1796040000"),
        ("X-Delivery-Id", "d-1"),
        ("X-Webhook-Signature", V1_HEX),
    ]);
    let detected = detect(&headers, V1, &[secret("wrong-marker-1"), secret("wrong-marker-2")]);
    assert_eq!(detected.forms, []);
    let tried = detected.tried;
    assert_eq!(
        (tried.headers.as_slice(), tried.digests),
        (&["x-webhook-signature".to_owned()][..], 1)
    );
    assert_eq!((tried.timestamps.as_slice(), tried.keys), (&["x-timestamp".to_owned()][..], 2));
    assert_eq!(tried.ids[0], "x-delivery-id");
    assert!(!tried.is_cut && tried.contents > 2);
    let told = format!("{tried:?}");
    assert!(!told.contains("marker") && !told.contains(V1_HEX), "{told}");
    assert_eq!(detect(&headers, V1, &[]).forms, []);
    assert_eq!(detect(&[], V1, &[secret(SECRET)]).tried.digests, 0);
}

/// SG-03: whatever stands in a header, the search ends and finds nothing.
#[test]
fn odd_headers_are_no_trouble() {
    let long = "a".repeat(10_000);
    let many: Vec<String> = (0..500).map(|number| format!("{number:064}")).collect();
    let many: Vec<_> = many.iter().map(|value| ("X-Many", value.as_str())).collect();
    let detected = detect(&delivered(&many), V1, &[secret(SECRET)]);
    assert_eq!(detected.forms, []);
    assert!(detected.tried.digests <= 64, "{}", detected.tried.digests);
    for value in
        ["", "=", ",", " ", "v1=", "v1,", "t=1,v1=", "é", &long, "sha256=", ",,,", "a=b=c,d"]
    {
        let headers = delivered(&[("X-Signature", value), ("", "x"), ("na me", V1_HEX)]);
        assert_eq!(detect(&headers, V1, &[secret(SECRET)]).forms, [], "{value}");
    }
    let bytes = vec![("X-Signature".to_owned(), vec![0xff; 64])];
    assert_eq!(detect(&bytes, V1, &[secret(SECRET)]).forms, []);
}

/// What is found is written down as a configuration, and read back as the same scheme.
#[test]
fn a_configuration_is_written_and_read_back() {
    for preset in Preset::ALL {
        let config = preset.config();
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<SchemeConfig>(&json).unwrap(), config, "{json}");
    }
}
