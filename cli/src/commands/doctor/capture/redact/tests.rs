use super::*;

fn redacted(body: &str) -> Value {
    serde_json::from_slice(&Redaction::default().body(body.as_bytes())).unwrap()
}

/// The shape stays, what somebody said goes, and an id that occurs twice is one id.
#[test]
fn a_body_keeps_its_shape_and_nothing_else() {
    let body = r#"{
        "event": "extract_completed", "webhook_id": "5e3c1f5a-0000-4000-8000-00000000000a",
        "timestamp": "2026-11-30T12:00:00.123Z", "retry": false, "none": null,
        "data": {
            "job_id": "5E3C1F5A-0000-4000-8000-00000000000B", "status": "completed",
            "again": "5e3c1f5a-0000-4000-8000-00000000000b",
            "html": "<p>marker</p>", "url": "https://marker.example.com/?q=1", "empty": "",
            "metadata": {"http_status": 200, "share": 0.25, "status": "marker 7"},
            "marker@example.com": "x", "items": [1, 2, 3, 4, 5], "type": "marker<b>"
        }
    }"#;
    let found = redacted(body);
    let one = "00000000-0000-4000-8000-000000000001";
    let expected = serde_json::json!({
        "event": "extract_completed", "webhook_id": "00000000-0000-4000-8000-000000000002",
        "timestamp": "2026-11-30T12:00:00.123Z", "retry": false, "none": null,
        "data": {
            "job_id": one, "again": one, "status": "completed",
            "html": "redacted", "url": "redacted", "empty": "",
            "metadata": {"http_status": 0, "share": 0.5, "status": "redacted"},
            "key-1": "redacted", "items": [0, 0, 0], "type": "redacted"
        }
    });
    assert_eq!(found, expected);
    assert!(!found.to_string().contains("marker"));
}

/// PL-01: what is no JSON becomes one word, whatever its bytes.
#[test]
fn what_is_no_json_becomes_a_word() {
    for body in [&b"<html>marker</html>"[..], b"{", b"\xff\xfe", b"{\"a\":\xff}"] {
        assert_eq!(Redaction::default().body(body), b"redacted");
    }
    assert_eq!(Redaction::default().body(b""), b"");
    let deep = "[".repeat(10_000);
    assert_eq!(Redaction::default().body(deep.as_bytes()), b"redacted");
}

#[test]
fn headers_keep_only_what_tells_nothing_of_anybody() {
    let mut redaction = Redaction::default();
    for (name, value, kept) in [
        ("User-Agent", "scraper-api-webhook/1.0", true),
        ("User-Agent", "someone@example.com", false),
        ("X-Webhook-Event", "extract_completed", true),
        ("X-Webhook-Event", "extract completed for marker", false),
        ("X-Token", "marker", false),
        ("X-Timestamp", "1796040000", true),
        ("X-Time", "2026-11-30T12:00:00Z", true),
        ("X-Origin", "example.com", false),
        ("X-Odd", "\u{e9}", false),
    ] {
        let wanted = if kept { value } else { "redacted" };
        assert_eq!(redaction.header(name, value), wanted, "{name}");
    }
    let id = "5e3c1f5a-0000-4000-8000-00000000000a";
    let stand_in = redaction.header("X-Id", id);
    assert_ne!(stand_in, id);
    assert_eq!(redaction.header("X-Other", id), stand_in);
}
