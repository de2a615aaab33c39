use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lock;
use crate::entry::{Entry, State, StateName};
use crate::intent::Intent;
use crate::job::{JobKey, Kind};
use crate::ports::{
    Control, ControlRow, Cursor, Due, Entries, EntryFilter, ErrorKind, Expected, Inspection,
    IntentExpected, IntentWritten, Intents, Met, Page, Pairs, PortError, RowWrite, Written,
    WrittenBoth,
};
use crate::time::Timestamp;

/// Longest row as JSON, in bytes. Source: Amazon `DynamoDB`, items have at most 400 KiB, of which
/// some are left for the attributes beside the JSON.
const ROW_BYTES_MAX: usize = 400_000;
/// Longest key of a row, in bytes. Source: Amazon `DynamoDB`, a sort key has at most 1,024.
const KEY_BYTES_MAX: usize = 1_024;

/// A ledger in memory.
///
/// It is stricter than a real one: a row that breaks a rule of [`Entry`] or [`Intent`] (a version
/// that does not grow, an open row that nobody will look at) is refused as `Invalid`, because
/// only a bug writes it.
#[derive(Default)]
pub struct MemoryLedger {
    rows: Mutex<Rows>,
}

#[derive(Default)]
struct Rows {
    entries: BTreeMap<JobKey, EntryRow>,
    intents: BTreeMap<String, IntentRow>,
    control: BTreeMap<String, ControlRow>,
    writes: u64,
}

/// An encoded row beside what a real ledger would index.
struct EntryRow {
    json: String,
    state: StateName,
    reason: Option<&'static str>,
    reference: Option<String>,
    due_at: Option<Timestamp>,
    /// When its unresolved POST was intended.
    posted_at: Option<Timestamp>,
}

struct IntentRow {
    json: String,
    state: &'static str,
    /// When its unresolved POST was intended.
    posted_at: Option<Timestamp>,
    kind: Kind,
    run: String,
    position: u64,
    due_at: Option<Timestamp>,
}

impl MemoryLedger {
    /// An empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// The row of a job as it is; `None` also if it does not decode.
    pub fn entry(&self, key: &JobKey) -> Option<Entry> {
        let rows = lock(&self.rows);
        rows.entries.get(key).and_then(|row| serde_json::from_str(&row.json).ok())
    }

    /// All rows that decode, in key order.
    pub fn entries(&self) -> Vec<Entry> {
        let rows = lock(&self.rows);
        rows.entries.values().filter_map(|row| serde_json::from_str(&row.json).ok()).collect()
    }

    /// All intents that decode, in the order of their ids.
    pub fn intents(&self) -> Vec<Intent> {
        let rows = lock(&self.rows);
        rows.intents.values().filter_map(|row| serde_json::from_str(&row.json).ok()).collect()
    }

    /// All control rows, in the order of their names.
    pub fn controls(&self) -> Vec<ControlRow> {
        lock(&self.rows).control.values().cloned().collect()
    }

    /// How many rows were written.
    pub fn writes(&self) -> u64 {
        lock(&self.rows).writes
    }

    /// Lays a row down, whatever was there and whatever its rules.
    pub fn place(&self, entry: &Entry) {
        let row = EntryRow::of(entry, serde_json::to_string(entry).unwrap_or_default());
        lock(&self.rows).entries.insert(entry.key.clone(), row);
    }

    /// Lays an intent down, whatever was there and whatever its rules.
    pub fn place_intent(&self, intent: &Intent) {
        let row = IntentRow::of(intent, serde_json::to_string(intent).unwrap_or_default());
        lock(&self.rows).intents.insert(intent.id.clone(), row);
    }

    /// Makes a row unreadable; `false` if there is none.
    pub fn corrupt(&self, key: &JobKey) -> bool {
        let mut rows = lock(&self.rows);
        rows.entries.get_mut(key).map(|row| row.json.truncate(1)).is_some()
    }

    /// Makes an intent unreadable; `false` if there is none.
    pub fn corrupt_intent(&self, id: &str) -> bool {
        let mut rows = lock(&self.rows);
        rows.intents.get_mut(id).map(|row| row.json.truncate(1)).is_some()
    }
}

