use super::*;
use crate::job::JobStatus;

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
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 2);
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
