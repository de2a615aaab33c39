use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use super::{ErrorKind, PortError};
use crate::announce::{Announcing, announce_in_parts};
use crate::entry::{Announcement, Entry, Seen, StateName};
use crate::intent::Intent;
use crate::job::{JobKey, Kind};
use crate::limits::Limits;
use crate::time::Timestamp;

/// The whole ledger: the sum of its narrow parts.
pub trait Ledger: Entries + Pairs + Due + Intents + Control + Inspection {}

impl<T: Entries + Pairs + Due + Intents + Control + Inspection> Ledger for T {}

/// Rows of jobs, read and written one at a time.
#[async_trait]
pub trait Entries: Send + Sync {
    /// Reads a row, consistently. Expired rows that still exist are returned.
    ///
    /// # Errors
    /// `Corrupt` names the key of a row that does not decode; otherwise transient or `Denied`.
    async fn load(&self, key: &JobKey) -> Result<Option<Entry>, PortError>;

    /// Reads the rows of these jobs, each as [`Entries::load`] does, in as few calls of the store
    /// as it takes. A row that does not decode is named, and keeps nobody from the others.
    ///
    /// # Contract
    /// No effect. Rows come in no promised order, and one that is asked for twice comes once. They
    /// are not of one instant: each is as it was at some time during the call. A caller asks for a
    /// page of a job list at a time, [`crate::limits::LIST_PAGE_MAX`] keys.
    ///
    /// # Errors
    /// Transient or `Denied`; then none of the rows is known.
    async fn load_many(&self, keys: &[JobKey]) -> Result<Loaded, PortError> {
        load_one_by_one(self, keys).await
    }

    /// Writes a row if the one there is as expected.
    ///
    /// # Contract
    /// One atomic, durable, conditional write of the whole row. A second identical call finds
    /// the first one's row and reports a conflict with it. When the answer is lost the row may
    /// be written. A row is at most 400 kB as JSON (the item limit of Amazon `DynamoDB`).
    ///
    /// # Errors
    /// `Invalid` for a row over the limit; otherwise transient, `Denied` or `Corrupt`.
    async fn write(&self, entry: &Entry, expected: Expected) -> Result<Written, PortError>;

    /// Makes of a row what [`Entry::announce`] decides, in one atomic step if the adapter has one:
    /// a store that holds rows and tasks sends the task as well.
    ///
    /// # Contract
    /// The row that the decision was made from is the one that is written over. After `Ok`, row
    /// and, with [`Announcing::Sent`], task are durable, also where nothing was to be done. When
    /// the answer is lost both may be written; a second identical call, whose announcement has
    /// the same token, does not write the row again.
    ///
    /// # Errors
    /// Those of [`Entries::load`] and [`Entries::write`].
    async fn announce(
        &self,
        key: &JobKey,
        announcement: &Announcement,
        now: Timestamp,
        limits: &Limits,
    ) -> Result<Announcing, PortError> {
        announce_in_parts(self, key, announcement, now, limits).await
    }
}

/// Rows that were read together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Those that are there; expired ones that still exist are among them.
    pub rows: Vec<Entry>,
    /// Those that are there and do not decode.
    pub unreadable: Vec<JobKey>,
}

/// [`Entries::load_many`] for stores that read one row at a time.
async fn load_one_by_one(
    entries: &(impl Entries + ?Sized),
    keys: &[JobKey],
) -> Result<Loaded, PortError> {
    let mut loaded = Loaded::default();
    for key in keys.iter().collect::<BTreeSet<_>>() {
        match entries.load(key).await {
            Ok(row) => loaded.rows.extend(row),
            Err(error) if error.kind == ErrorKind::Corrupt => loaded.unreadable.push(key.clone()),
            Err(error) => return Err(error),
        }
    }
    Ok(loaded)
}

/// What a write expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// No row, or one that expired before this instant.
    Absent(Timestamp),
    /// The row as it was read.
    As(Seen),
}

/// The outcome of a conditional write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// The row is written.
    Done,
    /// The condition failed; this is the row as it is, if there is one.
    Conflict(Option<Box<Entry>>),
}

/// Rows of two jobs, written together.
#[async_trait]
pub trait Pairs: Send + Sync {
    /// Writes two rows if both there are as expected, or neither.
    ///
    /// # Contract
    /// One atomic, durable, conditional write: nobody ever finds one of the two without the other.
    /// A second identical call finds the first one's rows, and reports a conflict with both. When
    /// the answer is lost both may be written, or neither. Each row has the limits of
    /// [`Entries::write`].
    ///
    /// # Errors
    /// `Invalid` for two rows of one job, and for a row over the limit; otherwise transient,
    /// `Denied` or `Corrupt`.
    async fn write_both(&self, rows: [RowWrite<'_>; 2]) -> Result<WrittenBoth, PortError>;
}

/// A row that is to be written, and what is to be there before.
#[derive(Debug, Clone, Copy)]
pub struct RowWrite<'a> {
    /// The row.
    pub entry: &'a Entry,
    /// What is expected.
    pub expected: Expected,
}

/// The outcome of a conditional write of two rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrittenBoth {
    /// Both are written.
    Done,
    /// A condition failed and nothing is written; what is there of each, in the order of the call.
    Conflict([Met; 2]),
}

