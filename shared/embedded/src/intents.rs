//! Intents: submissions before and after their POST.

use async_trait::async_trait;
use domain::intent::Intent;
use domain::job::Kind;
use domain::ports::{ErrorKind, IntentExpected, IntentWritten, Intents, PortError};
use domain::time::Timestamp;
use rusqlite::{OptionalExtension, params};

use crate::counts::{Group, RowsOf, label};
use crate::entries::Outcome;
use crate::row::{IntentRow, RESUBMITTING, decode_intent, kind_code, version_column};
use crate::store::{LEDGER, SqliteStore, ledger_error};

/// Length of an instant as text, down to its second: `2026-11-30T12:00:00`.
const SECONDS_TEXT: usize = 19;

/// Whether there is a row of kind ?1 whose POST is unresolved and was intended up to ?3. The
/// indexes by state find the few rows in question; one that does not decode counts.
const UNRESOLVED: &str = "
    WITH unresolved (json) AS (
        SELECT json FROM intents WHERE state = 'open' AND kind = ?1
        UNION ALL SELECT json FROM entries WHERE state = ?2 AND kind = ?1
    )
    SELECT EXISTS (
        SELECT 1 FROM unresolved WHERE CASE WHEN json_valid(json)
            THEN ifnull(substr(json_extract(json, '$.state.post.intended_at'), 1, 19) <= ?3, TRUE)
            ELSE TRUE END
    )";

#[async_trait]
impl Intents for SqliteStore {
    async fn load_intent(&self, id: &str) -> Result<Option<Intent>, PortError> {
        let owned = id.to_owned();
        let json = self
            .read(LEDGER, "load_intent", move |connection| {
                connection
                    .prepare_cached("SELECT json FROM intents WHERE id = ?1")?
                    .query_row([owned], |row| row.get::<_, String>(0))
                    .optional()
            })
            .await?;
        json.map(|json| decode(id, &json, "load_intent")).transpose()
    }

    async fn write_intent(
        &self,
        intent: &Intent,
        expected: IntentExpected,
    ) -> Result<IntentWritten, PortError> {
        let row = IntentRow::encode(intent)
            .map_err(|error| ledger_error("write_intent", ErrorKind::Invalid, error))?;
        let outcome =
            self.write(LEDGER, "write_intent", move |group| write(group, &row, expected)).await?;
        Ok(match outcome {
            Outcome::Done => IntentWritten::Done,
            Outcome::Conflict(json) => {
                let there =
                    json.map(|json| decode(&intent.id, &json, "write_intent")).transpose()?;
                IntentWritten::Conflict(there.map(Box::new))
            }
        })
    }

    async fn has_unresolved_post(&self, kind: Kind, until: Timestamp) -> Result<bool, PortError> {
        let kind = kind_code(kind);
        // Both are UTC; without their fractions they are of one length, and sort as text.
        let until: String = until.to_string().chars().take(SECONDS_TEXT).collect();
        self.read(LEDGER, "has_unresolved_post", move |connection| {
            connection
                .prepare_cached(UNRESOLVED)?
                .query_row(params![kind, RESUBMITTING, until], |row| row.get(0))
        })
        .await
    }
}

fn decode(id: &str, json: &str, operation: &'static str) -> Result<Intent, PortError> {
    decode_intent(id, json).map_err(|error| ledger_error(operation, ErrorKind::Corrupt, error))
}

/// What a condition looks at, what is counted, and the row for the loser.
struct There {
    state: String,
    version: i64,
    expires_at: Option<i64>,
    json: String,
}

fn write(group: &Group, row: &IntentRow, expected: IntentExpected) -> rusqlite::Result<Outcome> {
    let there = group
        .prepare_cached("SELECT state, version, expires_at, json FROM intents WHERE id = ?1")?
        .query_row([&row.id], |there| {
            Ok(There {
                state: label(there, 0)?.unwrap_or_default(),
                version: there.get(1)?,
                expires_at: there.get(2)?,
                json: there.get(3)?,
            })
        })
        .optional()?;
    let is_met = match (&there, expected) {
        (None, IntentExpected::Absent(_)) => true,
        (None, IntentExpected::Version(_)) => false,
        (Some(there), IntentExpected::Absent(now)) => {
            there.expires_at.is_some_and(|expires_at| expires_at <= now.as_second())
        }
        (Some(there), IntentExpected::Version(seen)) => version_column(seen) == Some(there.version),
    };
    if !is_met {
        return Ok(Outcome::Conflict(there.map(|there| there.json)));
    }
    if let Some(there) = there {
        group.count(RowsOf::Intents, &there.state, -1);
    }
    group.count(RowsOf::Intents, row.state, 1);
    group
        .prepare_cached(
            "INSERT INTO intents (id, run, position, kind, state, version, due_at, expires_at, \
             json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
             ON CONFLICT (id) DO UPDATE SET run = excluded.run, position = excluded.position, \
             kind = excluded.kind, state = excluded.state, version = excluded.version, \
             due_at = excluded.due_at, expires_at = excluded.expires_at, json = excluded.json",
        )?
        .execute(params![
            row.id,
            row.run,
            row.position,
            row.kind,
            row.state,
            row.version,
            row.due_at,
            row.expires_at,
            row.json,
        ])?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests;
