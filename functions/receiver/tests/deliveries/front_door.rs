//! What Lambda's front doors do to a delivery on its way, and what they hand over that is none.

use std::sync::Arc;
use std::time::Duration;

use domain::ports::{Clock as _, ErrorKind};
use domain::time::between;
use serde_json::{Value, json};
use telemetry::Counter;

use super::rig::{
    Broken, SECRET, V1, V1_SIGNATURE, answer, encoded, http_api, plain, request, rig, secret,
    signed,
};

/// Vectors: body, and its signature under the test secret.
const V1_UNDER_EMPTY_KEY: &str = "d20129e5090a66e64036b8c693678d44994d2cb097357d80e51c2dc19b306739";
const V5: &[u8] = b"{\"job_id\":\"j1\",\"event_type\":\"extract_completed\",\"note\":\"\xFF\"}";
const V5_SIGNATURE: &str = "03e0dc88d9b12ebfd2fd650dc1ad1c591e0bb4b720b03deea336e053358467b7";
const V8_SIGNATURE: &str = "1b8b88da911b646e8e40df85073ff0e6e3b3b82d725da699b4480eb2bd466a7b";

/// FD-01: base64 or not, the decoded bytes are what was signed.
#[tokio::test]
async fn bytes_are_verified_however_they_travel() {
    for event in [
        http_api(&signed(V1_SIGNATURE), &plain(V1), false),
        http_api(&signed(V1_SIGNATURE), &encoded(V1), true),
    ] {
        let rig = rig(vec![secret(SECRET)]);
        assert_eq!(answer(&rig, event).await, 202);
        assert_eq!((rig.ledger.writes(), rig.queue.depth()), (1, 1));
    }
    // Not UTF-8, and genuine: of no use, and no reason for a 500.
    let rig = rig(vec![secret(SECRET)]);
    assert_eq!(answer(&rig, http_api(&signed(V5_SIGNATURE), &encoded(V5), true)).await, 400);
    assert_eq!(rig.metrics.read(Counter::DeliveriesUnusable), 1);
    assert_eq!(rig.ledger.writes(), 0);
}

/// FD-02: text that is no base64 is a panic of the library below, before any code of ours. The
/// runtime catches it, since the profile unwinds.
#[test]
fn no_base64_ends_one_invocation() {
    for text in ["!!!not base64", "eyJhIjoxfQ"] {
        let event = http_api(&signed(V1_SIGNATURE), &Value::from(text), true);
        let made = std::panic::catch_unwind(|| request(&event).map(|_| ()));
        assert!(!matches!(made, Ok(Ok(()))), "{text}");
    }
    let manifest = include_str!("../../../../Cargo.toml");
    assert!(!manifest.contains("panic = \"abort\""));
}

/// FD-06: what is no HTTP is an error that names the function and what it expects, and nothing else happens.
#[test]
fn what_is_no_request_is_refused_with_what_is_expected() {
    let scheduled =
        json!({ "detail-type": "Scheduled Event", "source": "aws.events", "detail": {} });
    for event in [json!({}), json!({ "Records": [] }), scheduled] {
        let error = request(&event).unwrap_err().to_string();
        assert!(
            ["the receiver", "API Gateway", "Function URL"].iter().all(|told| error.contains(told)),
            "{event}: {error}"
        );
    }
}

/// FD-07: null headers, an absent body, and an empty one.
#[tokio::test]
async fn what_is_null_or_absent_is_no_panic() {
    let rig = rig(vec![secret(SECRET)]);
    assert_eq!(answer(&rig, http_api(&Value::Null, &plain(V1), false)).await, 401);
    assert_eq!(answer(&rig, http_api(&signed(V1_SIGNATURE), &Value::Null, false)).await, 401);
    let mut absent = http_api(&signed(V8_SIGNATURE), &Value::Null, false);
    absent.as_object_mut().unwrap().remove("body");
    assert_eq!(answer(&rig, absent).await, 400);
    assert_eq!(answer(&rig, http_api(&signed(V8_SIGNATURE), &Value::from(""), true)).await, 400);
    // A null value makes the whole event unreadable.
    assert!(request(&http_api(&json!({ "x-a": null }), &plain(V1), false)).is_err());
    assert_eq!(rig.ledger.writes(), 0);
}

