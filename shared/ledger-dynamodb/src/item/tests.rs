use domain::entry::{Cause, DeadReason, Link, StateName};
use domain::intent::{IntentState, Submission};
use domain::limits::{JOB_ID_BYTES_MAX, Limits, REF_BYTES_MAX};
use domain::post::Post;
use domain::request::{FetchOptions, JobRequest};

use super::*;

/// Most bytes of an item. Source: DynamoDB, 400 KiB.
const ITEM_BYTES_MAX: usize = 400 * 1_024;

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn entry(id: &str) -> Entry {
    let key = JobKey::new(Kind::Extract, JobId::parse(id).unwrap());
    let mut entry = Entry::expected(key, None, Cause::Submit, now(), &Limits::default());
    entry.link = Some(Link {
        submission: "s-1".to_owned(),
        lineage: entry.key.job_id.clone(),
        attempt: 0,
        base: 0,
        request: None,
        reference: Some("x".repeat(REF_BYTES_MAX)),
    });
    entry
}

fn dead() -> Entry {
    let state = State::Dead { reason: DeadReason::ResubmitsExhausted, error: None, result: None };
    entry("a").settled(state, Cause::Work, now(), &Limits::default())
}

fn resubmitting(id: &str) -> Entry {
    let post = Post::first("t".to_owned(), now(), &Limits::default());
    entry(id).resubmitting(post, now(), now())
}

fn intent(run: &str) -> Intent {
    let request = JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap();
    let submission = Submission { run: run.to_owned(), position: 3, request, reference: None };
    Intent::open(&submission, "token".to_owned(), now(), &Limits::default())
}

/// What an item takes: names and values in UTF-8, numbers at most 21 bytes.
fn size(item: &Item) -> usize {
    let value = |value: &AttributeValue| match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(digits) => digits.len().min(21),
        other => panic!("{other:?}"),
    };
    item.iter().map(|(name, held)| name.len() + value(held)).sum()
}

fn number_of(item: &Item, name: &str) -> Option<i64> {
    parsed(item, name)
}

/// WK-15: what the port allows fits an item with everything beside the JSON, counted in bytes.
#[test]
fn the_largest_rows_fit_an_item() {
    let mut row = resubmitting(&"~".repeat(JOB_ID_BYTES_MAX));
    (row.generation, row.version) = (u32::MAX, u64::MAX);
    row.token = Some(String::new());
    let room = ROW_BYTES_MAX - serde_json::to_string(&row).unwrap().len();
    row.token = Some("\u{20ac}".repeat(room / 3) + &"x".repeat(room % 3));
    let item = encode_entry(&row).unwrap();
    assert_eq!(text(&item, JSON).unwrap().len(), ROW_BYTES_MAX);
    assert!(size(&item) < ROW_BYTES_MAX + 5_000, "{}", size(&item));
    row.token = row.token.map(|token| token + "x");
    let refused = encode_entry(&row).unwrap_err();
    assert!(matches!(refused, EncodeError::TooLarge { bytes: 400_001 }), "{refused:?}");

    let mut row = intent(&"\u{20ac}".repeat(REF_BYTES_MAX / 3));
    row.id = "x".repeat(NAME_BYTES_MAX - 200);
    row.reference = Some(String::new());
    let room = ROW_BYTES_MAX - serde_json::to_string(&row).unwrap().len();
    row.reference = Some("x".repeat(room));
    let beside = size(&encode_intent(&row).unwrap()) - ROW_BYTES_MAX;
    assert!(beside < 5_000, "{beside}");
    let row = ControlRow {
        name: "x".repeat(NAME_BYTES_MAX),
        version: u64::MAX,
        value: "x".repeat(ROW_BYTES_MAX),
    };
    let beside = size(&encode_control(&row).unwrap()) - ROW_BYTES_MAX;
    assert!(beside < 5_000 && ROW_BYTES_MAX + 5_000 < ITEM_BYTES_MAX, "{beside}");
}

/// DQ-05: only what is settled expires, in epoch seconds; only what is open is due.
#[test]
fn terminal_items_expire_in_seconds_and_open_ones_never() {
    let item = encode_entry(&dead()).unwrap();
    let ninety_days = now().as_second() + 90 * 24 * 60 * 60;
    assert_eq!(number_of(&item, EXPIRES_AT), Some(ninety_days));
    assert_eq!(ninety_days.to_string().len(), 10, "seconds, not milliseconds");
    assert!(text(&item, DUE_SHARD).is_none() && text(&item, DUE_SORT).is_none());
    assert_eq!(text(&item, REASON), Some("resubmits_exhausted"));
    let again = dead().redriven(None, now(), &Limits::default()).unwrap();
    for row in [entry("a"), resubmitting("a"), again] {
        let item = encode_entry(&row).unwrap();
        assert!(!item.contains_key(EXPIRES_AT) && !item.contains_key(REASON), "{item:?}");
        assert!(item.contains_key(DUE_SHARD) && item.contains_key(DUE_SORT), "{item:?}");
        let is_posted = row.state.name() == StateName::Resubmitting;
        assert_eq!(item.contains_key(POSTED_AT), is_posted);
    }
    let open = intent("r");
    let post = open.state.open_post().unwrap().clone();
    assert_eq!(number_of(&encode_intent(&open).unwrap(), POSTED_AT), Some(micros(now())));
    for state in [IntentState::Deferred { post }, IntentState::Ambiguous] {
        let is_closed = state == IntentState::Ambiguous;
        let item = encode_intent(&open.moved(state, now(), &Limits::default())).unwrap();
        assert!(!item.contains_key(DUE_SHARD) && !item.contains_key(POSTED_AT));
        assert_eq!(number_of(&item, EXPIRES_AT).is_some(), is_closed);
    }
}

