//! Deliveries as other platforms sign them, read out of files: the settings that are printed accept
//! them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::ports::Clock as _;
use domain::signature::preset::Preset;
use domain::signature::secret::Secret;
use domain::signature::sign::sign;
use domain::time::Timestamp;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use system::SystemClock;

use crate::bench::{Folder, Ran, ended};
use crate::markers::{BODY as MARKED, KEY as MARKED_KEY, SECRET, assert_none};

/// Where nobody answers: reading a file asks nobody.
const NOBODY: &str = "http://127.0.0.1:9";

/// A body with something that nobody may see.
pub(crate) fn body() -> Vec<u8> {
    format!(
        r#"{{"event":"extract_completed","webhook_id":"w-7","data":{{"job_id":"j1","html":"{MARKED}"}}}}"#
    )
    .into_bytes()
}

pub(crate) fn mac(key: &[u8], content: &[u8]) -> String {
    let mut state = Hmac::<Sha256>::new_from_slice(key).unwrap();
    state.update(content);
    hex::encode(state.finalize().into_bytes())
}

/// A request as it is kept in a file.
pub(crate) fn request(headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut lines: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    lines.insert(0, "POST /webhook HTTP/1.1\r\nHost: hooks.example.org".to_owned());
    lines.push(format!("Content-Length: {}\r\n\r\n", body.len()));
    [lines.join("\r\n").as_bytes(), body].concat()
}

/// Runs `gleaner doctor --from` on a request.
pub(crate) async fn from(folder: &Folder, bytes: &[u8], variables: &[(&str, &str)]) -> Ran {
    folder.write("delivery.http", bytes);
    let mut command = folder.command(&["doctor", "--json", "--from", "delivery.http"]);
    ended(command.envs(variables.iter().copied()).spawn().unwrap()).await
}

/// What was found of one delivery.
pub(crate) fn capture(ran: &Ran) -> Value {
    ran.of_type("capture").remove(0)
}

/// Finds settings for a delivery, and shows that they accept it; gives them.
async fn settled(secret: &str, headers: &[(&str, &str)], body: &[u8]) -> BTreeMap<String, String> {
    let folder = Folder::new(NOBODY);
    let bytes = request(headers, body);
    let given = [("GLEANER_WEBHOOK_SECRET", secret)];
    let ran = from(&folder, &bytes, &given).await.expect(0);
    let told = format!("{}{}", ran.out, ran.err);
    assert!(!told.contains(secret), "{told}");
    assert_none(&told, &[], "doctor --from");
    let found = capture(&ran)["found"][0].clone();
    let mut all = Vec::new();
    for written in [found["settings"].as_array().unwrap().clone(), vec![found["scheme"].clone()]] {
        let variables: BTreeMap<String, String> = written
            .iter()
            .map(|it| {
                let name = it["name"].as_str().unwrap().replace('.', "_").to_ascii_uppercase();
                (format!("GLEANER_{name}"), it["text"].as_str().unwrap().to_owned())
            })
            .collect();
        let mut named: Vec<_> =
            variables.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        named.extend(given);
        let ran = from(&folder, &bytes, &named).await.expect(0);
        assert_eq!(capture(&ran)["in_force"]["accepted"], true, "{variables:?}: {ran:?}");
        all.push(variables);
    }
    all.remove(0)
}

fn preset(settings: &BTreeMap<String, String>) -> (&str, Option<&str>) {
    let get = |name: &str| settings.get(name).map(String::as_str);
    (get("GLEANER_SIGNING_PRESET").unwrap_or("none"), get("GLEANER_SIGNING_HEADERS"))
}

fn now() -> Timestamp {
    SystemClock.now()
}

/// Every preset's own form leads to that preset.
#[tokio::test(flavor = "multi_thread")]
async fn each_preset_is_found() {
    for (of, secret, wanted) in [
        // What the platform's preset sends is the plain form.
        (Preset::Geonode, SECRET, "body-hex"),
        (Preset::Github, SECRET, "github"),
        (Preset::Stripe, "whsec_A7b9c3", "stripe"),
        (Preset::StandardWebhooks, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "standard-webhooks"),
        (Preset::BodyHex, SECRET, "body-hex"),
        (Preset::StaticHeader, SECRET, "static-header"),
    ] {
        let sent = sign(
            &of.scheme().unwrap(),
            &Secret::new(secret).unwrap(),
            &body(),
            "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",
            now(),
        );
        let sent = sent.unwrap();
        let sent: Vec<_> = sent.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let settings = settled(secret, &sent, &body()).await;
        assert_eq!(preset(&settings), (wanted, None), "{of:?}");
    }
}

