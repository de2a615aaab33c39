//! Each way in: names of headers, paths and health checks as it hands them over.

use std::sync::Arc;

use domain::keyring::Keyring;
use domain::signature::dimension::HeaderName;
use domain::signature::preset::Preset;
use domain::signature::scheme::{PresetConfig, Scheme, SchemeConfig};
use serde_json::{Value, json};

use super::rig::{Broken, Rig, SECRET, V1, V1_SIGNATURE, answer, event, rig, secret, through};

/// The ways in, by the names of their files.
const DOORS: [&str; 5] = ["rest-api", "http-api", "function-url", "alb", "alb-multi-value"];

/// A receiver that was told to look into this header, in a form that somebody typed.
fn told(header: &str) -> Rig {
    let mut rig = rig(vec![secret(SECRET)]);
    let config = SchemeConfig::Preset(PresetConfig {
        name: Preset::Geonode,
        headers: Some(vec![HeaderName::parse(header).unwrap()]),
        body: None,
        tolerance_secs: None,
    });
    let scheme = Scheme::try_from(config).unwrap();
    rig.receiver.keyring = Keyring::new(rig.secrets.clone(), scheme, &rig.receiver.limits);
    rig
}

/// FD-03: REST APIs keep the sender's case, the others do not; and whoever configures the name may
/// write it in any case, with spaces around it, as the sender may around the value.
#[tokio::test]
async fn the_case_of_headers_does_not_matter() {
    for door in DOORS {
        for name in ["X-Webhook-Signature", "x-webhook-signature", "X-WEBHOOK-SIGNATURE"] {
            for value in [V1_SIGNATURE.to_owned(), format!("  {V1_SIGNATURE}\t ")] {
                let event = through(door, &json!({ name: value }), V1);
                for rig in [rig(vec![secret(SECRET)]), told("  x-Webhook-SIGNATURE\t")] {
                    assert_eq!(answer(&rig, event.clone()).await, 202, "{door} {name} {value}");
                    assert_eq!((rig.ledger.writes(), rig.queue.depth()), (1, 1));
                }
            }
        }
        let elsewhere = through(door, &json!({ "x-webhook-signature": V1_SIGNATURE }), V1);
        assert_eq!(answer(&told("x-other"), elsewhere).await, 401, "{door}");
    }
}

/// FD-04: with multi-value headers on, a balancer's event has no other members: neither `headers`
/// nor `queryStringParameters`.
#[tokio::test]
async fn a_balancer_may_have_multi_value_headers_alone() {
    let target = json!({ "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:x" } });
    for query in [json!({}), json!({ "multiValueQueryStringParameters": {} })] {
        let mut event = json!({
            "requestContext": target,
            "httpMethod": "POST",
            "path": "/webhook",
            "multiValueHeaders": {
                "host": ["example.com"],
                "x-webhook-signature": [V1_SIGNATURE],
            },
            "body": std::str::from_utf8(V1).unwrap(),
            "isBase64Encoded": false,
        });
        event.as_object_mut().unwrap().extend(query.as_object().unwrap().clone());
        let rig = rig(vec![secret(SECRET)]);
        assert_eq!(answer(&rig, event).await, 202);
        assert_eq!((rig.ledger.writes(), rig.queue.depth()), (1, 1));
    }
}

/// FD-04: a balancer's health check, of whatever path and in either mode, costs nothing: no secret
/// is read, and the table is not touched.
#[tokio::test]
async fn a_health_check_reads_no_secret_and_no_table() {
    for door in ["alb", "alb-multi-value"] {
        for (path, status) in [("/healthz", 200), ("/", 404), ("/webhook", 405)] {
            let mut rig = rig(vec![secret(SECRET)]);
            rig.receiver.entries = Arc::new(Broken);
            let headers = json!({ "host": "example.com", "user-agent": "ELB-HealthChecker/2.0" });
            let mut event = through(door, &headers, b"");
            (event["httpMethod"], event["path"]) = ("GET".into(), path.into());
            assert_eq!(answer(&rig, event).await, status, "{door} {path}");
            assert_eq!((rig.secrets.loads(), rig.queue.sent()), (0, 0));
        }
    }
}

/// The event of a way in, with its path replaced wherever it stands.
fn at(door: &str, path: &str) -> Value {
    let mut event = through(door, &json!({ "x-webhook-signature": V1_SIGNATURE }), V1);
    for pointer in ["/path", "/rawPath", "/requestContext/http/path", "/requestContext/path"] {
        if let Some(member) = event.pointer_mut(pointer) {
            *member = path.into();
        }
    }
    event
}

/// FD-05: the same route by whatever spelling of the stage; any other path is 404, at every door.
#[tokio::test]
async fn a_stage_is_no_part_of_the_path_and_slashes_are() {
    let stage = |door: &str| event(&format!("{door}.json"))["requestContext"]["stage"].clone();
    assert_eq!(
        (stage("http-api"), stage("http-api-named-stage")),
        ("$default".into(), "prod".into())
    );
    assert_eq!(stage("rest-api"), "prod");
    for (door, path) in [
        ("http-api", "/webhook"),
        ("http-api-named-stage", "/prod/webhook"),
        ("rest-api", "/webhook"),
    ] {
        assert_eq!(answer(&rig(vec![secret(SECRET)]), at(door, path)).await, 202, "{door} {path}");
    }
    for door in DOORS.into_iter().chain(["http-api-named-stage"]) {
        for path in ["//webhook", "/webhook/", "/prod//webhook", "/test/webhook", "/Webhook", "/"] {
            let rig = rig(vec![secret(SECRET)]);
            assert_eq!(answer(&rig, at(door, path)).await, 404, "{door} {path}");
            assert_eq!((rig.secrets.loads(), rig.ledger.writes()), (0, 0), "{door} {path}");
        }
    }
}

/// SG-03 for what else a stranger may send: hosts, schemes and queries that make no address are no
/// reason to fail, and a genuine delivery that came by an odd proxy is accepted.
#[tokio::test]
async fn an_odd_host_scheme_or_query_is_no_trouble() {
    for door in DOORS {
        for (name, value) in [
            ("host", "a:b"),
            ("host", "["),
            ("host", "ex ample"),
            ("host", ""),
            ("x-forwarded-proto", "https, http"),
            ("x-forwarded-proto", ""),
        ] {
            let headers = json!({ "x-webhook-signature": V1_SIGNATURE, name: value });
            let event = through(door, &headers, V1);
            assert_eq!(
                answer(&rig(vec![secret(SECRET)]), event).await,
                202,
                "{door} {name} {value}"
            );
        }
        for query in ["a=<b>", "%", "\u{e9} =\u{0}", "a=1&a=2"] {
            let mut event = through(door, &json!({ "x-webhook-signature": V1_SIGNATURE }), V1);
            for (member, value) in [
                ("rawQueryString", json!(query)),
                ("queryStringParameters", json!({ "a": query })),
                ("multiValueQueryStringParameters", json!({ "a": [query] })),
            ] {
                if let Some(member) = event.get_mut(member) {
                    *member = value;
                }
            }
            assert_eq!(answer(&rig(vec![secret(SECRET)]), event).await, 202, "{door} {query}");
        }
    }
}