/// FD-08: the content type decides nothing.
#[tokio::test]
async fn the_content_type_does_not_matter() {
    for kind in [
        Some("application/json"),
        Some("application/json; charset=utf-8"),
        Some("application/vnd.api+json"),
        Some("text/plain"),
        Some("application/octet-stream"),
        None,
    ] {
        let mut headers = json!({ "x-webhook-signature": V1_SIGNATURE });
        if let Some(kind) = kind {
            headers["content-type"] = Value::from(kind);
        }
        for (body, is_base64) in [(plain(V1), false), (encoded(V1), true)] {
            let rig = rig(vec![secret(SECRET)]);
            let event = http_api(&headers, &body, is_base64);
            assert_eq!(answer(&rig, event).await, 202, "{kind:?} {is_base64}");
        }
    }
}

/// SG-06 and SM: without a usable secret nothing is decided, and nothing is accepted, not even what
/// is signed with the empty key.
#[tokio::test]
async fn no_usable_secret_is_503() {
    let genuine = || http_api(&signed(V1_SIGNATURE), &plain(V1), false);
    let forged = || http_api(&signed(V1_UNDER_EMPTY_KEY), &plain(V1), false);
    let none = rig(Vec::new());
    let unreadable = rig(Vec::new());
    unreadable.secrets.fail(ErrorKind::Denied);
    for stored in ["", "   ", r#"{"secret":""}"#] {
        let blank = rig(Vec::new());
        blank.secrets.add_stored(stored);
        assert_eq!(answer(&blank, forged()).await, 503, "{stored:?}");
        assert_eq!(blank.ledger.writes(), 0);
    }
    for rig in [none, unreadable] {
        assert_eq!((answer(&rig, genuine()).await, answer(&rig, forged()).await), (503, 503));
        assert_eq!(rig.metrics.read(Counter::DeliveriesUnavailable), 2);
        assert_eq!((rig.ledger.writes(), rig.queue.depth()), (0, 0));
    }
    let wrong = rig(vec![secret("another")]);
    assert_eq!(answer(&wrong, genuine()).await, 401);
    assert_eq!(wrong.metrics.read(Counter::DeliveriesRejected), 1);
}

/// 200 forged deliveries a second cost one read of the secrets per cool-down.
#[tokio::test]
async fn forged_deliveries_do_not_multiply_reads_of_the_secrets() {
    let rig = rig(vec![secret(SECRET)]);
    let began = rig.clock.now();
    for _ in 0..20 {
        for _ in 0..200 {
            let event = http_api(&signed(V5_SIGNATURE), &plain(V1), false);
            assert_eq!(answer(&rig, event).await, 401);
        }
        rig.clock.advance(Duration::from_secs(1));
    }
    // This clock also moves by what is slept; a cool-down is ten seconds of it.
    let cooldowns = between(began, rig.clock.now()).as_secs() / 10;
    assert!((2..=2 + cooldowns).contains(&rig.secrets.loads()), "{}", rig.secrets.loads());
    assert!(cooldowns < 20, "{cooldowns} cool-downs for 4,000 deliveries");
}

/// A panic of ours is not told to the sender, who shall come again.
#[tokio::test]
async fn a_panic_is_503() {
    let mut rig = rig(vec![secret(SECRET)]);
    let well = std::mem::replace(&mut rig.receiver.entries, Arc::new(Broken));
    let event = || http_api(&signed(V1_SIGNATURE), &plain(V1), false);
    assert_eq!(answer(&rig, event()).await, 503);
    assert_eq!(rig.metrics.read(Counter::DeliveriesUnavailable), 1);
    rig.receiver.entries = well;
    assert_eq!(answer(&rig, event()).await, 202);
}
