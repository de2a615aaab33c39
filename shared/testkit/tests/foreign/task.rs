//! Queue messages: a task of ours, or refused.
//!
//! An input is a message.

use domain::job::{JobId, Kind};
use domain::task::{TASK_BYTES_MAX, Task, TaskError};
use serde_json::Value;

pub(crate) fn check(message: &[u8]) {
    let Ok(message) = std::str::from_utf8(message) else { return };
    match Task::decode(message) {
        Ok(task) => {
            assert_eq!(task, expected(message).unwrap_or_else(|| panic!("a task it is not")));
            let body = task.encode();
            assert!(body.len() <= TASK_BYTES_MAX);
            assert_eq!(Task::decode(&body).unwrap(), task);
        }
        Err(TaskError::TooLong { bytes }) => assert!(bytes > TASK_BYTES_MAX),
        Err(TaskError::Version { version }) => assert_ne!(version, 1),
        Err(error @ TaskError::Shape(_)) => {
            // A key that occurs twice is refused here and invisible there.
            let is_plain = serde_json::from_str::<Value>(message)
                .is_ok_and(|value| value.to_string().len() == message.len());
            assert!(!is_plain || expected(message).is_none(), "{error:?}");
        }
    }
}

/// What a reader that keeps everything makes of it.
fn expected(message: &str) -> Option<Task> {
    let value: Value = serde_json::from_str(message).ok()?;
    // A derived reader takes the fields in order for an object, too.
    let (v, job_id, kind) = match &value {
        Value::Array(fields) if fields.len() == 3 => (&fields[0], &fields[1], &fields[2]),
        Value::Object(fields) if fields.len() == 3 => {
            (fields.get("v")?, fields.get("job_id")?, fields.get("kind")?)
        }
        _ => return None,
    };
    let kind: Kind = kind.as_str()?.parse().ok()?;
    let job_id = JobId::parse(job_id.as_str()?).ok()?;
    (v.as_u64() == Some(1)).then(|| Task { key: domain::job::JobKey::new(kind, job_id) })
}

#[test]
fn the_seeds_of_messages_hold() {
    testkit::corpus::check("task", 8, check);
}
