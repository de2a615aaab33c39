//! Announcing in one operation: a delivery costs one place in one group commit, row and task.

use domain::announce::{Announcing, state_before};
use domain::entry::{Announced, Announcement, Entry, StateName};
use domain::job::JobKey;
use domain::limits::Limits;
use domain::ports::{ErrorKind, PortError};
use domain::task::Task;
use domain::time::Timestamp;

use crate::counts::Group;
use crate::entries::{Labels, decode, put, put_new, read};
use crate::queue::insert;
use crate::row::{EncodeError, EntryRow, micros};
use crate::store::ledger_error;

/// An announcement that waits for its turn.
pub(crate) struct Announce {
    key: JobKey,
    announcement: Announcement,
    now: Timestamp,
    limits: Limits,
    /// The row if there is none yet, as hardly ever there is. It is made where others are made
    /// beside it; the one thread that writes only lays it down.
    new: EntryRow,
    task: String,
}

impl Announce {
    /// Makes the row of a job that nobody knows yet.
    pub(crate) fn new(
        key: &JobKey,
        announcement: &Announcement,
        now: Timestamp,
        limits: &Limits,
    ) -> Result<Self, EncodeError> {
        let new = Entry::announced(key, announcement, now, limits);
        Ok(Self {
            key: key.clone(),
            announcement: announcement.clone(),
            now,
            limits: limits.clone(),
            new: EntryRow::encode(&new)?,
            task: Task { key: key.clone() }.encode(),
        })
    }

    /// Writes row and task, if there was no row; else decides by the one that is there. Nothing is
    /// written when the outcome is an error of the port.
    pub(crate) fn run(&self, group: &Group) -> rusqlite::Result<Result<Announcing, PortError>> {
        let before = if put_new(group, &self.new)? {
            None
        } else {
            match self.over(group)? {
                Ok(Over::Known(state)) => return Ok(Ok(Announcing::Known(state))),
                Ok(Over::Written { before }) => before,
                Err(error) => return Ok(Err(error)),
            }
        };
        insert(group, micros(self.now), &self.task)?;
        Ok(Ok(Announcing::Sent { before }))
    }

    /// Reads the row that is there, decides, and writes over it.
    fn over(&self, group: &Group) -> rusqlite::Result<Result<Over, PortError>> {
        let there = read(group, self.new.kind, &self.new.job_id)?
            .map(|json| decode(&self.key, &json, "announce"));
        let there = match there.transpose() {
            Ok(there) => there,
            Err(error) => return Ok(Err(error)),
        };
        let there = there.as_ref();
        let decided = Entry::announce(there, &self.key, &self.announcement, self.now, &self.limits);
        Ok(match decided {
            Announced::Known => {
                // An absent row is always written.
                let state = there.map_or(StateName::Received, |row| row.state.name());
                Ok(Over::Known(state))
            }
            Announced::SendAgain => Ok(Over::Written { before: None }),
            Announced::Write(entry) => match EntryRow::encode(&entry) {
                Ok(row) => {
                    put(group, &row, there.map(Labels::of))?;
                    Ok(Over::Written { before: state_before(there, self.now) })
                }
                Err(error) => Err(ledger_error("announce", ErrorKind::Invalid, error)),
            },
        })
    }
}

/// What became of a row that was there.
enum Over {
    /// Nothing was to be done.
    Known(StateName),
    /// It is as it is to be, and its task is to be sent.
    Written { before: Option<StateName> },
}

#[cfg(test)]
mod tests;
