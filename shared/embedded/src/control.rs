//! Small rows that steer all parts.

use async_trait::async_trait;
use domain::ports::{Control, ControlRow, ErrorKind, PortError};
use rusqlite::{OptionalExtension, params};

use crate::limits::ROW_BYTES_MAX;
use crate::row::{EncodeError, version_column};
use crate::store::{LEDGER, SqliteStore, ledger_error};

#[async_trait]
impl Control for SqliteStore {
    async fn load_control(&self, name: &str) -> Result<Option<ControlRow>, PortError> {
        let owned = name.to_owned();
        let there = self
            .read(LEDGER, "load_control", move |connection| {
                connection
                    .prepare_cached("SELECT version, value FROM control WHERE name = ?1")?
                    .query_row([owned], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))
                    .optional()
            })
            .await?;
        Ok(there.map(|(version, value)| ControlRow {
            name: name.to_owned(),
            // Only versions from 1 on are ever written.
            version: u64::try_from(version).unwrap_or(0),
            value,
        }))
    }

    async fn write_control(&self, row: &ControlRow) -> Result<bool, PortError> {
        let bytes = row.value.len();
        if bytes > ROW_BYTES_MAX {
            let error = EncodeError::TooLarge { bytes };
            return Err(ledger_error("write_control", ErrorKind::Invalid, error));
        }
        let (Some(version), Some(before)) =
            (version_column(row.version), row.version.checked_sub(1).and_then(version_column))
        else {
            return Ok(false);
        };
        let (name, value) = (row.name.clone(), row.value.clone());
        self.write(LEDGER, "write_control", move |connection| {
            let changed = if before == 0 {
                connection
                    .prepare_cached(
                        "INSERT INTO control (name, version, value) VALUES (?1, ?2, ?3) \
                         ON CONFLICT (name) DO NOTHING",
                    )?
                    .execute(params![name, version, value])?
            } else {
                connection
                    .prepare_cached(
                        "UPDATE control SET version = ?2, value = ?3 \
                         WHERE name = ?1 AND version = ?4",
                    )?
                    .execute(params![name, version, value, before])?
            };
            Ok(changed == 1)
        })
        .await
    }
}

#[cfg(test)]
mod tests;
