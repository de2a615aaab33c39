//! Rows of jobs: reads and conditional writes.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use domain::announce::{Announcing, announce_from};
use domain::entry::{Announcement, Entry};
use domain::job::JobKey;
use domain::limits::Limits;
use domain::ports::{Entries, ErrorKind, Expected, Loaded, PortError, Written};
use domain::time::Timestamp;

use crate::item::{Key, decode_entry, encode_entry};
use crate::ledger::{DynamoLedger, corrupt, refused, trouble};
use crate::limits::BATCH_KEYS_MAX;
use crate::put::{Condition, Put};

#[async_trait]
impl Entries for DynamoLedger {
    async fn load(&self, key: &JobKey) -> Result<Option<Entry>, PortError> {
        let item = self.get("load", Key::entry(key)).await?;
        item.map(|item| decode_entry(&item)).transpose().map_err(corrupt("load"))
    }

    async fn load_many(&self, keys: &[JobKey]) -> Result<Loaded, PortError> {
        let asked: BTreeMap<Key, &JobKey> = keys.iter().map(|key| (Key::entry(key), key)).collect();
        let places: Vec<_> = asked.keys().collect();
        let mut loaded = Loaded::default();
        for chunk in places.chunks(BATCH_KEYS_MAX) {
            for (place, item) in self.batch("load_many", chunk).await? {
                match (decode_entry(&item), asked.get(&place)) {
                    (Ok(row), _) => loaded.rows.push(row),
                    (Err(_), Some(key)) => loaded.unreadable.push((*key).clone()),
                    (Err(_), None) => {}
                }
            }
        }
        Ok(loaded)
    }

    async fn write(&self, entry: &Entry, expected: Expected) -> Result<Written, PortError> {
        let item = encode_entry(entry).map_err(refused("write"))?;
        match self.put("write", item, Condition::of(expected)).await? {
            Put::Done => Ok(Written::Done),
            // Nothing is there only if something was expected to be.
            Put::Refused(None) if matches!(expected, Expected::Absent(_)) => Err(untold("write")),
            Put::Refused(there) => {
                let there = there.map(|item| decode_entry(&item)).transpose();
                Ok(Written::Conflict(there.map_err(corrupt("write"))?.map(Box::new)))
            }
        }
    }

    /// Begins with the write for a job that the ledger does not know, or with the read for one that
    /// it does, whichever the last announcement would have needed: accounts whose jobs are
    /// submitted from here know them all, others none. A wrong guess costs the other call; the first
    /// one of a process is the read, which is the cheaper one to make in vain.
    async fn announce(
        &self,
        key: &JobKey,
        announcement: &Announcement,
        now: Timestamp,
        limits: &Limits,
    ) -> Result<Announcing, PortError> {
        let is_read = self.expects_known.load(Ordering::Relaxed);
        let read = if is_read { self.load(key).await? } else { None };
        let announced = announce_from(self, read, key, announcement, now, limits).await?;
        let was_known = match &announced {
            Announcing::Known(_) => true,
            Announcing::Sent { before } | Announcing::Unsent { before, .. } => before.is_some(),
        };
        self.expects_known.store(was_known, Ordering::Relaxed);
        Ok(announced)
    }
}

/// A refusal that should have told what is there, and did not: nobody can decide on it.
pub(crate) fn untold(operation: &'static str) -> PortError {
    trouble(operation, ErrorKind::Unavailable, "the table refused and did not say what is there")
}
