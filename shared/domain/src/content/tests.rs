use super::*;
use crate::entry::Cause;
use crate::job::JobStatus;
use crate::limits::Limits;
use crate::work::tests::rig::{Rig, batch, extract, items, link_of};

fn item(key: &str, raw: &str) -> Item {
    Item {
        key: key.to_owned(),
        url: format!("https://e.example/{key}"),
        status: JobStatus::Completed.as_str().to_owned(),
        error: None,
        raw: RawJson(raw.into()),
    }
}

fn key() -> JobKey {
    JobKey::new(Kind::Batch, JobId::parse("j1").unwrap())
}

/// An answer with line breaks between its values is still one line per item, read back whole.
#[test]
fn each_item_is_one_line_however_the_api_sets_it() {
    let items = [
        item("0", "{\n  \"url\": \"https://e.example/0\",\r\n  \"status\": \"completed\"\n}"),
        item("1", r#"{"url":"https://e.example/1","status":"failed","error_code":"TIMEOUT"}"#),
    ];
    let lines = part_lines(&key(), &items).unwrap();
    assert_eq!(std::str::from_utf8(&lines).unwrap().lines().count(), 2);
    let heads = part_heads(&lines).unwrap();
    assert_eq!(heads.iter().map(|head| head.key.as_str()).collect::<Vec<_>>(), ["0", "1"]);
    assert_eq!(heads[0].failure, None);
    assert_eq!(heads[1].failure.as_ref().unwrap().code, "TIMEOUT");
}

/// The texts of an item keep every byte, line breaks inside them included.
#[test]
fn texts_are_kept_as_they_came() {
    let raw = r#"{"url":"u","status":"completed","data":{"html":"a\nb\u2028 \ud83d\ude00","n":12345678901234567890123}}"#;
    let lines = part_lines(&key(), &[item("0", raw)]).unwrap();
    assert!(String::from_utf8(lines).unwrap().contains(raw));
}

fn row(key: &JobKey, link: Option<Link>) -> Entry {
    Entry::expected(key.clone(), link, Cause::Submit, Rig::new().now(), &Limits::default())
}

fn raw(text: &str) -> RawJson {
    RawJson(text.into())
}

#[test]
fn the_bytes_of_an_extract_object_are_fixed() {
    let key = extract("a");
    let answer = raw(r#" { "job_id" : "a", "n": 1.0e2, "x": "\u00e9/\/" } "#);
    let at = Rig::new().now();
    let content = extract_object(&row(&key, Some(link_of(&key, "s"))), &answer, at).unwrap();
    assert_eq!(
        String::from_utf8(content).unwrap(),
        concat!(
            r#"{"format":"gleaner-extract/1","kind":"extract","job_id":"a","ref":"my-ref","#,
            r#""lineage":{"root":"a","attempt":0},"stored_at":"2026-11-30T12:00:00Z","#,
            r#""job":{ "job_id" : "a", "n": 1.0e2, "x": "\u00e9/\/" }}"#
        )
    );
    let content = extract_object(&row(&key, None), &raw("{}"), at).unwrap();
    let content = String::from_utf8(content).unwrap();
    assert!(content.contains(r#""ref":null,"lineage":null,"#), "{content}");
}

/// WK-15: what is not JSON never becomes an object.
#[test]
fn an_answer_that_is_not_json_is_refused() {
    let key = extract("a");
    for text in ["", "<html>", "{", "{} {}", "nul"] {
        assert!(extract_object(&row(&key, None), &raw(text), Rig::new().now()).is_err(), "{text}");
    }
}

#[test]
fn an_object_belongs_to_the_job_and_format_it_names() {
    let key = extract("a");
    let content = extract_object(&row(&key, None), &raw("{}"), Rig::new().now()).unwrap();
    assert!(belongs_to(&content, EXTRACT_FORMAT, &key));
    assert!(!belongs_to(&content, MANIFEST_FORMAT, &key));
    assert!(!belongs_to(&content, EXTRACT_FORMAT, &extract("A")));
    assert!(!belongs_to(&content, EXTRACT_FORMAT, &batch("a")));
    for end in 0..content.len() {
        assert!(!belongs_to(&content[..end], EXTRACT_FORMAT, &key), "cut at {end}");
    }
}

#[test]
fn the_lines_of_a_part_hold_each_item_verbatim() {
    let mut two = items(0..2);
    two[1].raw = raw(r#"{ "input_index":1, "url": "u", "n": 1.50 }"#);
    let lines = part_lines(&batch("b"), &two).unwrap();
    assert_eq!(
        String::from_utf8(lines).unwrap().lines().collect::<Vec<_>>(),
        [
            r#"{"job_id":"b","kind":"batch","item_key":"0","item":{"input_index":0,"url":"https://example.com/0","status":"completed"}}"#,
            r#"{"job_id":"b","kind":"batch","item_key":"1","item":{ "input_index":1, "url": "u", "n": 1.50 }}"#,
        ]
    );
}

/// PL-05: however deep the answer's own fields are nested, and whatever their numbers, they are kept
/// as they came, and what is needed of them is read.
#[test]
fn deep_nesting_and_odd_numbers_are_kept_as_they_came() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for odd in [deep(200), deep(100_000), "1e400".into(), "123456789012345678901234567890".into()] {
        let shown = &odd[..odd.len().min(30)];
        let text = format!(r#"{{"odd":{odd},"data":{{"odd":{odd},"html":"x","markdown":{odd}}}}}"#);
        let content = extract_object(&row(&extract("a"), None), &raw(&text), Rig::new().now());
        let content = content.unwrap();
        assert!(belongs_to(&content, EXTRACT_FORMAT, &extract("a")), "{shown}");
        assert!(has_data(&content), "{shown}");
        assert!(content.windows(text.len()).any(|part| part == text.as_bytes()), "{shown}");
        let mut one = items(0..1);
        one[0].raw = raw(&format!(r#"{{"odd":{odd},"url":{odd},"status":"failed"}}"#));
        let heads = part_heads(&part_lines(&batch("b"), &one).unwrap()).unwrap();
        assert_eq!((heads.len(), heads[0].failure.is_some()), (1, true), "{shown}");
    }
    let no_json =
        extract_object(&row(&extract("a"), None), &raw(r#"{"odd":NaN}"#), Rig::new().now());
    assert!(no_json.is_err());
}

/// PL-06, WK-16: whatever an item holds, its head is read and bounded.
#[test]
fn the_head_of_an_item_survives_odd_fields() {
    let long = "\u{e9}".repeat(400);
    let with_message =
        format!(r#"{{"status":"failed","error_code":"C","error_message":"{long}"}}"#);
    let head = |text: &str| {
        let mut one = items(0..1);
        one[0].raw = raw(text);
        let lines = part_lines(&batch("b"), &one).unwrap();
        part_heads(&lines).unwrap().remove(0)
    };
    assert_eq!(head(r#"{"status":"completed"}"#).failure, None);
    assert_eq!(head(r#"{"status":7,"error_code":null,"url":{"a":[]}}"#).failure, None);
    assert_eq!(head(r#"{"error_code":"","error_message":""}"#).failure, None);
    assert!(head(r#"{"error_message":"only this"}"#).failure.is_some());
    let failure = head(&with_message).failure.unwrap();
    assert_eq!((failure.code.as_str(), failure.message.chars().count()), ("C", 300));
}

#[test]
fn lines_that_are_not_ours_are_refused() {
    for text in ["x", "{}", r#"{"item_key":1,"item":{}}"#, r#"{"item_key":"1","item":3}"#] {
        assert!(part_heads(text.as_bytes()).is_err(), "{text}");
    }
    assert_eq!(part_heads(b"").unwrap(), []);
}

#[test]
fn a_manifest_says_what_finishing_the_ledger_needs() {
    let key = batch("b");
    let now = Rig::new().now();
    let part = |number: u32, items| Part {
        key: format!("p{number}"),
        items,
        bytes: 9,
        sha256: "00".into(),
    };
    let run = Run {
        id: "r".into(),
        number: 1,
        holder: "h".into(),
        held_until: now,
        page_size: 50,
        next_page: 3,
        parts: vec![part(1, 50), part(2, 7)],
    };
    let summary = raw(r#"{"total_urls":57, "n": 1.0}"#);
    let facts = ManifestFacts {
        status: "cancelled",
        unsettled: true,
        dt: jiff::civil::date(2026, 11, 30),
        summary: &summary,
        failed: &[],
        stored_at: now,
    };
    let content = manifest(&row(&key, Some(link_of(&key, "s"))), &run, &facts).unwrap();
    assert!(belongs_to(&content, MANIFEST_FORMAT, &key));
    let head = manifest_head(&content).unwrap();
    assert_eq!((head.status.as_str(), head.unsettled, head.items), ("cancelled", true, 57));
    let text = String::from_utf8(content).unwrap();
    assert!(text.ends_with(r#""job":{"total_urls":57, "n": 1.0}}"#), "{text}");
}
