//! Bodies: the scan agrees with a reader that keeps everything, about what is a JSON object and
//! about the ids in it.
//!
//! An input is a body.

use std::fmt;

use domain::envelope::{Envelope, EnvelopeError, EnvelopeFormat, JSON_DEPTH_MAX};
use domain::job::JobId;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Where the default format looks; the job id first, in order.
const DEFAULT: &[&[&str]] = &[
    &["data", "job_id"],
    &["job_id"],
    &["data", "id"],
    &["event"],
    &["event_type"],
    &["delivery_id"],
    &["id"],
    &["webhook_id"],
];

/// A format with pointers that end inside each other, share beginnings and use escapes.
const ODD_FORMAT: &str = r#"{
    "job_id": ["/data/job/id", "/data/job", "/a~1b/~0c"],
    "event": ["/data/job/event", "/data"], "delivery_id": ["/data/job/id/"], "webhook_id": ["/"],
    "events": {"crawl.completed": "crawl", "": "batch"}
}"#;
const ODD: &[&[&str]] = &[
    &["data", "job", "id"],
    &["data", "job"],
    &["a/b", "~c"],
    &["data", "job", "event"],
    &["data"],
    &["data", "job", "id", ""],
    &[""],
];

/// In both formats the first three pointers lead to the job id.
const JOB_POINTERS: usize = 3;

pub(crate) fn check(body: &[u8]) {
    compare(&EnvelopeFormat::default(), DEFAULT, body);
    compare(&serde_json::from_str(ODD_FORMAT).unwrap(), ODD, body);
}

fn compare(format: &EnvelopeFormat, paths: &[&[&str]], body: &[u8]) {
    let found = Envelope::parse(format, body);
    assert_eq!(found, Envelope::parse(format, body), "the same answer each time");
    if let Ok(envelope) = &found {
        check_bounds(envelope);
    }
    let found = found.map(|envelope| envelope.job_id);
    let Ok(text) = std::str::from_utf8(body) else {
        assert_eq!(found, Err(EnvelopeError::NotUtf8));
        return;
    };
    let Ok(json) = serde_json::from_str::<&RawValue>(text) else {
        assert!(found.is_err(), "not JSON, and the job is {found:?}");
        return;
    };
    if depth(text) > JSON_DEPTH_MAX {
        assert_eq!(found, Err(EnvelopeError::TooDeep));
    } else if json.get().starts_with('{') {
        compare_object(json, paths, &found);
    } else {
        // A number or text that no value holds is no JSON to a reader that wants an object.
        let errors = [Err(EnvelopeError::NotObject), Err(EnvelopeError::NotJson)];
        assert!(errors.contains(&found), "no object, and {found:?}");
    }
}

fn compare_object(json: &RawValue, paths: &[&[&str]], found: &Result<JobId, EnvelopeError>) {
    match way(json, paths) {
        Way { unreadable: true, .. } => assert!(found.is_err(), "a key is no Unicode"),
        Way { repeated: true, .. } => assert_eq!(*found, Err(EnvelopeError::DuplicateKey)),
        _ => {
            let job = paths.iter().take(JOB_POINTERS).find_map(|path| follow(json, path));
            assert_eq!(*found, expected(job));
        }
    }
}

/// What is asked of an envelope whatever the body was.
fn check_bounds(envelope: &Envelope) {
    assert_eq!(JobId::parse(envelope.job_id.as_str()).as_ref(), Ok(&envelope.job_id));
    let event = envelope.event.as_str();
    assert!(event.chars().count() <= 64 && !event.chars().any(char::is_control));
    for id in [&envelope.delivery_id, &envelope.webhook_id].into_iter().flatten() {
        assert!((1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()));
    }
}

fn expected(job: Option<&RawValue>) -> Result<JobId, EnvelopeError> {
    let json = job.ok_or(EnvelopeError::JobIdMissing)?.get();
    let text: String = serde_json::from_str(json).map_err(|_| EnvelopeError::JobIdNotString)?;
    JobId::parse(&text).map_err(EnvelopeError::JobIdInvalid)
}

/// What is wrong with the objects that pointers lead through.
#[derive(Default)]
struct Way {
    /// A key that some pointer names occurs twice.
    repeated: bool,
    /// A key is no Unicode.
    unreadable: bool,
}

fn way(json: &RawValue, paths: &[&[&str]]) -> Way {
    if !json.get().starts_with('{') || paths.iter().all(|path| path.is_empty()) {
        return Way::default();
    }
    let Some(Fields(fields)) = fields(json) else {
        return Way { unreadable: true, ..Way::default() };
    };
    let mut way_on = Way::default();
    for (position, (key, value)) in fields.iter().enumerate() {
        let on: Vec<&[&str]> = paths
            .iter()
            .filter_map(|path| path.split_first())
            .filter(|(first, _)| *first == key)
            .map(|(_, rest)| rest)
            .collect();
        if on.is_empty() {
            continue;
        }
        way_on.repeated |= fields[..position].iter().any(|(other, _)| other == key);
        let inner = way(value, &on);
        way_on.repeated |= inner.repeated;
        way_on.unreadable |= inner.unreadable;
    }
    way_on
}

fn follow<'a>(json: &'a RawValue, path: &[&str]) -> Option<&'a RawValue> {
    path.iter().try_fold(json, |json, key| {
        fields(json)?.0.into_iter().find(|(field, _)| field == key).map(|(_, value)| value)
    })
}

/// How deep the deepest array or object of sound JSON lies.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut is_text, mut is_escape) = (0_usize, 0, false, false);
    for character in json.chars() {
        match character {
            _ if is_escape => is_escape = false,
            '\\' => is_escape = true,
            '"' => is_text = !is_text,
            '[' | '{' if !is_text => depth += 1,
            ']' | '}' if !is_text => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// An object's fields in order, repeated ones included.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

fn fields(json: &RawValue) -> Option<Fields<'_>> {
    serde_json::from_str(json.get()).ok()
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        json.deserialize_map(InOrder)
    }
}

#[test]
fn the_seeds_of_bodies_hold() {
    testkit::corpus::check("envelope", 20, check);
}
