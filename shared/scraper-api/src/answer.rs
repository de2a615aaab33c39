//! Reading of JSON answers: large ones borrowed, optional fields lenient, texts verbatim.

use std::fmt;

use domain::job::{JobId, JobStatus};
use domain::ports::{ApiError, ApiErrorKind};
use domain::time::{Timestamp, parse_lenient};
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::config::ApiKey;
use crate::status;

/// An answer that was read to its end: a 2xx one, or one that the call expects.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
    /// The key that the call was made with, to be blotted out of what the platform says.
    pub(crate) key: ApiKey,
}

impl Answer {
    /// Reads the answer as `T`.
    ///
    /// # Errors
    /// `Unavailable` when the answer breaks off in the middle, `Unreadable` when it is not `T`.
    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ApiError> {
        if self.text.trim_start().starts_with('[') {
            return Err(self.unreadable("the answer is not an object"));
        }
        serde_json::from_str(&self.text).map_err(|error| {
            // The parser's own text may quote the answer, so only the place is told.
            let place = format!("line {} column {}", error.line(), error.column());
            let text = self.text.trim_start();
            if text.is_empty() {
                self.unreadable("the answer is empty")
            } else if text.starts_with('<') {
                self.unreadable("the answer is markup, not JSON; check the base URL")
            } else if error.classify() == Category::Eof {
                let message = format!("the answer breaks off at {place}");
                self.error(ApiErrorKind::Unavailable, &message)
            } else {
                self.unreadable(&format!("the answer is not the expected JSON at {place}"))
            }
        })
    }

    /// An error that says what the answer lacks.
    pub(crate) fn unreadable(&self, message: &str) -> ApiError {
        let is_success = (200..300).contains(&self.status);
        let kind = if is_success { ApiErrorKind::Unreadable } else { status::kind_of(self.status) };
        self.error(kind, message)
    }

    fn error(&self, kind: ApiErrorKind, message: &str) -> ApiError {
        ApiError { status: Some(self.status), ..ApiError::new(kind, message) }
    }

    /// Checks that the answer speaks of the job that was asked for.
    pub(crate) fn check_job_id(
        &self,
        answered: Option<&str>,
        asked: &JobId,
    ) -> Result<(), ApiError> {
        match answered.map(JobId::parse) {
            Some(Ok(job_id)) if job_id == *asked => Ok(()),
            Some(_) => Err(self.unreadable("the answer speaks of another job")),
            None => Err(self.unreadable("the answer has no `job_id`")),
        }
    }

    /// Reads the status, which every answer about a job must have.
    pub(crate) fn job_status(&self, status: Option<&str>) -> Result<JobStatus, ApiError> {
        status.map(JobStatus::from_api).ok_or_else(|| self.unreadable("the answer has no `status`"))
    }
}

/// An optional value: absent, null and of the wrong type are all `None`.
#[derive(Debug)]
pub(crate) struct Maybe<T>(pub(crate) Option<T>);

impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(raw.get()).ok()))
    }
}

impl Maybe<String> {
    pub(crate) fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }

    pub(crate) fn timestamp(&self) -> Option<Timestamp> {
        self.as_deref().and_then(parse_lenient)
    }
}

/// Reads an object; `None` for anything else. Derived readers would take an array for an object.
pub(crate) fn parse_object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

/// A JSON object's fields in order, their values verbatim.
pub(crate) struct Fields<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
