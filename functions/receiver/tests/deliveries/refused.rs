//! What is not genuine or of no use, by way of Lambda's events.

use domain::signature::preset::Preset;
use domain::signature::sign::sign;
use domain::time::Timestamp;
use receiver::Answer;
use serde_json::{Value, json};
use telemetry::Counter;

use super::rig::{
    SECRET, V1, V1_SIGNATURE, answer, encoded, http_api, plain, request, rig, secret, signed,
    through,
};

/// A vector: the gzip form of V1, and the signature of these bytes.
const V7: &str = "H4sIAAAAAAACA6tWyspPis9MUbJSyjJU0lFKLUvNK4kvqSxIBYqkVpQUJSaX\
                  xCfn5xbkpJakpgAVgJWmGCrVAgCu7mWbOgAAAA==";
const V7_SIGNATURE: &str = "bf763499d2e0cd2d68e63dfc910c57ff91d69679b07c5eedaa2abc828369a04f";

/// The signature of a body under the test secret.
fn signature(body: &[u8]) -> String {
    let scheme = Preset::Geonode.scheme().unwrap();
    let headers = sign(&scheme, &secret(SECRET), body, "", Timestamp::UNIX_EPOCH).unwrap();
    headers.first().unwrap().1.clone()
}

/// SG-03: no header that a stranger may send is more than a 401, at any door, and its answer tells
/// nothing.
#[tokio::test]
async fn odd_signatures_are_401_at_every_door() {
    for door in ["rest-api", "http-api", "alb", "alb-multi-value"] {
        let rig = rig(vec![secret(SECRET)]);
        for value in [
            String::new(),
            "abc".to_owned(),
            V1_SIGNATURE.chars().take(63).collect(),
            format!("{V1_SIGNATURE}a"),
            V1_SIGNATURE.chars().take(33).collect(),
            "z".repeat(64),
            format!("\u{e9}{}", "a".repeat(63)),
            "a".repeat(10_000),
        ] {
            let event = through(door, &json!({ "x-webhook-signature": value }), V1);
            let Answer(response) = rig.receiver.answer(&request(&event).unwrap()).await;
            assert_eq!(response.status().as_u16(), 401, "{door} {value}");
            assert!(response.body().is_empty(), "{door} {value}");
        }
        assert_eq!(answer(&rig, through(door, &json!({}), V1)).await, 401, "{door}");
        assert_eq!((rig.ledger.writes(), rig.secrets.loads()), (0, 1), "{door}");
        assert_eq!(rig.metrics.read(Counter::DeliveriesRejected), 9, "{door}");
    }
}

/// SG-08: what nobody signed is 401, or 405 by another method; nothing is written, and no secret is
/// read beyond the cached one.
#[tokio::test]
async fn unsigned_control_events_change_nothing() {
    let rig = rig(vec![secret(SECRET)]);
    assert_eq!(answer(&rig, http_api(&signed(V1_SIGNATURE), &plain(V1), false)).await, 202);
    let before = (rig.ledger.writes(), rig.queue.sent(), rig.secrets.loads());
    for body in [r#"{"event_type":"webhook_deactivated"}"#, r#"{"event_type":"ping"}"#] {
        let event = http_api(&json!({}), &Value::from(body), false);
        assert_eq!(answer(&rig, event).await, 401, "{body}");
    }
    for method in ["GET", "OPTIONS"] {
        let mut event = http_api(&json!({}), &Value::Null, false);
        event["requestContext"]["http"]["method"] = method.into();
        assert_eq!(answer(&rig, event).await, 405, "{method}");
    }
    assert_eq!((rig.ledger.writes(), rig.queue.sent(), rig.secrets.loads()), before);
}

/// SG-09: compressed bytes arrive in base64, and are verified as they were sent.
#[tokio::test]
async fn compressed_bodies_are_verified_as_they_were_sent() {
    let compressed = |signature: &str, coding: &str| {
        let headers = json!({ "x-webhook-signature": signature, "content-encoding": coding });
        http_api(&headers, &Value::from(V7), true)
    };
    for (signature, coding, status) in
        [(V7_SIGNATURE, "gzip", 202), (V1_SIGNATURE, "gzip", 401), (V7_SIGNATURE, "br", 415)]
    {
        let rig = rig(vec![secret(SECRET)]);
        assert_eq!(answer(&rig, compressed(signature, coding)).await, status, "{coding}");
        assert_eq!(rig.ledger.writes(), u64::from(status == 202));
    }
}

/// PL-01: signed and of no use is 400 and counted, and nothing is written.
#[tokio::test]
async fn signed_and_unusable_is_400_and_counted() {
    let rig = rig(vec![secret(SECRET)]);
    let v5 = b"{\"job_id\":\"j1\",\"event_type\":\"extract_completed\",\"note\":\"\xFF\"}";
    let bodies: [&[u8]; 8] = [
        b"",
        b"null",
        b"7",
        b"\"x\"",
        b"{",
        v5,
        &vec![b' '; 2 * 1024 * 1024],
        &[V1, b"\0"].concat(),
    ];
    for (number, body) in (1..).zip(bodies) {
        let event = http_api(&signed(&signature(body)), &encoded(body), true);
        assert_eq!(answer(&rig, event).await, 400, "{number}");
        assert_eq!(rig.metrics.read(Counter::DeliveriesUnusable), number);
    }
    assert_eq!((rig.ledger.writes(), rig.queue.sent()), (0, 0));
}
