//! Rows of jobs: conditional writes, reads, and what is due.

use std::collections::BTreeSet;

use async_trait::async_trait;
use domain::announce::Announcing;
use domain::entry::{Announcement, Entry};
use domain::intent::Intent;
use domain::job::JobKey;
use domain::limits::Limits;
use domain::ports::{Cursor, Due, Entries, ErrorKind, Expected, Loaded, Page, PortError, Written};
use domain::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, ToSql, params, params_from_iter};

use crate::announce::Announce;
use crate::counts::{Group, RowsOf, dead_name, label};
use crate::cursor;
use crate::limits::PAGE_ROWS_MAX;
use crate::row::{
    DecodeError, EntryRow, Text, dead_reason_of, decode_entry, key_columns, listed_entry,
    listed_intent, micros, reference_of, version_column,
};
use crate::store::{LEDGER, SqliteStore, ledger_error};

/// What the file did with a conditional write; the row that is there is decoded elsewhere, so
/// that the writing thread does not wait for it.
pub(crate) enum Outcome {
    Done,
    Conflict(Option<String>),
}

#[async_trait]
impl Entries for SqliteStore {
    async fn load(&self, key: &JobKey) -> Result<Option<Entry>, PortError> {
        let (kind, job_id) = key_columns(key);
        let json =
            self.read(LEDGER, "load", move |connection| read(connection, kind, &job_id)).await?;
        json.map(|json| decode(key, &json, "load")).transpose()
    }

    async fn load_many(&self, keys: &[JobKey]) -> Result<Loaded, PortError> {
        let keys: BTreeSet<_> = keys.iter().cloned().collect();
        let found = self
            .read(LEDGER, "load_many", move |connection| {
                let mut found = Vec::new();
                for key in keys {
                    let (kind, job_id) = key_columns(&key);
                    let json = read(connection, kind, &job_id)?;
                    found.extend(json.map(|json| (key, json)));
                }
                Ok(found)
            })
            .await?;
        let mut loaded = Loaded::default();
        for (key, json) in found {
            match decode(&key, &json, "load_many") {
                Ok(row) => loaded.rows.push(row),
                Err(_) => loaded.unreadable.push(key),
            }
        }
        Ok(loaded)
    }

    async fn write(&self, entry: &Entry, expected: Expected) -> Result<Written, PortError> {
        let row = EntryRow::encode(entry)
            .map_err(|error| ledger_error("write", ErrorKind::Invalid, error))?;
        let outcome =
            self.write(LEDGER, "write", move |group| write(group, &row, expected)).await?;
        Ok(match outcome {
            Outcome::Done => Written::Done,
            Outcome::Conflict(json) => {
                let there = json.map(|json| decode(&entry.key, &json, "write")).transpose()?;
                Written::Conflict(there.map(Box::new))
            }
        })
    }

    async fn announce(
        &self,
        key: &JobKey,
        announcement: &Announcement,
        now: Timestamp,
        limits: &Limits,
    ) -> Result<Announcing, PortError> {
        let announce = Announce::new(key, announcement, now, limits)
            .map_err(|error| ledger_error("announce", ErrorKind::Invalid, error))?;
        let announced = self.write(LEDGER, "announce", move |group| announce.run(group)).await??;
        if matches!(announced, Announcing::Sent { .. }) {
            self.sent().notify_one();
        }
        Ok(announced)
    }
}

/// The row's JSON.
pub(crate) fn read(
    connection: &Connection,
    kind: i64,
    job_id: &str,
) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT json FROM entries WHERE kind = ?1 AND job_id = ?2")?
        .query_row(params![kind, job_id], |row| row.get(0))
        .optional()
}

pub(crate) fn decode(
    key: &JobKey,
    json: &str,
    operation: &'static str,
) -> Result<Entry, PortError> {
    let (kind, job_id) = key_columns(key);
    decode_entry(kind, &job_id, json)
        .map_err(|error| ledger_error(operation, ErrorKind::Corrupt, error))
}

/// The columns that a condition looks at, those that are counted, and the row for the loser.
pub(crate) struct There {
    state: String,
    generation: i64,
    version: i64,
    expires_at: Option<i64>,
    dead_reason: Option<String>,
    pub(crate) json: String,
    reference: Option<String>,
}