/// The platform's possible forms, of which nobody knows which it is: with any of them the default
/// goes on working, or a preset is named that does.
#[tokio::test(flavor = "multi_thread")]
async fn the_platforms_possible_forms_are_found() {
    use base64::Engine as _;
    let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let rest = key.strip_prefix("whsec_").unwrap();
    let decoded = base64::engine::general_purpose::STANDARD.decode(rest).unwrap();
    for (bytes, said) in [
        (key.as_bytes(), "with the whole secret"),
        (rest.as_bytes(), "with the secret without `whsec_`"),
        (&decoded, "with the base64 of the secret after `whsec_`"),
    ] {
        let digest = mac(bytes, &body());
        let base64 =
            base64::engine::general_purpose::STANDARD.encode(hex::decode(&digest).unwrap());
        for value in [digest.clone(), format!("sha256={digest}"), base64] {
            let headers = [("X-Webhook-Signature", value.as_str())];
            let folder = Folder::new(NOBODY);
            let given = [("GLEANER_WEBHOOK_SECRET", key)];
            let ran = from(&folder, &request(&headers, &body()), &given).await.expect(0);
            let told = capture(&ran);
            assert_eq!(told["in_force"]["accepted"], true, "{ran:?}");
            assert!(told["found"][0]["form"].as_str().unwrap().contains(said), "{told:#}");
            settled(key, &headers, &body()).await;
        }
    }
}

/// The odd forms of other platforms.
#[tokio::test(flavor = "multi_thread")]
async fn odd_forms_are_found() {
    let (key, body) = (SECRET.as_bytes(), body());
    let digest = mac(key, &body);
    let labelled = format!("sha256={digest}");
    // Firecrawl, Outscraper (whose secret is the API key) and Scrpy, whose timestamp is not signed.
    for header in ["X-Firecrawl-Signature", "X-Hub-Signature-256", "X-Scrpy-Signature"] {
        let headers = [(header, labelled.as_str()), ("X-Scrpy-Timestamp", "1796040000")];
        let settings = settled(SECRET, &headers, &body).await;
        let lower = header.to_ascii_lowercase();
        let own = (header != "X-Hub-Signature-256").then_some(lower.as_str());
        assert_eq!(preset(&settings), ("github", own));
    }
    // ScrapeHub: the digits alone.
    let settings = settled(SECRET, &[("X-ScrapeHub-Signature", &digest)], &body).await;
    assert_eq!(preset(&settings), ("body-hex", Some("x-scrapehub-signature")));
    // Scrapfly: upper case, and lower case in a second header.
    let upper = digest.to_uppercase();
    let headers = [
        ("X-Scrapfly-Webhook-Signature", upper.as_str()),
        ("X-Scrapfly-Webhook-Signature-Lowercase", &digest),
        ("X-Scrapfly-Webhook-Job-Id", "9c1f4f8e-6f9e-4a3e-9a39-000000000001"),
    ];
    let settings = settled(SECRET, &headers, &body).await;
    assert_eq!(preset(&settings), ("body-hex", Some("x-scrapfly-webhook-signature")));
    // Its alerts, Spider and Sairo sign a timestamp, in a header of its own or in a list.
    let stamp = now().as_second().to_string();
    let signed = mac(key, &[stamp.as_bytes(), b".", &body].concat());
    let headers = [
        ("X-Scrapfly-Webhook-Timestamp", stamp.as_str()),
        ("X-Scrapfly-Webhook-Signature", &signed),
    ];
    let settings = settled(SECRET, &headers, &body).await;
    assert!(settings["GLEANER_SIGNING_SCHEME"].contains("x-scrapfly-webhook-timestamp"));
    let list = format!("t={stamp},v1={signed}");
    for header in ["X-Spider-Signature", "X-Scrape-Signature", "Stripe-Signature"] {
        let settings = settled(SECRET, &[(header, &list)], &body).await;
        let lower = header.to_ascii_lowercase();
        let own = (header != "Stripe-Signature").then_some(lower.as_str());
        assert_eq!(preset(&settings), ("stripe", own));
    }
    // Bright Data, Apify and HasData sign nothing, and send what they were told to.
    let settings = settled(SECRET, &[("Authorization", SECRET)], &body).await;
    assert_eq!(preset(&settings), ("static-header", None));
    let settings = settled(SECRET, &[("X-Apify-Token", SECRET)], &body).await;
    assert_eq!(preset(&settings), ("static-header", Some("x-apify-token")));
}

