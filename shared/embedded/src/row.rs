//! Rows as they lie in the file: the JSON, and the columns that are derived from it.

use domain::entry::{Entry, State, StateName};
use domain::intent::Intent;
use domain::job::{JobKey, Kind};
use domain::limits::JOB_ID_BYTES_MAX;
use domain::time::Timestamp;
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::limits::ROW_BYTES_MAX;

/// A row that cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EncodeError {
    /// Over the limit.
    #[error("the row has {bytes} bytes as JSON, at most {ROW_BYTES_MAX} are allowed")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// No JSON can be made of it.
    #[error("the row cannot be written as JSON")]
    Json(#[source] serde_json::Error),
    /// A number that the file's 64-bit integers cannot hold.
    #[error("the row's {column} is larger than the file can hold")]
    Number {
        /// The column.
        column: &'static str,
    },
}

/// A row that does not decode. What it holds is not in the error.
#[derive(Debug, thiserror::Error)]
#[error("{row} does not decode ({detail})")]
pub(crate) struct DecodeError {
    row: String,
    detail: String,
}

/// A text as it lies in the file. A damaged one need not be Unicode, and must not keep anybody
/// from the rows beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Text(Vec<u8>);

impl Text {
    /// The text, if it is one.
    pub(crate) fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl FromSql for Text {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_bytes().map(|bytes| Self(bytes.to_vec()))
    }
}

impl ToSql for Text {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(&self.0)))
    }
}

/// An entry's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryRow {
    pub(crate) kind: i64,
    pub(crate) job_id: String,
    pub(crate) state: &'static str,
    pub(crate) generation: i64,
    pub(crate) version: i64,
    pub(crate) due_at: Option<i64>,
    pub(crate) expires_at: Option<i64>,
    pub(crate) dead_reason: Option<&'static str>,
    pub(crate) reference: Option<String>,
    pub(crate) json: String,
}

impl EntryRow {
    pub(crate) fn encode(entry: &Entry) -> Result<Self, EncodeError> {
        Ok(Self {
            kind: kind_code(entry.key.kind),
            job_id: entry.key.job_id.as_str().to_owned(),
            state: entry.state.name().as_str(),
            generation: i64::from(entry.generation),
            version: number("version", entry.version)?,
            due_at: entry.due_at.map(micros),
            expires_at: entry.expires_at,
            dead_reason: dead_reason_of(entry),
            reference: reference_of(entry).map(str::to_owned),
            json: encode_json(entry)?,
        })
    }
}

/// Why an entry is dead.
pub(crate) fn dead_reason_of(entry: &Entry) -> Option<&'static str> {
    match &entry.state {
        State::Dead { reason, .. } => Some(reason.as_str()),
        _ => None,
    }
}

/// The user's own id of an entry's job.
pub(crate) fn reference_of(entry: &Entry) -> Option<&str> {
    entry.link.as_ref()?.reference.as_deref()
}

/// Reads an entry back, and checks that it is the one its key columns promise.
pub(crate) fn decode_entry(kind: i64, job_id: &str, json: &str) -> Result<Entry, DecodeError> {
    let name = || format!("entry {} {}", kind_name(kind), shown(job_id));
    let entry: Entry = decode_json(json, name)?;
    if kind_code(entry.key.kind) != kind || entry.key.job_id.as_str() != job_id {
        return Err(DecodeError { row: name(), detail: "it holds another key".to_owned() });
    }
    Ok(entry)
}

/// Reads an entry of a listing.
pub(crate) fn listed_entry(kind: i64, job_id: &Text, json: &Text) -> Result<Entry, DecodeError> {
    let (Some(job_id), Some(json)) = (job_id.as_str(), json.as_str()) else {
        return Err(not_text(&format!("entry {}", kind_name(kind)), job_id));
    };
    decode_entry(kind, job_id, json)
}

/// An intent's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IntentRow {
    pub(crate) id: String,
    pub(crate) run: String,
    pub(crate) position: i64,
    pub(crate) kind: i64,
    pub(crate) state: &'static str,
    pub(crate) version: i64,
    pub(crate) due_at: Option<i64>,
    pub(crate) expires_at: Option<i64>,
    pub(crate) json: String,
}

impl IntentRow {
    pub(crate) fn encode(intent: &Intent) -> Result<Self, EncodeError> {
        Ok(Self {
            id: intent.id.clone(),
            run: intent.run.clone(),
            position: number("position", intent.position)?,
            kind: kind_code(intent.request.kind()),
            state: intent.state.name(),
            version: number("version", intent.version)?,
            due_at: intent.due_at.map(micros),
            expires_at: intent.expires_at,
            json: encode_json(intent)?,
        })
    }
}

/// Reads an intent back, and checks that it is the one its id promises.
pub(crate) fn decode_intent(id: &str, json: &str) -> Result<Intent, DecodeError> {
    let name = || format!("intent {}", shown(id));
    let intent: Intent = decode_json(json, name)?;
    if intent.id != id {
        return Err(DecodeError { row: name(), detail: "it holds another id".to_owned() });
    }
    Ok(intent)
}

/// Reads an intent of a listing.
pub(crate) fn listed_intent(id: &Text, json: &Text) -> Result<Intent, DecodeError> {
    let (Some(id), Some(json)) = (id.as_str(), json.as_str()) else {
        return Err(not_text("intent", id));
    };
    decode_intent(id, json)
}

fn not_text(what: &str, name: &Text) -> DecodeError {
    let name = shown(&String::from_utf8_lossy(&name.0));
    DecodeError { row: format!("{what} {name}"), detail: "it is not UTF-8".to_owned() }
}

/// A name as a terminal may show it, cut.
fn shown(name: &str) -> String {
    let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    name.chars().take(JOB_ID_BYTES_MAX).map(shown).collect()
}

/// A state's condition on the version that was read; none fits a version too large to be written.
pub(crate) fn version_column(version: u64) -> Option<i64> {
    i64::try_from(version).ok()
}

/// The key's columns.
pub(crate) fn key_columns(key: &JobKey) -> (i64, String) {
    (kind_code(key.kind), key.job_id.as_str().to_owned())
}

/// A kind in the file; the order is that of [`JobKey`].
pub(crate) const fn kind_code(kind: Kind) -> i64 {
    match kind {
        Kind::Extract => 0,
        Kind::Batch => 1,
        Kind::Crawl => 2,
    }
}

fn kind_name(code: i64) -> &'static str {
    Kind::ALL
        .into_iter()
        .find(|kind| kind_code(*kind) == code)
        .map_or("unknown", |kind| kind.as_str())
}

/// An instant in the file.
pub(crate) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

/// The name of the state in which money is at stake.
pub(crate) const RESUBMITTING: &str = StateName::Resubmitting.as_str();

fn number(column: &'static str, value: u64) -> Result<i64, EncodeError> {
    i64::try_from(value).map_err(|_| EncodeError::Number { column })
}

fn encode_json<T: Serialize>(row: &T) -> Result<String, EncodeError> {
    let json = serde_json::to_string(row).map_err(EncodeError::Json)?;
    if json.len() > ROW_BYTES_MAX {
        return Err(EncodeError::TooLarge { bytes: json.len() });
    }
    Ok(json)
}

fn decode_json<T: DeserializeOwned>(
    json: &str,
    name: impl FnOnce() -> String,
) -> Result<T, DecodeError> {
    // serde's own text may repeat values of the row.
    serde_json::from_str(json).map_err(|error| DecodeError {
        row: name(),
        detail: format!("{:?} error at column {}", error.classify(), error.column()),
    })
}

#[cfg(test)]
mod tests;
