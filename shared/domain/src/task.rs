//! The queue message.

use serde::{Deserialize, Serialize};

use crate::job::{JobId, JobKey, Kind};

/// What travels through the queue: a job's key and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Task {
    /// The job to work.
    pub key: JobKey,
}

/// Longest message body read, in bytes; ours has fewer than 200.
pub const TASK_BYTES_MAX: usize = 1_024;

/// A message that is not a task of a known version.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// Too long to be one of ours.
    #[error("the message has {bytes} bytes, a task has at most {TASK_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Not the JSON of a task.
    #[error("the message is not a task")]
    Shape(#[source] serde_json::Error),
    /// Written by a later version.
    #[error("the message is a task of version {version}, this program reads version 1")]
    Version {
        /// The version it names.
        version: u32,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct V1 {
    v: u32,
    job_id: JobId,
    kind: Kind,
}

impl Task {
    /// The message body.
    pub fn encode(&self) -> String {
        let wire = V1 { v: 1, job_id: self.key.job_id.clone(), kind: self.key.kind };
        serde_json::to_string(&wire).unwrap_or_default()
    }

    /// Reads a message body.
    ///
    /// # Errors
    /// When it is no task; the body itself is not in the error.
    pub fn decode(body: &str) -> Result<Self, TaskError> {
        if body.len() > TASK_BYTES_MAX {
            return Err(TaskError::TooLong { bytes: body.len() });
        }
        let wire: V1 = serde_json::from_str(body).map_err(TaskError::Shape)?;
        if wire.v != 1 {
            return Err(TaskError::Version { version: wire.v });
        }
        Ok(Self { key: JobKey::new(wire.kind, wire.job_id) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DQ-08: a task carries ids only; its bytes are a released format.
    #[test]
    fn a_task_is_small_and_its_bytes_are_fixed() {
        let task = Task { key: JobKey::new(Kind::Crawl, JobId::parse("j1").unwrap()) };
        let body = task.encode();
        assert_eq!(body, r#"{"v":1,"job_id":"j1","kind":"crawl"}"#);
        assert_eq!(Task::decode(&body).unwrap(), task);
        let longest =
            Task { key: JobKey::new(Kind::Extract, JobId::parse(&"\"".repeat(128)).unwrap()) };
        assert!(longest.encode().len() < TASK_BYTES_MAX);
        assert_eq!(Task::decode(&longest.encode()).unwrap(), longest);
    }

    #[test]
    fn other_messages_are_refused() {
        for body in [
            "",
            "{}",
            "null",
            r#"{"v":1,"job_id":"","kind":"crawl"}"#,
            r#"{"v":1,"job_id":"a/b","kind":"extract"}"#,
            r#"{"v":1,"job_id":"a","kind":"map"}"#,
            r#"{"v":1,"job_id":"a","kind":"extract","x":1}"#,
        ] {
            assert!(matches!(Task::decode(body), Err(TaskError::Shape(_))), "{body}");
        }
        assert!(matches!(
            Task::decode(r#"{"v":2,"job_id":"a","kind":"extract"}"#),
            Err(TaskError::Version { version: 2 })
        ));
        assert!(matches!(
            Task::decode(&" ".repeat(2_000)),
            Err(TaskError::TooLong { bytes: 2_000 })
        ));
    }
}