impl Rows {
    fn existing(&self, operation: &'static str, key: &JobKey) -> Result<Option<Entry>, PortError> {
        let row = self.entries.get(key);
        row.map(|row| decode(operation, &key.to_string(), &row.json)).transpose()
    }
}

impl EntryRow {
    fn of(entry: &Entry, json: String) -> Self {
        let reason = match &entry.state {
            State::Dead { reason, .. } => Some(reason.as_str()),
            _ => None,
        };
        Self {
            json,
            state: entry.state.name(),
            reason,
            reference: entry.link.as_ref().and_then(|link| link.reference.clone()),
            due_at: entry.due_at,
            posted_at: entry.state.open_post().map(|post| post.intended_at),
        }
    }
}

impl IntentRow {
    fn of(intent: &Intent, json: String) -> Self {
        Self {
            json,
            state: intent.state.name(),
            posted_at: intent.state.open_post().map(|post| post.intended_at),
            kind: intent.request.kind(),
            run: intent.run.clone(),
            position: intent.position,
            due_at: intent.due_at,
        }
    }
}

fn invalid(operation: &'static str, why: impl Into<String>) -> PortError {
    PortError::new("ledger", operation, ErrorKind::Invalid).with_source(why.into())
}

fn decode<T: DeserializeOwned>(
    operation: &'static str,
    name: &str,
    json: &str,
) -> Result<T, PortError> {
    serde_json::from_str(json).map_err(|error| {
        PortError::new("ledger", operation, ErrorKind::Corrupt)
            .with_source(format!("row {name}: {error}"))
    })
}

/// The row as JSON, if a real ledger would take it.
fn encode<T: Serialize>(operation: &'static str, key: &str, row: &T) -> Result<String, PortError> {
    let json = serde_json::to_string(row).map_err(|error| invalid(operation, error.to_string()))?;
    check_size(operation, key, json.len())?;
    Ok(json)
}

fn check_size(operation: &'static str, key: &str, bytes: usize) -> Result<(), PortError> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(invalid(operation, format!("a key has 1 to {KEY_BYTES_MAX} bytes")));
    }
    if bytes > ROW_BYTES_MAX {
        return Err(invalid(operation, format!("the row has {bytes} of {ROW_BYTES_MAX} bytes")));
    }
    Ok(())
}

/// Reads the place of a cursor that [`page_of`] made.
fn place_of<T: DeserializeOwned>(
    operation: &'static str,
    after: Option<&Cursor>,
) -> Result<Option<T>, PortError> {
    after
        .map(|cursor| serde_json::from_str(&cursor.0))
        .transpose()
        .map_err(|_| invalid(operation, "the cursor is not one of this ledger"))
}

/// One page out of the rows that come next, each with its place.
fn page_of<P: Serialize, T: DeserializeOwned>(rows: Vec<(P, &str)>, limit: u32) -> Page<T> {
    let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    let mut page = Page { items: Vec::new(), next: None, unreadable: Vec::new() };
    let mut last = None;
    for (place, json) in rows.into_iter().take(limit) {
        let place = serde_json::to_string(&place).unwrap_or_default();
        match serde_json::from_str(json) {
            Ok(item) => page.items.push(item),
            Err(_) => page.unreadable.push(format!("the row at {place} does not decode")),
        }
        last = Some(place);
    }
    page.next = last.filter(|_| has_more).map(Cursor);
    page
}

fn is_as_expected(existing: Option<&Entry>, expected: Expected) -> bool {
    match (existing, expected) {
        (None, Expected::Absent(_)) => true,
        (Some(existing), Expected::Absent(now)) => existing.is_expired(now),
        (Some(existing), Expected::As(seen)) => existing.seen() == seen,
        (None, Expected::As(_)) => false,
    }
}

fn check_entry(entry: &Entry, expected: Expected) -> Result<(), PortError> {
    let why = match expected {
        _ if entry.state.is_terminal() != entry.due_at.is_none() => {
            "`due_at` is present exactly while a row is not terminal"
        }
        _ if entry.state.is_terminal() != entry.expires_at.is_some() => {
            "`expires_at` is present exactly while a row is terminal"
        }
        Expected::As(seen) if entry.version <= seen.version => "the version of a row grows",
        _ => return Ok(()),
    };
    Err(invalid("write", why))
}

