//! Bodies of other receivers' bad days, each tried literally.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const V1: &[u8] = br#"{"job_id":"j1","event_type":"extract_completed","id":"d1"}"#;
const V3: &str = "7b0d0a2020226a6f625f6964223a20226a31222c0d0a2020226576656e745f74797065223a2022657874726163745f636f6d706c65746564220d0a7d0d0a";
const V5: &[u8] = b"{\"job_id\":\"j1\",\"event_type\":\"extract_completed\",\"note\":\"\xff\"}";
const V9: &[u8] = br#"{"job_id":9007199254740993,"event_type":"extract_completed"}"#;
const V10: &[u8] = br#"{"job_id":"","event_type":"extract_completed"}"#;
const V11: &[u8] = br#"{"job_id":"j1","event_type":"extract_completed","job_id":"j2"}"#;
const UUID: &str = "395cf7e2-0a5b-4c8e-9d3f-1b2c3d4e5f60";

fn parse(body: impl AsRef<[u8]>) -> Result<Envelope, EnvelopeError> {
    Envelope::parse(&EnvelopeFormat::default(), body.as_ref())
}

fn code(body: impl AsRef<[u8]>) -> &'static str {
    parse(body).map_or_else(EnvelopeError::code, |_| "ok")
}

/// The code for a flat body with this JSON text as job id.
fn code_of_id(id: &str) -> &'static str {
    code(format!(r#"{{"job_id":{id},"event_type":"extract_completed"}}"#))
}

/// The code for a good body with this JSON text in a field that nobody reads.
fn code_beside(value: &str) -> &'static str {
    code(format!(r#"{{"ignored":{value},"event":"extract_completed","data":{{"job_id":"j1"}}}}"#))
}

#[test]
fn the_platforms_envelope_is_read_through_its_pointers() {
    let body = json!({
        "event": "extract_completed", "webhook_id": "w-1", "delivery_id": "d-1",
        "timestamp": "2026-11-30T00:00:00Z",
        "data": {"job_id": UUID, "status": "completed", "data": {"html": "<p>\u{e9}</p>"}},
    });
    let envelope = parse(body.to_string()).unwrap();
    assert_eq!(envelope.job_id.as_str(), UUID);
    assert_eq!(envelope.event, EventType::ExtractCompleted);
    assert_eq!(envelope.delivery_id.as_deref(), Some("d-1"));
    assert_eq!(envelope.webhook_id.as_deref(), Some("w-1"));
}

#[test]
fn the_flat_envelope_is_read_too() {
    let v3 = hex::decode(V3).unwrap();
    for (body, delivery_id) in [(V1, Some("d1")), (v3.as_slice(), None)] {
        let envelope = parse(body).unwrap();
        assert_eq!(envelope.job_id.as_str(), "j1");
        assert_eq!(envelope.event, EventType::ExtractCompleted);
        assert_eq!(envelope.delivery_id.as_deref(), delivery_id);
    }
}

#[test]
fn the_first_pointer_that_leads_anywhere_counts() {
    let both = r#"{"job_id":"flat","data":{"id":"last","job_id":"nested"}}"#;
    assert_eq!(parse(both).unwrap().job_id.as_str(), "nested");
    assert_eq!(code(r#"{"job_id":"flat","data":{"job_id":null}}"#), "job_id_not_string");
    let last = parse(r#"{"data":{"id":"last"}}"#).unwrap();
    assert_eq!(last.job_id.as_str(), "last");
    assert_eq!(
        parse(r#"{"data":[{"job_id":"x"}],"job_id":"flat"}"#).unwrap().job_id.as_str(),
        "flat"
    );
}

/// PL-01: signed but unusable body ends in 500 and is retried for ever.
#[test]
fn unusable_bodies_get_a_stable_code_each() {
    let spaces = vec![b' '; 2 * 1024 * 1024];
    let trailing_nul = [V1, b"\0"].concat();
    let bom = [b"\xef\xbb\xbf", V1].concat();
    for (body, expected) in [
        (&b""[..], "empty"),
        (&spaces, "empty"),
        (b"null", "not_object"),
        (b"7", "not_object"),
        (br#""x""#, "not_object"),
        (b"[]", "not_object"),
        (b"{", "not_json"),
        (b"\0", "not_json"),
        (V5, "not_utf8"),
        (&trailing_nul, "not_json"),
        (&bom, "not_json"),
        (br#"{"job_id":"j1"}{}"#, "not_json"),
        (br#"{"job_id":"j1",}"#, "not_json"),
        (br"{'job_id':'j1'}", "not_json"),
        (b"{}", "job_id_missing"),
        (br#"{"data":{}}"#, "job_id_missing"),
    ] {
        assert_eq!(
            code(body),
            expected,
            "{}",
            String::from_utf8_lossy(&body[..body.len().min(40)])
        );
    }
}

/// PL-02: ids that are not strings.
#[test]
fn job_ids_that_are_not_strings_are_refused_and_never_rounded() {
    assert_eq!(code(V9), "job_id_not_string");
    for id in
        ["42", "1.5", "1e400", "null", "true", "{}", r#"["x"]"#, r#"{"job_id":"x"}"#, r#""\ud800""#]
    {
        assert_eq!(code_of_id(id), "job_id_not_string", "{id}");
    }
    let text = parse(r#"{"job_id":"42"}"#).unwrap();
    assert_eq!(text.job_id.as_str(), "42");
}

/// PL-03: empty, blank or over-long ids.
#[test]
fn job_ids_are_bounded_by_bytes_and_characters() {
    assert_eq!(code(V10), "job_id_empty");
    let quoted = |text: String| format!("{text:?}");
    for (id, expected) in [
        (quoted("   ".to_owned()), "job_id_character"),
        (quoted("a".repeat(128)), "ok"),
        (quoted("a".repeat(129)), "job_id_too_long"),
        (quoted("a".repeat(1100)), "job_id_too_long"),
        (quoted("a".repeat(2048)), "job_id_too_long"),
        (quoted("a".repeat(2049)), "job_id_too_long"),
        (quoted("\u{20ac}".repeat(700)), "job_id_too_long"),
        (r#""\u0061""#.to_owned(), "ok"),
        (format!("\"{}\"", "\\u0061".repeat(128)), "ok"),
        (quoted("..".to_owned()), "job_id_dots"),
        (quoted("a/b".to_owned()), "job_id_character"),
        (r#""a\u0000b""#.to_owned(), "job_id_character"),
    ] {
        assert_eq!(code_of_id(&id), expected, "{} bytes", id.len());
    }
}

/// PL-04: duplicate JSON keys.
#[test]
fn duplicate_keys_on_the_way_to_a_field_are_refused() {
    assert_eq!(code(V11), "duplicate_key");
    for body in [
        r#"{"job_id":"j1","job\u005fid":"j2"}"#,
        r#"{"data":{"job_id":"j1"},"data":{"job_id":"j2"}}"#,
        r#"{"data":{"job_id":"j1","job_id":"j1"}}"#,
        r#"{"data":{"job_id":"j1"},"data":null}"#,
        r#"{"job_id":"j1","event":"extract_completed","event":"batch_completed"}"#,
        r#"{"job_id":"j1","delivery_id":"a","delivery_id":"b"}"#,
    ] {
        assert_eq!(code(body), "duplicate_key", "{body}");
    }
    // Elsewhere nobody reads them, so nobody can read them differently.
    assert_eq!(code(r#"{"job_id":"j1","note":1,"note":2,"x":{"job_id":1,"job_id":2}}"#), "ok");
}

/// PL-05: deep nesting.
#[test]
fn nesting_is_bounded_in_ignored_fields_too() {
    let arrays = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(code_beside(&arrays(63)), "ok");
    assert_eq!(code_beside(&arrays(64)), "too_deep");
    assert_eq!(code_beside(&arrays(200)), "too_deep");
    assert_eq!(code_beside(&arrays(100_000)), "too_deep");
    assert_eq!(code(arrays(100_000)), "too_deep");
    assert_eq!(code("[".repeat(100_000)), "too_deep");
    assert_eq!(code(r#"{"a":"#.repeat(100_000)), "too_deep");
    let brackets = format!("\"{}\\\"{}\"", "[".repeat(500), "{".repeat(500));
    assert_eq!(code_beside(&brackets), "ok", "brackets in text are no nesting");
    assert_eq!(code_beside(&format!("[{}]", "[[]],".repeat(500) + "1")), "ok");
}

/// PL-05: odd numbers.
#[test]
fn odd_numbers_in_ignored_fields_do_no_harm_and_what_is_no_json_is_refused() {
    for number in ["1e400", "-1e-400", "123456789012345678901234567890", "0.1e1"] {
        assert_eq!(code_beside(number), "ok", "{number}");
        assert_eq!(code_beside(&format!("[{number}]")), "ok", "{number}");
    }
    for number in ["NaN", "Infinity", "-Infinity", "01", "+1", "1.", ".5", "0x1"] {
        assert_eq!(code_beside(number), "not_json", "{number}");
        assert_eq!(code_beside(&format!("[{number}]")), "not_json", "{number}");
    }
}

/// PL-06: log truncation panics inside a character.
#[test]
fn unknown_events_are_cut_between_characters() {
    for lead in [31, 63, 79, 127, 199, 255] {
        let text = format!("{}\u{e9}\n", "a".repeat(lead));
        let body = json!({"event": text, "job_id": "j1"}).to_string();
        let event = parse(body).unwrap().event;
        assert!(event.as_str().chars().count() <= 64);
        assert!(!event.as_str().contains('\n'));
        let id = format!("{}\u{e9}", "a".repeat(lead));
        let expected = if lead + 2 > 128 { "job_id_too_long" } else { "job_id_character" };
        assert_eq!(code_of_id(&format!("{id:?}")), expected);
    }
}

/// PL-07: event type decides which endpoint to refetch.
#[test]
fn event_types_lead_to_their_kind_and_unknown_ones_are_kept_for_the_log() {
    for (text, kind) in [
        ("extract_completed", Some(Kind::Extract)),
        ("batch_completed", Some(Kind::Batch)),
        ("crawl_completed", Some(Kind::Crawl)),
        ("map_completed", None),
        ("EXTRACT_COMPLETED", None),
        ("", None),
    ] {
        let event = parse(json!({"event": text, "job_id": "j1"}).to_string()).unwrap().event;
        assert_eq!((event.kind(), event.as_str()), (kind, text));
    }
    for body in
        [r#"{"job_id":"j1"}"#, r#"{"job_id":"j1","event":7}"#, r#"{"job_id":"j1","event":null}"#]
    {
        assert_eq!(parse(body).unwrap().event, EventType::Unknown(String::new()));
    }
}

/// PL-08: key too coarse.
#[test]
fn the_same_job_id_under_two_events_gives_two_kinds() {
    let kind = |event: &str| {
        let envelope =
            parse(json!({"event": event, "data": {"job_id": "j1"}}).to_string()).unwrap();
        (envelope.job_id.as_str().to_owned(), envelope.event.kind())
    };
    assert_eq!(kind("extract_completed"), ("j1".to_owned(), Some(Kind::Extract)));
    assert_eq!(kind("batch_completed"), ("j1".to_owned(), Some(Kind::Batch)));
}

/// PL-09: UUID spelling.
#[test]
fn uuids_are_canonical_and_other_ids_exact() {
    let id = |text: &str| parse(json!({ "job_id": text }).to_string()).unwrap().job_id;
    assert_eq!(id(&UUID.to_ascii_uppercase()).as_str(), UUID);
    assert_eq!(id(&format!("{{{UUID}}}")).as_str(), UUID);
    assert_eq!(id("Job-A").as_str(), "Job-A");
    assert_ne!(id("Job-A"), id("job-a"));
}

#[test]
fn delivery_and_webhook_ids_are_evidence_and_never_refuse_a_job() {
    let long = "a".repeat(129);
    for id in
        [json!(7), json!(null), json!({}), json!(""), json!("a b"), json!("\u{e9}"), json!(long)]
    {
        let body = json!({"job_id": "j1", "delivery_id": id, "webhook_id": id}).to_string();
        let envelope = parse(body).unwrap();
        assert_eq!((envelope.delivery_id, envelope.webhook_id), (None, None));
    }
}

#[test]
fn pointers_and_event_names_are_configurable() {
    let format: EnvelopeFormat = serde_json::from_value(json!({
        "job_id": ["/context/job/uuid", "/a~1b/~0c", "/context"],
        "event": ["/type"],
        "events": {"crawl.completed": "crawl"},
    }))
    .unwrap();
    let read = |body: &str| Envelope::parse(&format, body.as_bytes());
    let nested = read(r#"{"type":"crawl.completed","context":{"job":{"uuid":"u1"}}}"#).unwrap();
    assert_eq!((nested.job_id.as_str(), nested.event), ("u1", EventType::CrawlCompleted));
    assert_eq!(read(r#"{"a/b":{"~c":"u2"}}"#).unwrap().job_id.as_str(), "u2");
    assert_eq!(read(r#"{"context":"u3"}"#).unwrap().job_id.as_str(), "u3");
    assert_eq!(read(r#"{"context":{"x":1}}"#), Err(EnvelopeError::JobIdNotString));
    let platform = read(r#"{"context":"u4","type":"crawl_completed"}"#).unwrap();
    assert_eq!(platform.event, EventType::Unknown("crawl_completed".to_owned()));
}

#[test]
fn malformed_pointers_and_lists_are_refused() {
    for json in [
        json!({"job_id": []}),
        json!({"job_id": ["job_id"]}),
        json!({"job_id": [""]}),
        json!({"job_id": ["/a~2"]}),
        json!({"job_id": ["/a~"]}),
        json!({"job_id": ["/1/2/3/4/5/6/7/8/9"]}),
        json!({"job_id": vec!["/a"; 9]}),
        json!({"jobid": ["/a"]}),
        json!({"events": {"x": "map"}}),
    ] {
        assert!(serde_json::from_value::<EnvelopeFormat>(json.clone()).is_err(), "{json}");
    }
    let format: EnvelopeFormat = serde_json::from_str("{}").unwrap();
    assert_eq!(format, EnvelopeFormat::default());
    let counts = [&format.job_id, &format.event, &format.delivery_id, &format.webhook_id];
    assert_eq!(counts.map(|list| list.pointers().len()), [3, 2, 2, 1]);
    assert_eq!(format.events.len(), 3);
}

#[test]
fn a_large_page_is_passed_over() {
    let html = "<p class=\"x\">caf\u{e9}\n</p>".repeat(100_000);
    let body =
        json!({"event": "extract_completed", "data": {"job_id": "j1", "data": {"html": html}}});
    assert_eq!(parse(body.to_string()).unwrap().job_id.as_str(), "j1");
}

/// JSON values of any shape, up to six levels deep.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|b| json!(b)),
        any::<i64>().prop_map(|n| json!(n)),
        "\\PC{0,20}".prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(6, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            proptest::collection::btree_map("data|job_id|id|event|[a-z\"\\\\]{0,4}", inner, 0..5)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

/// What the default pointers find in a tree that holds everything.
fn model(body: &serde_json::Value) -> Result<String, &'static str> {
    if !body.is_object() {
        return Err("not_object");
    }
    let found = ["/data/job_id", "/job_id", "/data/id"].iter().find_map(|pointer| {
        let keys: Vec<&str> = pointer.split('/').skip(1).collect();
        keys.iter().try_fold(body, |value, key| value.as_object()?.get(*key))
    });
    let text = found.ok_or("job_id_missing")?.as_str().ok_or("job_id_not_string")?;
    JobId::parse(text).map(|id| id.as_str().to_owned()).map_err(JobIdError::code)
}

proptest! {
    #[test]
    fn the_scan_agrees_with_a_tree_that_holds_everything(body in any_json()) {
        for text in [body.to_string(), serde_json::to_string_pretty(&body).unwrap()] {
            let found = parse(&text).map(|envelope| envelope.job_id.as_str().to_owned());
            prop_assert_eq!(found.map_err(EnvelopeError::code), model(&body));
        }
    }

    #[test]
    fn random_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse(&body).is_err());
    }

    #[test]
    fn random_json_punctuation_is_accepted_only_if_it_is_json(body in "[\\[\\]{}:,\"\\\\ 1a-]{0,40}") {
        let body = format!(r#"{{"job_id":"j1","x":{body}}}"#);
        if parse(&body).is_ok() {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&body).is_ok(), "{}", body);
        }
    }
}
