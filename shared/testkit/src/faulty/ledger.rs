use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use domain::entry::Entry;
use domain::intent::Intent;
use domain::job::{JobKey, Kind};
use domain::ports::{
    Control, ControlRow, Cursor, Due, Entries, EntryFilter, Expected, Inspection, IntentExpected,
    IntentWritten, Intents, Ledger, Loaded, Page, Pairs, PortError, RowWrite, Written, WrittenBoth,
};
use domain::time::Timestamp;

use super::plan::Surroundings;

/// A ledger that fails by a plan.
pub struct FaultyLedger {
    inner: Arc<dyn Ledger>,
    surroundings: Surroundings,
}

impl FaultyLedger {
    /// Wraps a port.
    pub fn new(inner: Arc<dyn Ledger>, surroundings: Surroundings) -> Self {
        Self { inner, surroundings }
    }
}

#[async_trait]
impl Entries for FaultyLedger {
    async fn load(&self, key: &JobKey) -> Result<Option<Entry>, PortError> {
        self.surroundings.around_port("ledger.load", self.inner.load(key)).await
    }

    async fn load_many(&self, keys: &[JobKey]) -> Result<Loaded, PortError> {
        self.surroundings.around_port("ledger.load_many", self.inner.load_many(keys)).await
    }

    async fn write(&self, entry: &Entry, expected: Expected) -> Result<Written, PortError> {
        self.surroundings.around_port("ledger.write", self.inner.write(entry, expected)).await
    }
}

#[async_trait]
impl Pairs for FaultyLedger {
    async fn write_both(&self, rows: [RowWrite<'_>; 2]) -> Result<WrittenBoth, PortError> {
        self.surroundings.around_port("ledger.write_both", self.inner.write_both(rows)).await
    }
}

#[async_trait]
impl Due for FaultyLedger {
    async fn list_due(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        self.surroundings
            .around_port("ledger.list_due", self.inner.list_due(now, after, limit))
            .await
    }

    async fn list_due_intents(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        self.surroundings
            .around_port("ledger.list_due_intents", self.inner.list_due_intents(now, after, limit))
            .await
    }
}

#[async_trait]
impl Intents for FaultyLedger {
    async fn load_intent(&self, id: &str) -> Result<Option<Intent>, PortError> {
        self.surroundings.around_port("ledger.load_intent", self.inner.load_intent(id)).await
    }

    async fn write_intent(
        &self,
        intent: &Intent,
        expected: IntentExpected,
    ) -> Result<IntentWritten, PortError> {
        self.surroundings
            .around_port("ledger.write_intent", self.inner.write_intent(intent, expected))
            .await
    }

    async fn has_unresolved_post(&self, kind: Kind, until: Timestamp) -> Result<bool, PortError> {
        self.surroundings
            .around_port("ledger.has_unresolved_post", self.inner.has_unresolved_post(kind, until))
            .await
    }
}

#[async_trait]
impl Control for FaultyLedger {
    async fn load_control(&self, name: &str) -> Result<Option<ControlRow>, PortError> {
        self.surroundings.around_port("ledger.load_control", self.inner.load_control(name)).await
    }

    async fn write_control(&self, row: &ControlRow) -> Result<bool, PortError> {
        self.surroundings.around_port("ledger.write_control", self.inner.write_control(row)).await
    }
}

#[async_trait]
impl Inspection for FaultyLedger {
    async fn list_entries(
        &self,
        filter: &EntryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        self.surroundings
            .around_port("ledger.list_entries", self.inner.list_entries(filter, after, limit))
            .await
    }

    async fn count_entries(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.surroundings.around_port("ledger.count_entries", self.inner.count_entries()).await
    }

    async fn count_intents(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.surroundings.around_port("ledger.count_intents", self.inner.count_intents()).await
    }

    async fn list_intents(
        &self,
        run: Option<&str>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        self.surroundings
            .around_port("ledger.list_intents", self.inner.list_intents(run, after, limit))
            .await
    }
}
