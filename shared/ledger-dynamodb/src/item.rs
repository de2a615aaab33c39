//! Items as they lie in the table: the JSON, and the attributes that are derived from it.

use std::fmt::Display;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::entry::{Entry, State};
use domain::intent::Intent;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::ControlRow;
use domain::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::attributes::{
    CONTROL, CONTROL_SORT, DUE_SHARD, DUE_SORT, EXPIRES_AT, FORMAT, GENERATION, INTENT,
    INTENT_SORT, JOB, JSON, LIST_KEY, LIST_SORT, PK, POSTED_AT, REASON, SK, STATE, VERSION,
};
use crate::limits::{NAME_BYTES_MAX, ROW_BYTES_MAX, SORT_KEY_BYTES_MAX};
use crate::places::{Place, due_of, due_of_intent, listed, listed_intent};

/// An item as the SDK gives and takes it.
#[expect(clippy::disallowed_types, reason = "the SDK's own type; nothing depends on its order")]
pub(crate) type Item = std::collections::HashMap<String, AttributeValue>;

/// The form of items that this version writes and reads.
const FORM: u32 = 1;

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
    /// Its name does not fit a key.
    #[error("the name has {bytes} bytes, 1 to {NAME_BYTES_MAX} are allowed")]
    Name {
        /// Its length.
        bytes: usize,
    },
    /// Its place in an index does not fit a key.
    #[error("the run's name is too long to be listed by")]
    Run,
    /// The table would forget what is owed, or nobody would look at it again.
    #[error("`due_at` is present exactly while a row is open, `expires_at` never then")]
    Owed,
}

/// An item that does not decode. What it holds is not in the error.
#[derive(Debug, thiserror::Error)]
#[error("{row} does not decode ({detail})")]
pub(crate) struct DecodeError {
    row: String,
    detail: String,
}

/// The two parts of an item's key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) pk: String,
    pub(crate) sk: String,
}

impl Key {
    pub(crate) fn entry(key: &JobKey) -> Self {
        Self { pk: format!("{JOB}{}", key.job_id), sk: key.kind.as_str().to_owned() }
    }

    /// An intent's; `None` for an id that no intent has.
    pub(crate) fn intent(id: &str) -> Option<Self> {
        is_name(id).then(|| Self { pk: format!("{INTENT}{id}"), sk: INTENT_SORT.to_owned() })
    }

    /// A control row's; `None` for a name that none has.
    pub(crate) fn control(name: &str) -> Option<Self> {
        is_name(name).then(|| Self { pk: format!("{CONTROL}{name}"), sk: CONTROL_SORT.to_owned() })
    }

    /// The key of an item; `None` if it lacks a part.
    pub(crate) fn of(item: &Item) -> Option<Self> {
        Some(Self { pk: text(item, PK)?.to_owned(), sk: text(item, SK)?.to_owned() })
    }

    /// The attributes that name it.
    pub(crate) fn into_item(self) -> Item {
        Item::from([(PK.to_owned(), string(self.pk)), (SK.to_owned(), string(self.sk))])
    }

