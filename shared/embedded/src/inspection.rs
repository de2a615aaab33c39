//! What a person asks the ledger.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use async_trait::async_trait;
use domain::entry::{Entry, StateName};
use domain::intent::Intent;
use domain::ports::{Cursor, EntryFilter, ErrorKind, Inspection, Page, PortError};
use rusqlite::{Connection, ToSql, params};

use crate::counts::{self, RowsOf};
use crate::cursor;
use crate::limits::PAGE_ROWS_MAX;
use crate::row::{DecodeError, decode_entry, decode_intent, kind_code};
use crate::store::{LEDGER, SqliteStore, ledger_error};

#[async_trait]
impl Inspection for SqliteStore {
    async fn list_entries(
        &self,
        filter: &EntryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        let from: Option<(i64, String)> = cursor::decode(after)
            .map_err(|error| ledger_error("list_entries", ErrorKind::Invalid, error))?;
        let filter = filter.clone();
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let rows = self
            .read(LEDGER, "list_entries", move |connection| {
                select_entries(connection, &filter, from, i64::from(limit) + 1)
            })
            .await?;
        page("list_entries", rows, limit, |(kind, job_id), json| decode_entry(*kind, job_id, json))
    }

    async fn count_entries(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.read(LEDGER, "count_entries", |connection| counts::read(connection, RowsOf::Entries))
            .await
    }

    async fn count_intents(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.read(LEDGER, "count_intents", |connection| counts::read(connection, RowsOf::Intents))
            .await
    }

    async fn list_intents(
        &self,
        run: Option<&str>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        let from: Option<(String, i64, String)> = cursor::decode(after)
            .map_err(|error| ledger_error("list_intents", ErrorKind::Invalid, error))?;
        let from = from.unwrap_or((String::new(), i64::MIN, String::new()));
        let run = run.map(str::to_owned);
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let rows = self
            .read(LEDGER, "list_intents", move |connection| {
                let only = if run.is_some() { "run = ?5 AND" } else { "?5 IS NULL AND" };
                connection
                    .prepare_cached(&format!(
                        "SELECT run, position, id, json FROM intents \
                         WHERE {only} (run, position, id) > (?1, ?2, ?3) \
                         ORDER BY run, position, id LIMIT ?4"
                    ))?
                    .query_map(params![from.0, from.1, from.2, i64::from(limit) + 1, run], |row| {
                        Ok(((row.get(0)?, row.get(1)?, row.get(2)?), row.get(3)?))
                    })?
                    .collect::<rusqlite::Result<Vec<((String, i64, String), String)>>>()
            })
            .await?;
        page("list_intents", rows, limit, |(_, _, id), json| decode_intent(id, json))
    }
}

/// Key columns and JSON of one row.
type KeyedJson = ((i64, String), String);

/// Reads rows after a key.
fn select_entries(
    connection: &Connection,
    filter: &EntryFilter,
    from: Option<(i64, String)>,
    limit: i64,
) -> rusqlite::Result<Vec<KeyedJson>> {
    let state = filter.state.map(StateName::as_str);
    let kind = filter.kind.map(kind_code);
    let (from_kind, from_id) = from.unwrap_or((i64::MIN, String::new()));
    let mut bound: Vec<(&str, &dyn ToSql)> = vec![(":from_id", &from_id), (":limit", &limit)];
    if let Some(reference) = &filter.reference {
        bound.push((":ref", reference));
    }
    if let Some(state) = &state {
        bound.push((":state", state));
    }
    match &kind {
        Some(kind) => bound.push((":kind", kind)),
        None => bound.push((":from_kind", &from_kind)),
    }
    connection
        .prepare_cached(&selection(filter))?
        .query_map(bound.as_slice(), |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?
        .collect()
}

/// The statement of a listing: an equality for each filter and a range for the key, so that an
/// index leads to the first row of any page. Few rows share a ref; of them the others are told
/// apart by reading, which a unary plus says to `SQLite`.
fn selection(filter: &EntryFilter) -> String {
    let plus = if filter.reference.is_some() { "+" } else { "" };
    let mut sql = String::from("SELECT kind, job_id, json FROM entries WHERE ");
    if filter.reference.is_some() {
        sql.push_str("ref = :ref AND ");
    }
    if filter.state.is_some() {
        let _ = write!(sql, "{plus}state = :state AND ");
    }
    // A range over both columns would not begin at the kind.
    sql.push_str(match filter.kind {
        Some(_) => "kind = :kind AND job_id > :from_id",
        None => "(kind, job_id) > (:from_kind, :from_id)",
    });
    sql.push_str(" ORDER BY kind, job_id LIMIT :limit");
    sql
}

/// Makes a page of at most `limit` rows, of which one more was read to know whether it is the
/// last.
fn page<K: serde::Serialize, T>(
    operation: &'static str,
    mut rows: Vec<(K, String)>,
    limit: u32,
    decode: impl Fn(&K, &str) -> Result<T, DecodeError>,
) -> Result<Page<T>, PortError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(|(at, _)| cursor::encode(at));
    let items = rows
        .iter()
        .map(|(at, json)| decode(at, json))
        .collect::<Result<Vec<T>, DecodeError>>()
        .map_err(|error| ledger_error(operation, ErrorKind::Corrupt, error))?;
    Ok(Page { items, next, unreadable: 0 })
}

#[cfg(test)]
mod tests;
