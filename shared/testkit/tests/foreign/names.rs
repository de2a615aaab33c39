//! Ids, URLs and object keys: one spelling each, and none that leads elsewhere.
//!
//! An input is text; its first two lines are compared with each other.

use domain::envelope::pointer::Pointer;
use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::limits::{JOB_ID_BYTES_MAX, URL_BYTES_MAX};
use domain::object::{check_key, check_prefix};
use domain::place::{extract_key, manifest_key, object_name, part_key};
use domain::request::{FetchOptions, JobRequest, batch_bytes, normalised_url};
use domain::time::Date;

pub(crate) fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (one, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let other = rest.split('\n').next().unwrap_or_default();
    check_id(one);
    check_url(one);
    check_object_key(one);
    check_words(one);
    if let (Ok(one), Ok(other)) = (JobId::parse(one), JobId::parse(other)) {
        assert_eq!(one == other, object_name(&one) == object_name(&other), "{one} and {other}");
    }
}

fn check_id(text: &str) {
    let Ok(id) = JobId::parse(text) else { return };
    assert_eq!(JobId::parse(&id.to_string()).as_ref(), Ok(&id));
    assert_eq!(id.to_string().parse().as_ref(), Ok(&id));
    assert!(!id.as_str().is_empty() && id.as_str().len() <= JOB_ID_BYTES_MAX);
    assert!(id.as_str() == text || uuid::Uuid::try_parse(text).is_ok(), "{text} became {id}");
    let json = serde_json::to_string(&id).unwrap();
    assert_eq!(serde_json::from_str::<JobId>(&json).unwrap(), id);

    let name = object_name(&id);
    assert!(!name.contains(['/', '\\', '.']) && name.len() <= 200, "{name}");
    assert_eq!(name, name.to_lowercase(), "one file where names ignore case");
    match decoded(&name) {
        Some(bytes) => assert_eq!(bytes, id.as_str().as_bytes()),
        None => assert!(name.starts_with("_h") && name.len() == 66, "{name}"),
    }
    let dt = Date::constant(2026, 11, 30);
    assert_eq!(check_key(&extract_key(&id, dt)), Ok(()));
    for kind in Kind::ALL {
        assert_eq!(check_key(&manifest_key(kind, &id, dt)), Ok(()));
        assert_eq!(check_key(&part_key(kind, &id, dt, "r1", u32::MAX)), Ok(()));
        let key = JobKey::new(kind, id.clone());
        let json = serde_json::to_string(&key).unwrap();
        assert_eq!(serde_json::from_str::<JobKey>(&json).unwrap(), key);
    }
}

/// The id that an object is named after; `None` for the name of a long one.
fn decoded(name: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'_' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            bytes.push(u8::try_from(16 * high + low).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

fn check_url(text: &str) {
    let normal = normalised_url(text);
    if let Some(normal) = &normal {
        assert_eq!(normalised_url(normal).as_ref(), Some(normal), "{text:?}");
        assert!(!normal.contains('#') && normal.is_ascii(), "{normal}");
        assert!(normal.starts_with("http://") || normal.starts_with("https://"), "{normal}");
    }
    let extract = JobRequest::extract(text, FetchOptions::default());
    assert_eq!(extract.is_ok(), normal.is_some() && text.trim().len() <= URL_BYTES_MAX);
    let Ok(extract) = extract else { return };
    let batch = JobRequest::batch([text, text], FetchOptions::default()).unwrap();
    let crawl = JobRequest::crawl(text, FetchOptions::default(), 1, 1).unwrap();
    for request in [extract, batch, crawl] {
        let json = serde_json::to_string(&request).unwrap();
        let read: JobRequest = serde_json::from_str(&json).unwrap();
        assert_eq!(read, request);
        assert_eq!(read.hash(), request.hash());
        assert!(request.url().is_none_or(|url| url == text.trim()));
        assert!(batch_bytes(text.trim()) <= json.len());
    }
}

fn check_object_key(text: &str) {
    if check_key(text).is_ok() {
        assert!(!text.starts_with('/') && !text.contains("..") || !has_dots(text));
        assert!(text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()));
        assert_eq!(check_prefix(text), Ok(()));
        assert_eq!(check_prefix(&format!("{text}/")), Ok(()));
    }
}

fn has_dots(text: &str) -> bool {
    text.split('/').any(|segment| segment.starts_with('.') || segment.is_empty())
}

fn check_words(text: &str) {
    let status = JobStatus::from_api(text);
    assert!(status.as_str().chars().count() <= 64 && text.starts_with(status.as_str()));
    if let Ok(kind) = text.parse::<Kind>() {
        assert_eq!(kind.to_string(), text);
    }
    if Pointer::parse(text).is_ok() {
        assert!(text.starts_with('/'));
        let escapes = text.matches("~0").count() + text.matches("~1").count();
        assert_eq!(text.matches('~').count(), escapes);
    }
}

#[test]
fn the_seeds_of_names_hold() {
    testkit::corpus::check("names", 20, check);
}
