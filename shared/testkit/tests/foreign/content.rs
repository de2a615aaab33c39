//! Stored objects read back, and items of the platform on their way into one.
//!
//! An input is the content of an object; its lines are taken for items, too.

use domain::content::{
    EXTRACT_FORMAT, MANIFEST_FORMAT, belongs_to, has_data, manifest_head, part_heads, part_lines,
};
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{Item, RawJson};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) fn check(content: &[u8]) {
    let key = JobKey::new(Kind::Batch, JobId::parse("j1").unwrap());
    let _ = has_data(content);
    for format in [EXTRACT_FORMAT, MANIFEST_FORMAT] {
        if belongs_to(content, format, &key) {
            assert!(contains(content, b"j1") || contains(content, b"\\u"));
        }
    }
    let _ = manifest_head(content);
    if let Ok(heads) = part_heads(content) {
        for head in &heads {
            let Some(failure) = &head.failure else { continue };
            assert_eq!(failure.key, head.key);
            assert!(failure.code.chars().count() <= 64 && failure.message.chars().count() <= 300);
        }
    }
    check_items(&key, content);
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// What the API's adapter asks of an item before it is taken.
#[derive(Deserialize)]
#[expect(dead_code, reason = "that each is there once at most is all that is asked")]
struct Accepted<'a> {
    #[serde(borrow)]
    input_index: Option<&'a RawValue>,
    #[serde(borrow)]
    url: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    error_code: Option<&'a RawValue>,
    #[serde(borrow)]
    error_message: Option<&'a RawValue>,
}

/// The lines made of items hold them as they came, and are read back item by item.
fn check_items(key: &JobKey, content: &[u8]) {
    let Ok(raws) = serde_json::from_slice::<Vec<&RawValue>>(content) else { return };
    let items: Vec<Item> = raws
        .iter()
        .enumerate()
        .map(|(position, raw)| Item {
            key: position.to_string(),
            url: String::new(),
            status: String::new(),
            error: None,
            raw: RawJson(raw.get().into()),
        })
        .collect();
    let lines = part_lines(key, &items).unwrap();
    assert_eq!(lines.split_inclusive(|byte| *byte == b'\n').count(), items.len());
    for (line, raw) in lines.split(|byte| *byte == b'\n').zip(&raws) {
        // What no `Value` holds is kept as it is, and cannot be compared like this.
        let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
        assert_eq!(line["item"], serde_json::from_str::<Value>(raw.get()).unwrap());
    }
    let is_accepted = |raw: &&RawValue| {
        raw.get().starts_with('{') && serde_json::from_str::<Accepted<'_>>(raw.get()).is_ok()
    };
    if raws.iter().all(is_accepted) {
        let heads = part_heads(&lines).unwrap().into_iter().map(|head| head.key);
        assert!(heads.eq(items.iter().map(|item| item.key.clone())));
    }
}

#[test]
fn the_seeds_of_stored_objects_hold() {
    testkit::corpus::check("content", 8, check);
}