/// SG-09: Scrapfly signs before it compresses.
#[tokio::test(flavor = "multi_thread")]
async fn compressed_forms_are_found() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&body()).unwrap();
    let sent = encoder.finish().unwrap();
    for (signed, inflated) in [(&sent, None), (&body(), Some("inflated"))] {
        let digest = mac(SECRET.as_bytes(), signed);
        let headers = [("Content-Encoding", "gzip"), ("X-Webhook-Signature", digest.as_str())];
        let settings = settled(SECRET, &headers, &sent).await;
        assert_eq!(settings.get("GLEANER_SIGNING_BODY").map(String::as_str), inflated);
    }
}

/// Standard Webhooks as Svix names it, with a second signature of a secret that is being rotated.
#[tokio::test(flavor = "multi_thread")]
async fn lists_of_versions_are_found() {
    use base64::Engine as _;
    let text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let key = base64::engine::general_purpose::STANDARD.decode(&text[6..]).unwrap();
    let stamp = now().as_second().to_string();
    let content = [b"msg_1.", stamp.as_bytes(), b".", &body()].concat();
    let digest = hex::decode(mac(&key, &content)).unwrap();
    let digest = base64::engine::general_purpose::STANDARD.encode(digest);
    let other = base64::engine::general_purpose::STANDARD.encode([7; 32]);
    let value = format!("v1,{other} v1,{digest} v1a,{other}");
    let headers = [
        ("Svix-Id", "msg_1"),
        ("Svix-Timestamp", stamp.as_str()),
        ("Svix-Signature", value.as_str()),
    ];
    assert_eq!(preset(&settled(text, &headers, &body()).await), ("standard-webhooks", None));
}

/// A signed timestamp may be old by the time somebody looks: the form is found all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_delivery_is_found_and_its_age_told() {
    let folder = Folder::new(NOBODY);
    let stamp = (now().as_second() - 7_200).to_string();
    let signed = mac(SECRET.as_bytes(), &[stamp.as_bytes(), b".", &body()].concat());
    let list = format!("t={stamp},v1={signed}");
    let bytes = request(&[("Stripe-Signature", &list)], &body());
    let given = [("GLEANER_WEBHOOK_SECRET", SECRET), ("GLEANER_SIGNING_PRESET", "stripe")];
    let told = capture(&from(&folder, &bytes, &given).await.expect(0));
    assert_eq!(told["in_force"]["reason"], "timestamp_stale");
    assert!(told["found"][0]["age_secs"].as_u64().unwrap() >= 7_200);
    assert_eq!(told["found"][0]["settings"][0]["text"], "stripe");
}

/// OB-02: with a wrong secret the person reads what was tried and what to look at, and no value.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_is_told_without_showing_anything() {
    let folder = Folder::new(NOBODY);
    let digest = mac(b"another secret", &body());
    let bytes = request(&[("X-Webhook-Signature", &digest)], &body());
    folder.write("delivery.http", &bytes);
    let args = ["doctor", "--from", "delivery.http", "--fixture", "fixture.http"];
    let mut command = folder.command(&args);
    let ran = ended(command.env("GLEANER_WEBHOOK_SECRET", SECRET).spawn().unwrap()).await.expect(1);
    for said in [
        "refuse it: signature_mismatch",
        "found       nothing",
        "signatures in: x-webhook-signature",
        "1 signatures, 1 contents and 1 keys",
        "it comes from webhook w-7, whose secret is not here",
        "was it not replaced since?",
        "envelope    a job id and the event extract_completed",
    ] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
    let told = format!("{}{}", ran.out, ran.err);
    assert_none(&told, &[], "doctor --from");
    assert!(!told.contains(&digest[..16]), "{told}");
    assert!(!folder.path().join("fixture.http").exists(), "there is no form to sign it in");
    // Nothing that could be a signature at all.
    let bytes = request(&[("X-Note", MARKED_KEY)], &body());
    let given = [("GLEANER_WEBHOOK_SECRET", SECRET)];
    let ran = from(&folder, &bytes, &given).await.expect(1);
    assert_none(&format!("{}{}", ran.out, ran.err), &[], "doctor --from");
    folder.write("delivery.http", &bytes);
    let mut command = folder.command(&["doctor", "--from", "delivery.http"]);
    let ran = ended(command.env("GLEANER_WEBHOOK_SECRET", SECRET).spawn().unwrap()).await.expect(1);
    assert!(ran.out.contains("no header has the shape of an HMAC-SHA256"), "{}", ran.out);
    assert!(ran.out.contains("Host, X-Note, Content-Length"), "{}", ran.out);
}