#[async_trait]
impl Entries for MemoryLedger {
    async fn load(&self, key: &JobKey) -> Result<Option<Entry>, PortError> {
        let rows = lock(&self.rows);
        let row = rows.entries.get(key);
        row.map(|row| decode("load", &key.to_string(), &row.json)).transpose()
    }

    async fn write(&self, entry: &Entry, expected: Expected) -> Result<Written, PortError> {
        check_entry(entry, expected)?;
        let json = encode("write", entry.key.job_id.as_str(), entry)?;
        let mut rows = lock(&self.rows);
        let existing = rows.existing("write", &entry.key)?;
        if !is_as_expected(existing.as_ref(), expected) {
            return Ok(Written::Conflict(existing.map(Box::new)));
        }
        rows.writes += 1;
        rows.entries.insert(entry.key.clone(), EntryRow::of(entry, json));
        Ok(Written::Done)
    }
}

#[async_trait]
impl Pairs for MemoryLedger {
    async fn write_both(&self, rows: [RowWrite<'_>; 2]) -> Result<WrittenBoth, PortError> {
        const OPERATION: &str = "write_both";
        let [one, other] = rows;
        if one.entry.key == other.entry.key {
            return Err(invalid(OPERATION, "two rows of one job"));
        }
        let mut encoded = Vec::new();
        for RowWrite { entry, expected } in rows {
            check_entry(entry, expected)?;
            encoded.push((entry, encode(OPERATION, entry.key.job_id.as_str(), entry)?));
        }
        let mut held = lock(&self.rows);
        let there = |row: RowWrite<'_>| {
            let existing = held.existing(OPERATION, &row.entry.key)?;
            Ok(if is_as_expected(existing.as_ref(), row.expected) {
                Met::Expected
            } else {
                Met::Other(existing.map(Box::new))
            })
        };
        let met = [there(one)?, there(other)?];
        if met != [Met::Expected, Met::Expected] {
            return Ok(WrittenBoth::Conflict(met));
        }
        for (entry, json) in encoded {
            held.writes += 1;
            held.entries.insert(entry.key.clone(), EntryRow::of(entry, json));
        }
        Ok(WrittenBoth::Done)
    }
}

#[async_trait]
impl Due for MemoryLedger {
    async fn list_due(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        let after: Option<(Timestamp, JobKey)> = place_of("list_due", after)?;
        let rows = lock(&self.rows);
        let mut due: Vec<_> = rows
            .entries
            .iter()
            .filter_map(|(key, row)| Some(((row.due_at?, key.clone()), row.json.as_str())))
            .filter(|(place, _)| place.0 <= now && after.as_ref().is_none_or(|at| place > at))
            .collect();
        due.sort_unstable();
        Ok(page_of(due, limit))
    }

    async fn list_due_intents(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        let after: Option<(Timestamp, String)> = place_of("list_due_intents", after)?;
        let rows = lock(&self.rows);
        let mut due: Vec<_> = rows
            .intents
            .iter()
            .filter(|(_, row)| row.posted_at.is_some())
            .filter_map(|(id, row)| Some(((row.due_at?, id.clone()), row.json.as_str())))
            .filter(|(place, _)| place.0 <= now && after.as_ref().is_none_or(|at| place > at))
            .collect();
        due.sort_unstable();
        Ok(page_of(due, limit))
    }
}

#[async_trait]
impl Intents for MemoryLedger {
    async fn load_intent(&self, id: &str) -> Result<Option<Intent>, PortError> {
        let rows = lock(&self.rows);
        rows.intents.get(id).map(|row| decode("load_intent", id, &row.json)).transpose()
    }