/// What a write of two rows met in the place of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Met {
    /// What was expected.
    Expected,
    /// Another row, or none.
    Other(Option<Box<Entry>>),
}

/// Rows that somebody must look at.
#[async_trait]
pub trait Due: Send + Sync {
    /// Lists rows with `due_at` up to `now`, oldest first, after `after`.
    ///
    /// The list may lag behind the rows: read a row again before acting on it.
    ///
    /// # Errors
    /// Transient or `Denied`. A row that does not decode is left out and counted.
    async fn list_due(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError>;

    /// Lists open intents with `due_at` up to `now`, oldest first, after `after`.
    ///
    /// # Errors
    /// As [`Due::list_due`].
    async fn list_due_intents(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError>;
}

/// Intents: submissions before and after their POST.
#[async_trait]
pub trait Intents: Send + Sync {
    /// Reads an intent, consistently.
    ///
    /// # Errors
    /// `Corrupt` names the id; otherwise transient or `Denied`.
    async fn load_intent(&self, id: &str) -> Result<Option<Intent>, PortError>;

    /// Writes an intent if the one there is as expected; the contract of [`Entries::write`].
    ///
    /// # Errors
    /// As [`Entries::write`].
    async fn write_intent(
        &self,
        intent: &Intent,
        expected: IntentExpected,
    ) -> Result<IntentWritten, PortError>;

    /// Whether a POST for this kind of job that was intended up to `until` may have made a job
    /// that nobody has linked yet: an open intent, or an entry that is being resubmitted.
    ///
    /// An adapter may take `until` to the end of its second, and may lag behind the rows by less
    /// than a call of the platform's API takes. A row that does not decode counts.
    ///
    /// # Errors
    /// Transient or `Denied`.
    async fn has_unresolved_post(&self, kind: Kind, until: Timestamp) -> Result<bool, PortError>;
}

/// What a write of an intent expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentExpected {
    /// No intent, or one that expired before this instant.
    Absent(Timestamp),
    /// The intent in this version.
    Version(u64),
}

/// The outcome of a conditional write of an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntentWritten {
    /// It is written.
    Done,
    /// The condition failed; this is the intent as it is, if there is one.
    Conflict(Option<Box<Intent>>),
}

/// Small rows that steer all parts: pauses, spend, cursors.
#[async_trait]
pub trait Control: Send + Sync {
    /// Reads a row.
    ///
    /// # Errors
    /// Transient, `Denied` or `Corrupt`.
    async fn load_control(&self, name: &str) -> Result<Option<ControlRow>, PortError>;

    /// Writes a row whose version is one above the one there (1 for a new row); `false` if the
    /// one there is another. Atomic and durable; repeating it gives `false`.
    ///
    /// # Errors
    /// Transient or `Denied`.
    async fn write_control(&self, row: &ControlRow) -> Result<bool, PortError>;
}

/// One control row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlRow {
    /// Its name, such as `pause/paying`.
    pub name: String,
    /// Counts its writes; starts at 1.
    pub version: u64,
    /// Its value as JSON.
    pub value: String,
}

/// What a person asks the ledger.
#[async_trait]
pub trait Inspection: Send + Sync {
    /// Lists rows, by arrival where the adapter can tell. A row that is there from the first page
    /// to the last is on one of them. One that does not decode hides no other: it is in
    /// [`Page::unreadable`], as far as what it is found by is whole.
    ///
    /// # Errors
    /// `Invalid` for a cursor that is none of this listing's; otherwise transient or `Denied`.
    async fn list_entries(
        &self,
        filter: &EntryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError>;

    /// Counts rows by state, and dead ones by reason under `dead:<reason>`. Expired rows count as
    /// long as they exist; names without rows may be left out.
    ///
    /// # Errors
    /// Transient or `Denied`.
    async fn count_entries(&self) -> Result<BTreeMap<String, u64>, PortError>;

    /// Counts intents by state, as [`Inspection::count_entries`] counts rows.
    ///
    /// # Errors
    /// Transient or `Denied`.
    async fn count_intents(&self) -> Result<BTreeMap<String, u64>, PortError>;

    /// Lists intents of a run (of all runs if `None`) in the order of run and position.
    ///
    /// # Errors
    /// As [`Inspection::list_entries`].
    async fn list_intents(
        &self,
        run: Option<&str>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError>;
}

/// Which rows to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// In this state only.
    pub state: Option<StateName>,
    /// Of this kind only.
    pub kind: Option<Kind>,
    /// With this ref of the user's only.
    pub reference: Option<String>,
}

/// Where a listing goes on; opaque, made by the adapter that reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<Cursor>,
    /// Rows that did not decode and were left out: which, and in what way, but nothing of what they
    /// hold.
    pub unreadable: Vec<String>,
}