    /// Which job it is the key of.
    fn job(&self) -> Option<JobKey> {
        let job_id = JobId::parse(self.pk.strip_prefix(JOB)?).ok()?;
        Some(JobKey::new(self.sk.parse::<Kind>().ok()?, job_id))
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
}

/// The item of an entry.
pub(crate) fn encode_entry(entry: &Entry) -> Result<Item, EncodeError> {
    let is_terminal = entry.state.is_terminal();
    if is_terminal != entry.due_at.is_none() || is_terminal != entry.expires_at.is_some() {
        return Err(EncodeError::Owed);
    }
    let mut item = begin(Key::entry(&entry.key), json(entry)?, entry.version);
    item.insert(STATE.to_owned(), string(entry.state.name().as_str()));
    item.insert(GENERATION.to_owned(), number(entry.generation));
    if let State::Dead { reason, .. } = &entry.state {
        item.insert(REASON.to_owned(), string(reason.as_str()));
    }
    if let Some(expires_at) = entry.expires_at {
        item.insert(EXPIRES_AT.to_owned(), number(expires_at));
    }
    if let Some(post) = entry.state.open_post() {
        item.insert(POSTED_AT.to_owned(), number(micros(post.intended_at)));
    }
    place(&mut item, due_of(entry), (DUE_SHARD, DUE_SORT));
    place(&mut item, listed(entry), (LIST_KEY, LIST_SORT));
    Ok(item)
}

/// The item of an intent.
pub(crate) fn encode_intent(intent: &Intent) -> Result<Item, EncodeError> {
    let is_open = intent.state.is_open();
    if is_open != intent.due_at.is_some() || (is_open && intent.expires_at.is_some()) {
        return Err(EncodeError::Owed);
    }
    let bytes = intent.id.len();
    let key = Key::intent(&intent.id).ok_or(EncodeError::Name { bytes })?;
    let listed = listed_intent(intent);
    if listed.sort.len() > SORT_KEY_BYTES_MAX {
        return Err(EncodeError::Run);
    }
    let mut item = begin(key, json(intent)?, intent.version);
    item.insert(STATE.to_owned(), string(intent.state.name()));
    if let Some(expires_at) = intent.expires_at {
        item.insert(EXPIRES_AT.to_owned(), number(expires_at));
    }
    if let Some(post) = intent.state.open_post() {
        item.insert(POSTED_AT.to_owned(), number(micros(post.intended_at)));
    }
    place(&mut item, due_of_intent(intent), (DUE_SHARD, DUE_SORT));
    place(&mut item, Some(listed), (LIST_KEY, LIST_SORT));
    Ok(item)
}

/// The item of a control row.
pub(crate) fn encode_control(row: &ControlRow) -> Result<Item, EncodeError> {
    let bytes = row.name.len();
    let key = Key::control(&row.name).ok_or(EncodeError::Name { bytes })?;
    let bytes = row.value.len();
    if bytes > ROW_BYTES_MAX {
        return Err(EncodeError::TooLarge { bytes });
    }
    Ok(begin(key, row.value.clone(), row.version))
}

/// Reads an entry back, and checks that it is the one its key promises.
pub(crate) fn decode_entry(item: &Item) -> Result<Entry, DecodeError> {
    let key = Key::of(item).as_ref().and_then(Key::job);
    let name = || key.as_ref().map_or_else(|| named(item), |key| format!("entry {key}"));
    let entry: Entry = decode(item, name)?;
    if key.as_ref() != Some(&entry.key) {
        return Err(DecodeError { row: name(), detail: "it holds another key".to_owned() });
    }
    Ok(entry)
}

/// Reads an intent back, and checks that it is the one its key promises.
pub(crate) fn decode_intent(item: &Item) -> Result<Intent, DecodeError> {
    let intent: Intent = decode(item, || named(item))?;
    if Key::of(item) != Key::intent(&intent.id) {
        return Err(DecodeError { row: named(item), detail: "it holds another id".to_owned() });
    }
    Ok(intent)
}

/// Reads a control row back.
pub(crate) fn decode_control(name: &str, item: &Item) -> Result<ControlRow, DecodeError> {
    let broken = |detail: &str| DecodeError { row: named(item), detail: detail.to_owned() };
    check_form(item).map_err(|detail| broken(&detail))?;
    let version = parsed(item, VERSION).ok_or_else(|| broken("no version"))?;
    let value = text(item, JSON).ok_or_else(|| broken("no value"))?.to_owned();
    Ok(ControlRow { name: name.to_owned(), version, value })
}

/// A text of an item.
pub(crate) fn text<'a>(item: &'a Item, attribute: &str) -> Option<&'a str> {
    item.get(attribute)?.as_s().ok().map(String::as_str)
}

fn parsed<T: std::str::FromStr>(item: &Item, attribute: &str) -> Option<T> {
    item.get(attribute)?.as_n().ok()?.parse().ok()
}

pub(crate) fn string(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(crate) fn number(value: impl Display) -> AttributeValue {
    AttributeValue::N(format!("{value}"))
}

/// An instant in the table.
pub(crate) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

fn begin(key: Key, json: String, version: u64) -> Item {
    let mut item = key.into_item();
    item.insert(FORMAT.to_owned(), number(FORM));
    item.insert(JSON.to_owned(), string(json));
    item.insert(VERSION.to_owned(), number(version));
    item
}

fn place(item: &mut Item, place: Option<Place>, (partition, sort): (&str, &str)) {
    if let Some(place) = place {
        item.insert(partition.to_owned(), string(place.partition));
        item.insert(sort.to_owned(), string(place.sort));
    }
}

fn json<T: Serialize>(row: &T) -> Result<String, EncodeError> {
    let json = serde_json::to_string(row).map_err(EncodeError::Json)?;
    let bytes = json.len();
    if bytes > ROW_BYTES_MAX { Err(EncodeError::TooLarge { bytes }) } else { Ok(json) }
}

fn check_form(item: &Item) -> Result<(), String> {
    match parsed::<u32>(item, FORMAT) {
        Some(FORM) => Ok(()),
        Some(form) => Err(format!("its form is {form}, this version reads {FORM}")),
        None => Err("it has no form".to_owned()),
    }
}

fn decode<T: DeserializeOwned>(item: &Item, name: impl Fn() -> String) -> Result<T, DecodeError> {
    let broken = |detail: String| DecodeError { row: name(), detail };
    check_form(item).map_err(broken)?;
    let json = text(item, JSON).ok_or_else(|| broken("no JSON".to_owned()))?;
    // serde's own text may repeat values of the row.
    serde_json::from_str(json).map_err(|error| {
        broken(format!("{:?} error at column {}", error.classify(), error.column()))
    })
}

/// An item's key as a terminal may show it.
fn named(item: &Item) -> String {
    let pk = text(item, PK).unwrap_or("an item without a key");
    let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    pk.chars().take(NAME_BYTES_MAX).map(shown).collect()
}

#[cfg(test)]
mod tests;