impl There {
    /// The row that is there in the place of one that is to be written.
    pub(crate) fn of(group: &Group, row: &EntryRow) -> rusqlite::Result<Option<Self>> {
        group
            .prepare_cached(
                "SELECT state, generation, version, expires_at, dead_reason, json, ref \
                 FROM entries WHERE kind = ?1 AND job_id = ?2",
            )?
            .query_row(params![row.kind, row.job_id], |there| {
                Ok(Self {
                    state: there.get(0)?,
                    generation: there.get(1)?,
                    version: there.get(2)?,
                    expires_at: there.get(3)?,
                    dead_reason: label(there, 4)?,
                    json: there.get(5)?,
                    reference: label(there, 6)?,
                })
            })
            .optional()
    }

    pub(crate) fn labels(&self) -> Labels<'_> {
        Labels {
            state: &self.state,
            dead_reason: self.dead_reason.as_deref(),
            reference: self.reference.as_deref(),
        }
    }
}

fn write(group: &Group, row: &EntryRow, expected: Expected) -> rusqlite::Result<Outcome> {
    let there = There::of(group, row)?;
    if !is_met(there.as_ref(), expected) {
        return Ok(Outcome::Conflict(there.map(|there| there.json)));
    }
    put(group, row, there.as_ref().map(There::labels))?;
    Ok(Outcome::Done)
}

/// What a row is counted and found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Labels<'a> {
    state: &'a str,
    dead_reason: Option<&'a str>,
    reference: Option<&'a str>,
}

impl<'a> Labels<'a> {
    /// Those of an entry as it was read.
    pub(crate) fn of(entry: &'a Entry) -> Self {
        Self {
            state: entry.state.name().as_str(),
            dead_reason: dead_reason_of(entry),
            reference: reference_of(entry),
        }
    }

    /// Those of a row that is to be written.
    fn of_row(row: &'a EntryRow) -> Self {
        let EntryRow { state, dead_reason, .. } = *row;
        Self { state, dead_reason, reference: row.reference.as_deref() }
    }
}

/// Writes a row if its key has none, and says whether it did.
pub(crate) fn put_new(group: &Group, row: &EntryRow) -> rusqlite::Result<bool> {
    let written = group
        .prepare_cached(
            "INSERT INTO entries (kind, job_id, generation, version, due_at, expires_at, json, \
             state, dead_reason, ref) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
             ON CONFLICT (kind, job_id) DO NOTHING",
        )?
        .execute(params![
            row.kind,
            row.job_id,
            row.generation,
            row.version,
            row.due_at,
            row.expires_at,
            row.json,
            row.state,
            row.dead_reason,
            row.reference,
        ])?;
    if written == 0 {
        return Ok(false);
    }
    count(group, Labels::of_row(row), 1);
    Ok(true)
}

/// Writes a row over the one that has these labels, or where none is.
pub(crate) fn put(
    group: &Group,
    row: &EntryRow,
    replaced: Option<Labels<'_>>,
) -> rusqlite::Result<()> {
    let labels = Labels::of_row(row);
    let Some(replaced) = replaced else {
        return put_new(group, row).map(|_| ());
    };
    // An index is written anew when its column is named, be the value the same: what stays is
    // left out.
    let sql = if labels == replaced {
        "UPDATE entries SET generation = ?3, version = ?4, due_at = ?5, expires_at = ?6, \
         json = ?7 WHERE kind = ?1 AND job_id = ?2"
    } else if labels.reference == replaced.reference {
        "UPDATE entries SET generation = ?3, version = ?4, due_at = ?5, expires_at = ?6, \
         json = ?7, state = ?8, dead_reason = ?9 WHERE kind = ?1 AND job_id = ?2"
    } else {
        "UPDATE entries SET generation = ?3, version = ?4, due_at = ?5, expires_at = ?6, \
         json = ?7, state = ?8, dead_reason = ?9, ref = ?10 WHERE kind = ?1 AND job_id = ?2"
    };
    if labels != replaced {
        count(group, replaced, -1);
        count(group, labels, 1);
    }
    let values: [&dyn ToSql; 10] = [
        &row.kind,
        &row.job_id,
        &row.generation,
        &row.version,
        &row.due_at,
        &row.expires_at,
        &row.json,
        &row.state,
        &row.dead_reason,
        &row.reference,
    ];
    let mut statement = group.prepare_cached(sql)?;
    let named = statement.parameter_count();
    statement.execute(params_from_iter(values.iter().take(named)))?;
    Ok(())
}

