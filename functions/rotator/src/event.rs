//! What Secrets Manager hands over.

use domain::ports::{NameError, SlotId, VersionId};
use domain::rotate::{Step, UnknownWord};
use serde_json::Value;

/// A step that is to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The secret.
    pub slot: SlotId,
    /// The version that is to be made.
    pub version: VersionId,
    /// The step.
    pub step: Step,
}

/// Why an event is no step. Shows nothing of it but the names of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// A field is not there.
    #[error("the event has no text `{0}`: it is for Secrets Manager to send events here")]
    Missing(&'static str),
    /// A name that names nothing.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A step that nobody knows.
    #[error("the event's `Step`: {0}")]
    Step(#[from] UnknownWord),
}

const SECRET: &str = "SecretId";
const TOKEN: &str = "ClientRequestToken";
const STEP: &str = "Step";

impl Event {
    /// Reads an event. Fields that are not known are left alone: Secrets Manager adds to them.
    ///
    /// # Errors
    /// See [`EventError`].
    pub fn read(event: &Value) -> Result<Self, EventError> {
        let text = |name| event.get(name).and_then(Value::as_str).ok_or(EventError::Missing(name));
        Ok(Self {
            slot: SlotId::parse(text(SECRET)?)?,
            version: VersionId::parse(text(TOKEN)?)?,
            step: text(STEP)?.parse()?,
        })
    }
}

/// The secret's name and the step, as far as they may be logged.
pub(crate) fn told(event: &Value) -> (&str, &'static str) {
    let secret = event.get(SECRET).and_then(Value::as_str).unwrap_or_default();
    let is_name = SlotId::parse(secret).is_ok();
    let name = secret.rsplit(':').next().filter(|_| is_name).unwrap_or("(none)");
    let step = event.get(STEP).and_then(Value::as_str).and_then(|step| step.parse().ok());
    (name, step.map_or("(none)", Step::as_str))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event() -> Value {
        json!({
            "SecretId": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:extract-a1B2c3",
            "ClientRequestToken": "0b3e1f44-22f0-4a6b-9df3-8d4f6d2f7a11",
            "Step": "createSecret",
            "RotationToken": "something new",
        })
    }

    #[test]
    fn an_event_is_read() {
        let read = Event::read(&event()).unwrap();
        assert_eq!(read.step, Step::Create);
        assert_eq!(told(&event()), ("extract-a1B2c3", "createSecret"));
    }

    #[test]
    fn what_is_no_event_is_refused_and_not_shown() {
        for (field, value) in [
            ("SecretId", json!(null)),
            ("SecretId", json!("")),
            ("SecretId", json!("hush hush")),
            ("ClientRequestToken", json!(1)),
            ("ClientRequestToken", json!("hushhush")),
            ("Step", json!("hushhush")),
            ("Step", json!({})),
        ] {
            let mut event = event();
            event[field] = value.clone();
            let error = Event::read(&event).unwrap_err();
            let text = format!("{error} {error:?} {:?}", told(&event));
            assert!(!text.contains("hush"), "{field} {value}: {text}");
        }
        for event in [json!(null), json!([]), json!("createSecret"), json!({})] {
            assert_eq!(Event::read(&event), Err(EventError::Missing(SECRET)), "{event}");
            assert_eq!(told(&event), ("(none)", "(none)"));
        }
    }
}
