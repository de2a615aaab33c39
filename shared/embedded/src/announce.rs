//! Announcing in one operation: a delivery costs one place in one group commit, row and task.

use domain::announce::{Announcing, state_before};
use domain::entry::{Announced, Announcement, Entry, StateName};
use domain::job::JobKey;
use domain::limits::Limits;
use domain::ports::{ErrorKind, PortError};
use domain::task::Task;
use domain::time::Timestamp;

use crate::counts::Group;
use crate::entries::{Labels, decode, put, read};
use crate::queue::insert;
use crate::row::{EntryRow, key_columns, micros};
use crate::store::ledger_error;

/// An announcement that waits for its turn.
pub(crate) struct Announce {
    pub(crate) key: JobKey,
    pub(crate) announcement: Announcement,
    pub(crate) now: Timestamp,
    pub(crate) limits: Limits,
}

impl Announce {
    /// Reads the row, decides, and writes row and task; nothing is written when the outcome is an
    /// error of the port.
    pub(crate) fn run(&self, group: &Group) -> rusqlite::Result<Result<Announcing, PortError>> {
        let (kind, job_id) = key_columns(&self.key);
        let there = read(group, kind, &job_id)?.map(|json| decode(&self.key, &json, "announce"));
        let there = match there.transpose() {
            Ok(there) => there,
            Err(error) => return Ok(Err(error)),
        };
        let there = there.as_ref();
        let decided = Entry::announce(there, &self.key, &self.announcement, self.now, &self.limits);
        let before = match decided {
            Announced::Known => {
                // An absent row is always written.
                let state = there.map_or(StateName::Received, |row| row.state.name());
                return Ok(Ok(Announcing::Known(state)));
            }
            Announced::SendAgain => None,
            Announced::Write(entry) => {
                let row = match EntryRow::encode(&entry) {
                    Ok(row) => row,
                    Err(error) => {
                        return Ok(Err(ledger_error("announce", ErrorKind::Invalid, error)));
                    }
                };
                put(group, &row, there.map(Labels::of))?;
                state_before(there, self.now)
            }
        };
        insert(group, micros(self.now), &Task { key: self.key.clone() }.encode())?;
        Ok(Ok(Announcing::Sent { before }))
    }
}

#[cfg(test)]
mod tests;