fn count(group: &Group, labels: Labels<'_>, more: i64) {
    group.count(RowsOf::Entries, labels.state, more);
    if let Some(reason) = labels.dead_reason {
        group.count(RowsOf::Entries, &dead_name(reason), more);
    }
}

pub(crate) fn is_met(there: Option<&There>, expected: Expected) -> bool {
    match (there, expected) {
        (None, Expected::Absent(_)) => true,
        (None, Expected::As(_)) => false,
        (Some(there), Expected::Absent(now)) => {
            there.expires_at.is_some_and(|expires_at| expires_at <= now.as_second())
        }
        (Some(there), Expected::As(seen)) => {
            there.state == seen.state.as_str()
                && there.generation == i64::from(seen.generation)
                && version_column(seen.version) == Some(there.version)
        }
    }
}

#[async_trait]
impl Due for SqliteStore {
    async fn list_due(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        let from: Option<(i64, i64)> = cursor::decode(after)
            .map_err(|error| ledger_error("list_due", ErrorKind::Invalid, error))?;
        let (due_at, number) = from.unwrap_or((i64::MIN, i64::MIN));
        let until = micros(now);
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let rows = self
            .read(LEDGER, "list_due", move |connection| {
                connection
                    .prepare_cached(
                        "SELECT due_at, rowid, kind, job_id, json FROM entries \
                         WHERE due_at IS NOT NULL AND due_at <= ?1 \
                         AND (due_at, rowid) > (?2, ?3) ORDER BY due_at, rowid LIMIT ?4",
                    )?
                    .query_map(params![until, due_at, number, i64::from(limit) + 1], |row| {
                        let at: (i64, i64) = (row.get(0)?, row.get(1)?);
                        Ok((at, (row.get(2)?, row.get(3)?, row.get(4)?)))
                    })?
                    .collect::<rusqlite::Result<Vec<_>>>()
            })
            .await?;
        Ok(page(rows, limit, |_, (kind, job_id, json): &(i64, Text, Text)| {
            listed_entry(*kind, job_id, json)
        }))
    }

    async fn list_due_intents(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        let from: Option<(i64, Text)> = cursor::decode(after)
            .map_err(|error| ledger_error("list_due_intents", ErrorKind::Invalid, error))?;
        let (due_at, id) = from.unwrap_or((i64::MIN, Text::default()));
        let until = micros(now);
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let rows = self
            .read(LEDGER, "list_due_intents", move |connection| {
                connection
                    .prepare_cached(
                        "SELECT due_at, id, json FROM intents \
                         WHERE due_at IS NOT NULL AND due_at <= ?1 \
                         AND (due_at, id) > (?2, ?3) ORDER BY due_at, id LIMIT ?4",
                    )?
                    .query_map(params![until, due_at, id, i64::from(limit) + 1], |row| {
                        Ok(((row.get(0)?, row.get(1)?), row.get(2)?))
                    })?
                    .collect::<rusqlite::Result<Vec<((i64, Text), Text)>>>()
            })
            .await?;
        Ok(page(rows, limit, |(_, id), json| listed_intent(id, json)))
    }
}

/// Makes a page of at most `limit` rows, of which one more was read to know whether it is the
/// last; rows that do not decode are left out and named.
pub(crate) fn page<K: serde::Serialize, R, T>(
    mut rows: Vec<(K, R)>,
    limit: u32,
    decode: impl Fn(&K, &R) -> Result<T, DecodeError>,
) -> Page<T> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(|(at, _)| cursor::encode(at));
    let mut unreadable = Vec::new();
    let mut items = Vec::with_capacity(rows.len());
    for (at, row) in &rows {
        match decode(at, row) {
            Ok(item) => items.push(item),
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    Page { items, next, unreadable }
}

#[cfg(test)]
mod tests;