/// A row that the table would forget although it is owed, or that nobody would look at, is a bug.
#[test]
fn a_row_that_would_be_lost_is_refused() {
    for row in [
        Entry { due_at: None, ..entry("a") },
        Entry { expires_at: Some(1), ..entry("a") },
        Entry { expires_at: None, ..dead() },
        Entry { due_at: Some(now()), ..dead() },
    ] {
        assert!(matches!(encode_entry(&row), Err(EncodeError::Owed)));
    }
    for row in
        [Intent { due_at: None, ..intent("r") }, Intent { expires_at: Some(1), ..intent("r") }]
    {
        assert!(matches!(encode_intent(&row), Err(EncodeError::Owed)));
    }
}

/// PL-03: names that make no key are refused by their bytes.
#[test]
fn names_that_make_no_key_are_refused() {
    for name in ["", &"x".repeat(NAME_BYTES_MAX + 1), &"\u{20ac}".repeat(171)] {
        let row = Intent { id: name.to_owned(), ..intent("r") };
        assert!(matches!(encode_intent(&row), Err(EncodeError::Name { .. })), "{}", name.len());
        assert_eq!(Key::control(name), None);
    }
    let refused = encode_intent(&intent(&"x".repeat(470)));
    assert!(matches!(refused, Err(EncodeError::Run)), "{refused:?}");
}

/// Rows of the first released form, as they lie in tables.
const FIXTURES: [(&str, &str); 2] = [
    ("entry", include_str!("../../tests/fixtures/entry-1.json")),
    ("intent", include_str!("../../tests/fixtures/intent-1.json")),
];

fn fixture(name: &str) -> Item {
    let (_, json) = FIXTURES.iter().find(|(of, _)| *of == name).unwrap();
    let item: std::collections::BTreeMap<String, std::collections::BTreeMap<String, String>> =
        serde_json::from_str(json).unwrap();
    let value = |held: std::collections::BTreeMap<String, String>| match held.first_key_value() {
        Some((kind, digits)) if kind == "N" => AttributeValue::N(digits.clone()),
        Some((_, text)) => AttributeValue::S(text.clone()),
        None => panic!("an attribute without a value"),
    };
    item.into_iter().map(|(name, held)| (name, value(held))).collect()
}

#[test]
fn items_of_the_first_form_are_read_and_written_alike() {
    let item = fixture("entry");
    let row = decode_entry(&item).unwrap();
    assert_eq!((row.state.name(), row.version), (StateName::Resubmitting, 3));
    assert_eq!(encode_entry(&row).unwrap(), item);
    let item = fixture("intent");
    let row = decode_intent(&item).unwrap();
    assert_eq!((row.run.as_str(), row.position), ("run", 3));
    assert_eq!(encode_intent(&row).unwrap(), item);
}

/// What does not decode is named, and nothing of it is shown.
#[test]
fn what_does_not_decode_is_named() {
    let sound = encode_entry(&entry("odd-one")).unwrap();
    let other = encode_entry(&entry("another")).unwrap();
    let with = |name: &str, value: AttributeValue| {
        let mut item = sound.clone();
        item.insert(name.to_owned(), value);
        item
    };
    let secret = r#"{"key":"marker-5f2c"}"#;
    for (item, why) in [
        (with(JSON, string("{")), "error at column"),
        (with(JSON, string(secret)), "Data error"),
        (with(JSON, number(1)), "no JSON"),
        (with(JSON, other[JSON].clone()), "it holds another key"),
        (with(FORMAT, number(2)), "its form is 2, this version reads 1"),
        (with(FORMAT, string("1")), "it has no form"),
    ] {
        let error = decode_entry(&item).unwrap_err().to_string();
        assert!(error.starts_with("entry extract odd-one does not decode"), "{error}");
        assert!(error.contains(why) && !error.contains("marker"), "{error}");
    }
    let foreign = with(SK, string("x"));
    assert!(decode_entry(&foreign).unwrap_err().to_string().contains("job#odd-one"));
    let mut item = encode_intent(&intent("r")).unwrap();
    item.insert(PK.to_owned(), string("intent#other"));
    let error = decode_intent(&item).unwrap_err().to_string();
    assert_eq!(error, "intent#other does not decode (it holds another id)");
    let error = decode_control("a", &Item::new()).unwrap_err().to_string();
    assert_eq!(error, "an item without a key does not decode (it has no form)");
}