    async fn write_intent(
        &self,
        intent: &Intent,
        expected: IntentExpected,
    ) -> Result<IntentWritten, PortError> {
        if intent.state.is_open() != intent.due_at.is_some() {
            let why = "`due_at` is present exactly while an intent is open";
            return Err(invalid("write_intent", why));
        }
        if matches!(expected, IntentExpected::Version(seen) if intent.version <= seen) {
            return Err(invalid("write_intent", "the version of an intent grows"));
        }
        let json = encode("write_intent", &intent.id, intent)?;
        let mut rows = lock(&self.rows);
        let existing = rows.intents.get(&intent.id);
        let existing: Option<Intent> =
            existing.map(|row| decode("write_intent", &intent.id, &row.json)).transpose()?;
        let is_as_expected = match (&existing, expected) {
            (None, IntentExpected::Absent(_)) => true,
            (Some(existing), IntentExpected::Absent(now)) => {
                existing.expires_at.is_some_and(|expires_at| expires_at <= now.as_second())
            }
            (Some(existing), IntentExpected::Version(seen)) => existing.version == seen,
            (None, IntentExpected::Version(_)) => false,
        };
        if !is_as_expected {
            return Ok(IntentWritten::Conflict(existing.map(Box::new)));
        }
        rows.writes += 1;
        rows.intents.insert(intent.id.clone(), IntentRow::of(intent, json));
        Ok(IntentWritten::Done)
    }

    async fn has_unresolved_post(&self, kind: Kind, until: Timestamp) -> Result<bool, PortError> {
        let rows = lock(&self.rows);
        let is_in_time = |posted_at: Option<Timestamp>| posted_at.is_some_and(|at| at <= until);
        let intents = rows.intents.values().map(|row| (row.kind, row.posted_at));
        let entries = rows.entries.iter().map(|(key, row)| (key.kind, row.posted_at));
        Ok(intents.chain(entries).any(|(of, posted_at)| of == kind && is_in_time(posted_at)))
    }
}

#[async_trait]
impl Control for MemoryLedger {
    async fn load_control(&self, name: &str) -> Result<Option<ControlRow>, PortError> {
        Ok(lock(&self.rows).control.get(name).cloned())
    }

    async fn write_control(&self, row: &ControlRow) -> Result<bool, PortError> {
        check_size("write_control", &row.name, row.value.len())?;
        let mut rows = lock(&self.rows);
        let version = rows.control.get(&row.name).map_or(0, |existing| existing.version);
        if version.checked_add(1) != Some(row.version) {
            return Ok(false);
        }
        rows.writes += 1;
        rows.control.insert(row.name.clone(), row.clone());
        Ok(true)
    }
}

#[async_trait]
impl Inspection for MemoryLedger {
    async fn list_entries(
        &self,
        filter: &EntryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        let after: Option<JobKey> = place_of("list_entries", after)?;
        let rows = lock(&self.rows);
        let matching = rows
            .entries
            .iter()
            .filter(|(key, row)| {
                filter.kind.is_none_or(|kind| kind == key.kind)
                    && filter.state.is_none_or(|state| state == row.state)
                    && filter.reference.as_ref().is_none_or(|it| row.reference.as_ref() == Some(it))
                    && after.as_ref().is_none_or(|after| *key > after)
            })
            .map(|(key, row)| (key, row.json.as_str()))
            .take(usize::try_from(limit.max(1)).unwrap_or(usize::MAX).saturating_add(1));
        let matching: Vec<_> = matching.collect();
        Ok(page_of(matching, limit))
    }

    async fn count_entries(&self) -> Result<BTreeMap<String, u64>, PortError> {
        let mut counts = BTreeMap::new();
        for row in lock(&self.rows).entries.values() {
            *counts.entry(row.state.as_str().to_owned()).or_default() += 1;
            if let Some(reason) = row.reason {
                *counts.entry(format!("dead:{reason}")).or_default() += 1;
            }
        }
        Ok(counts)
    }

    async fn count_intents(&self) -> Result<BTreeMap<String, u64>, PortError> {
        let mut counts = BTreeMap::new();
        for row in lock(&self.rows).intents.values() {
            *counts.entry(row.state.to_owned()).or_default() += 1;
        }
        Ok(counts)
    }

    async fn list_intents(
        &self,
        run: Option<&str>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        let after: Option<(String, u64, String)> = place_of("list_intents", after)?;
        let rows = lock(&self.rows);
        let mut matching: Vec<_> = rows
            .intents
            .iter()
            .filter(|(_, row)| run.is_none_or(|run| run == row.run))
            .map(|(id, row)| ((row.run.clone(), row.position, id.clone()), row.json.as_str()))
            .filter(|(place, _)| after.as_ref().is_none_or(|after| place > after))
            .collect();
        matching.sort_unstable();
        Ok(page_of(matching, limit))
    }
}