/// What is no request, and files that cannot be written, are told with their code.
#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_told_with_their_code() {
    let folder = Folder::new(NOBODY);
    folder.write("garbage", [0xff, 0, 13, 10, 7].repeat(1_000));
    folder.write("there", "");
    folder.write("delivery.http", request(&[("X-Signature", &mac(b"x", b"y"))], b"y"));
    for (args, code, said) in [
        (&["--from", "garbage"][..], 65, "holds no HTTP request"),
        (&["--from", "none"], 71, "cannot read the file `none`"),
        (&["--from", "delivery.http", "--fixture", "there"], 64, "is there already"),
        (&["--from", "delivery.http", "--capture"], 64, "--capture"),
        (&["--from", "delivery.http", "--listen", "127.0.0.1:0"], 64, "cannot be used with"),
        (&["--fixture", "x"], 64, "--fixture needs --capture or --from"),
        (&["--capture", "--within", "0s"], 64, "longer than zero"),
    ] {
        let mut command = folder.command(&[&["doctor"], args].concat());
        command.env("GLEANER_WEBHOOK_SECRET", SECRET);
        let ran = ended(command.spawn().unwrap()).await.expect(code);
        assert!(ran.err.contains(said), "{args:?}: {}", ran.err);
    }
    let ran = folder.run(&["doctor", "--from", "delivery.http"]).await.expect(78);
    assert!(ran.err.contains("there is no signing secret"), "{}", ran.err);
}

/// The fixture is found again with its own test secret, in the same form, and shows nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_fixture_leads_to_the_same_settings() {
    let folder = Folder::new(NOBODY);
    let stamp = now().as_second().to_string();
    let signed = mac(SECRET.as_bytes(), &[stamp.as_bytes(), b".", &body()].concat());
    let list = format!("t={stamp},v1={signed}");
    folder.write("delivery.http", request(&[("X-Spider-Signature", &list)], &body()));
    let args = ["doctor", "--json", "--from", "delivery.http", "--fixture", "fixture.http"];
    let mut command = folder.command(&args);
    let ran = ended(command.env("GLEANER_WEBHOOK_SECRET", SECRET).spawn().unwrap()).await.expect(0);
    let told = capture(&ran);
    let saved = std::fs::read_to_string(folder.path().join("fixture.http")).unwrap();
    assert_none(&saved, &[], "the fixture");
    assert!(!saved.contains(&signed), "{saved}");
    let mut command = folder.command(&["doctor", "--json", "--from", "fixture.http"]);
    command.env("GLEANER_WEBHOOK_SECRET", told["fixture"]["secret"].as_str().unwrap());
    let again = capture(&ended(command.spawn().unwrap()).await.expect(0));
    assert_eq!(again["found"][0]["settings"], told["found"][0]["settings"]);
    assert_eq!(again["found"][0]["scheme"], told["found"][0]["scheme"]);
    assert_eq!(again["envelope"]["event"], "extract_completed");
}

/// What people and programs read: the texts, and one versioned document.
#[tokio::test(flavor = "multi_thread")]
async fn outcomes_are_released_texts() {
    let folder = Folder::new(NOBODY);
    let body = br#"{"job_id":"j1","event_type":"extract_completed","id":"d1"}"#;
    let digest = format!("sha256={}", mac(b"test-secret-1", body));
    let headers = [("Content-Type", "application/json"), ("X-Signature", digest.as_str())];
    folder.write("delivery.http", request(&headers, body));
    let mut texts = String::new();
    for (secret, code) in [("test-secret-1", 0), ("test-secret-2", 1)] {
        for form in [&[][..], &["--json"]] {
            let args = [&["doctor", "--from", "delivery.http"], form].concat();
            let mut command = folder.command(&args);
            command.env("GLEANER_WEBHOOK_SECRET", secret);
            let ran = ended(command.spawn().unwrap()).await.expect(code);
            if form.is_empty() {
                texts.push_str(&ran.out);
            } else {
                writeln!(texts, "{:#}", capture(&ran)).unwrap();
            }
        }
    }
    insta::assert_snapshot!("outcomes", texts);
}
