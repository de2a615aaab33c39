//! What a person asks the ledger.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::entry::{Entry, StateName};
use domain::intent::Intent;
use domain::job::Kind;
use domain::ports::{Cursor, EntryFilter, ErrorKind, Inspection, Page, PortError};
use rusqlite::{Connection, ToSql, params};

use crate::counts::{self, RowsOf};
use crate::cursor;
use crate::entries::page;
use crate::limits::PAGE_ROWS_MAX;
use crate::row::{Text, kind_code, listed_entry, listed_intent};
use crate::store::{LEDGER, SqliteStore, ledger_error};

#[async_trait]
impl Inspection for SqliteStore {
    async fn list_entries(
        &self,
        filter: &EntryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        let from: Option<(i64,)> = cursor::decode(after)
            .map_err(|error| ledger_error("list_entries", ErrorKind::Invalid, error))?;
        let (number,) = from.unwrap_or((i64::MIN,));
        let filter = filter.clone();
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let rows = self
            .read(LEDGER, "list_entries", move |connection| {
                select_entries(connection, &filter, number, i64::from(limit) + 1)
            })
            .await?;
        Ok(page(rows, limit, |_, row| listed_entry(row.kind, &row.job_id, &row.json)))
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
        let from: Option<(Text, i64, Text)> = cursor::decode(after)
            .map_err(|error| ledger_error("list_intents", ErrorKind::Invalid, error))?;
        let from = from.unwrap_or((Text::default(), i64::MIN, Text::default()));
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
                    .collect::<rusqlite::Result<Vec<((Text, i64, Text), Text)>>>()
            })
            .await?;
        Ok(page(rows, limit, |(_, _, id), json| listed_intent(id, json)))
    }
}

/// One row of a listing.
struct Listed {
    kind: i64,
    job_id: Text,
    json: Text,
}

/// Reads rows that arrived after one, with their numbers.
fn select_entries(
    connection: &Connection,
    filter: &EntryFilter,
    from: i64,
    limit: i64,
) -> rusqlite::Result<Vec<((i64,), Listed)>> {
    let state = filter.state.map(StateName::as_str);
    let kind = filter.kind.map(kind_code);
    let mut bound: Vec<(&str, &dyn ToSql)> = vec![(":from", &from), (":limit", &limit)];
    if let Some(reference) = &filter.reference {
        bound.push((":ref", reference));
    }
    if let Some(state) = &state {
        bound.push((":state", state));
    }
    if let Some(kind) = &kind {
        bound.push((":kind", kind));
    }
    let mut rows = connection
        .prepare_cached(&selection(filter))?
        .query_map(bound.as_slice(), |row| {
            let listed = Listed { kind: row.get(1)?, job_id: row.get(2)?, json: row.get(3)? };
            Ok(((row.get(0)?,), listed))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    // A join promises no order.
    rows.sort_unstable_by_key(|((number,), _)| *number);
    Ok(rows)
}

/// The statement of a listing. The row's number ends every index, so that a range of it begins
/// at the first row of any page.
fn selection(filter: &EntryFilter) -> String {
    const COLUMNS: &str = "SELECT rowid, kind, job_id, json FROM entries";
    const PAGE: &str = "rowid > :from ORDER BY rowid LIMIT :limit";
    if filter.reference.is_some() {
        // Few rows share a ref. Of them the others are told apart by reading, which a unary plus
        // says to `SQLite`.
        let state = filter.state.map_or("", |_| "+state = :state AND ");
        let kind = filter.kind.map_or("", |_| "+kind = :kind AND ");
        return format!("{COLUMNS} WHERE ref = :ref AND {state}{kind}{PAGE}");
    }
    match (filter.state, filter.kind) {
        (None, None) => format!("{COLUMNS} WHERE {PAGE}"),
        (Some(_), Some(_)) => {
            format!("{COLUMNS} WHERE state = :state AND kind = :kind AND {PAGE}")
        }
        (Some(_), None) => merged(Kind::ALL.map(|kind| {
            let kind = kind_code(kind);
            format!("state = :state AND kind = {kind}")
        })),
        (None, Some(_)) => merged(StateName::ALL.map(|state| {
            let state = state.as_str();
            format!("state = '{state}' AND kind = :kind")
        })),
    }
}

/// Several ranges of the index by state and kind as one. Rows are read only once it is known
/// which ones the page has.
fn merged<const N: usize>(ranges: [String; N]) -> String {
    let ranges = ranges
        .map(|range| format!("SELECT rowid AS at FROM entries WHERE {range} AND rowid > :from"))
        .join(" UNION ALL ");
    format!(
        "SELECT at, kind, job_id, json FROM ({ranges} ORDER BY at LIMIT :limit) \
         CROSS JOIN entries ON entries.rowid = at"
    )
}

#[cfg(test)]
mod tests;
