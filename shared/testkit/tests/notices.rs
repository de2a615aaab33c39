//! The suites notice adapters that do not do what the ports promise: each flaw here fails a
//! behaviour.

#![expect(clippy::unwrap_used, reason = "what prepares a test fails by panicking, too")]

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::entry::{Entry, StoredObject};
use domain::intent::Intent;
use domain::job::{JobKey, Kind};
use domain::ports::{
    Clock, Control, ControlRow, Cursor, Due, Entries, EntryFilter, Expected, HeldTask, Inspection,
    IntentExpected, IntentWritten, Intents, Met, Page, Pairs, PortError, PutOutcome, Queue,
    Results, RowWrite, TaskSource, Written, WrittenBoth,
};
use domain::task::Task;
use domain::testing::{ManualClock, MemoryLedger, MemoryQueue, MemoryResults};
use domain::time::Timestamp;
use testkit::conformance::{
    LedgerSubject, QueueSubject, ResultsSubject, control, due, entries, intents, pairs, queue,
    results,
};
use testkit::crash::{self, Faults, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    WritesWithoutCondition,
    LosesTheConflictingRow,
    NeverExpires,
    ListsWhatIsNotDue,
    ForgetsWhatIsDue,
    RepeatsPages,
    MixesKinds,
    WritesOneOfTwo,
    MeetsNobody,
    WritesIntentsWithoutCondition,
    ForgetsOpenPosts,
    CountsLaterPosts,
    KeepsNoVersion,
    LosesDelays,
    HoldsForEver,
    Overwrites,
    ChangesText,
    AnswersWithTheNewContent,
    ListsWithoutLimit,
}

struct Flawed<T>(T, Flaw);

/// Whether a behaviour fails.
fn fails(behaviour: impl Future<Output = ()>) -> bool {
    catch_unwind(AssertUnwindSafe(|| testkit::run(behaviour))).is_err()
}

fn ledger(flaw: Flaw) -> LedgerSubject {
    LedgerSubject::new(Arc::new(Flawed(MemoryLedger::new(), flaw)))
}

fn queue_with(flaw: Flaw) -> QueueSubject<Flawed<MemoryQueue>> {
    let clock = Arc::new(ManualClock::default());
    let inner = MemoryQueue::new(clock.clone() as Arc<dyn Clock>);
    QueueSubject::new(Arc::new(Flawed(inner, flaw)), clock)
}

fn results_with(flaw: Flaw) -> ResultsSubject {
    ResultsSubject::new(Arc::new(Flawed(MemoryResults::new(), flaw)))
}

macro_rules! notices {
    ($($flaw:ident: $make:ident in $port:ident::$behaviour:ident),+ $(,)?) => {
        /// Each flaw fails the behaviour that forbids it, which a sound adapter shows.
        #[test]
        fn every_flaw_is_noticed() {
            $(
                let (sound, flawed) = ($make(Flaw::None), $make(Flaw::$flaw));
                assert!(!fails($port::$behaviour(&sound)), "{:?}, sound", Flaw::$flaw);
                assert!(fails($port::$behaviour(&flawed)), "{:?}", Flaw::$flaw);
            )+
        }
    };
}

notices! {
    WritesWithoutCondition: ledger in entries::one_of_many_writes_at_a_time_succeeds,
    LosesTheConflictingRow: ledger in entries::the_loser_of_a_race_learns_the_row_as_it_is,
    NeverExpires: ledger in entries::an_expired_row_is_there_and_counts_as_absent,
    MixesKinds: ledger in entries::odd_ids_are_rows_of_their_own,
    WritesOneOfTwo: ledger in pairs::neither_is_written_where_one_is_not_as_expected,
    MeetsNobody: ledger in pairs::a_repeated_write_of_two_finds_both,
    ListsWhatIsNotDue: ledger in due::rows_are_due_oldest_first,
    RepeatsPages: ledger in due::pages_hold_each_due_row_once,
    WritesIntentsWithoutCondition: ledger in intents::one_of_many_first_writes_succeeds,
    ForgetsOpenPosts: ledger in intents::an_open_intent_is_an_unresolved_post,
    CountsLaterPosts: ledger in intents::a_later_post_is_not_counted,
    KeepsNoVersion: ledger in control::a_control_row_goes_on_by_one_version,
    LosesDelays: queue_with in queue::a_delayed_task_becomes_visible_in_time,
    HoldsForEver: queue_with in queue::a_held_task_is_hidden_until_the_hold_ends,
    Overwrites: results_with in results::a_second_put_finds_the_object,
    ChangesText: results_with in results::content_comes_back_byte_for_byte,
    AnswersWithTheNewContent: results_with in results::one_of_many_puts_succeeds,
    ListsWithoutLimit: results_with in results::keys_are_listed_in_order,
}

fn world(flaw: Flaw) -> World<MemoryQueue> {
    let clock = Arc::new(ManualClock::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    World::new(clock, Arc::new(Flawed(MemoryLedger::new(), flaw)), queue)
}

/// What recovery rests on, the crash test asks for, with any of its choices of faults.
#[test]
fn the_crash_test_notices_what_keeps_from_recovery() {
    for faults in [Faults::Once, Faults::Twice, Faults::Near] {
        let make = |flaw| async move || world(flaw);
        let expired = |flaw| {
            fails(crash::receive::a_delivery_of_a_job_whose_row_expired(&make(flaw), faults))
        };
        assert!(!expired(Flaw::None) && expired(Flaw::NeverExpires), "{faults:?}");
        let unknown =
            |flaw| fails(crash::receive::a_delivery_of_an_unknown_job(&make(flaw), faults));
        assert!(!unknown(Flaw::None) && unknown(Flaw::ForgetsWhatIsDue), "{faults:?}");
        let worked = |flaw| fails(crash::work::a_batch_of_three_pages(&make(flaw), faults));
        assert!(!worked(Flaw::None) && worked(Flaw::MixesKinds), "{faults:?}");
    }
}

#[async_trait]
impl Entries for Flawed<MemoryLedger> {
    async fn load(&self, key: &JobKey) -> Result<Option<Entry>, PortError> {
        let kind = if self.1 == Flaw::MixesKinds { Kind::Extract } else { key.kind };
        self.0.load(&JobKey::new(kind, key.job_id.clone())).await
    }

    async fn write(&self, entry: &Entry, expected: Expected) -> Result<Written, PortError> {
        let expected = match expected {
            Expected::Absent(_) if self.1 == Flaw::NeverExpires => Expected::Absent(Timestamp::MIN),
            other => other,
        };
        if self.1 == Flaw::WritesWithoutCondition {
            self.0.place(entry);
            return Ok(Written::Done);
        }
        match self.0.write(entry, expected).await? {
            Written::Conflict(_) if self.1 == Flaw::LosesTheConflictingRow => {
                Ok(Written::Conflict(None))
            }
            written => Ok(written),
        }
    }
}

#[async_trait]
impl Pairs for Flawed<MemoryLedger> {
    async fn write_both(&self, rows: [RowWrite<'_>; 2]) -> Result<WrittenBoth, PortError> {
        if self.1 == Flaw::WritesOneOfTwo {
            for RowWrite { entry, expected } in rows {
                self.0.write(entry, expected).await?;
            }
            return Ok(WrittenBoth::Done);
        }
        match self.0.write_both(rows).await? {
            WrittenBoth::Conflict(_) if self.1 == Flaw::MeetsNobody => {
                Ok(WrittenBoth::Conflict([Met::Other(None), Met::Other(None)]))
            }
            written => Ok(written),
        }
    }
}

#[async_trait]
impl Due for Flawed<MemoryLedger> {
    async fn list_due(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        let now = if self.1 == Flaw::ListsWhatIsNotDue { Timestamp::MAX } else { now };
        let now = if self.1 == Flaw::ForgetsWhatIsDue { Timestamp::MIN } else { now };
        let after = after.filter(|_| self.1 != Flaw::RepeatsPages);
        self.0.list_due(now, after, limit).await
    }

    async fn list_due_intents(
        &self,
        now: Timestamp,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        self.0.list_due_intents(now, after, limit).await
    }
}

#[async_trait]
impl Intents for Flawed<MemoryLedger> {
    async fn load_intent(&self, id: &str) -> Result<Option<Intent>, PortError> {
        self.0.load_intent(id).await
    }

    async fn write_intent(
        &self,
        intent: &Intent,
        expected: IntentExpected,
    ) -> Result<IntentWritten, PortError> {
        if self.1 == Flaw::WritesIntentsWithoutCondition {
            self.0.place_intent(intent);
            return Ok(IntentWritten::Done);
        }
        self.0.write_intent(intent, expected).await
    }

    async fn has_unresolved_post(&self, kind: Kind, until: Timestamp) -> Result<bool, PortError> {
        let until = if self.1 == Flaw::CountsLaterPosts { Timestamp::MAX } else { until };
        Ok(self.1 != Flaw::ForgetsOpenPosts && self.0.has_unresolved_post(kind, until).await?)
    }
}

#[async_trait]
impl Control for Flawed<MemoryLedger> {
    async fn load_control(&self, name: &str) -> Result<Option<ControlRow>, PortError> {
        self.0.load_control(name).await
    }

    async fn write_control(&self, row: &ControlRow) -> Result<bool, PortError> {
        Ok(self.0.write_control(row).await? || self.1 == Flaw::KeepsNoVersion)
    }
}

#[async_trait]
impl Inspection for Flawed<MemoryLedger> {
    async fn list_entries(
        &self,
        filter: &EntryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Entry>, PortError> {
        self.0.list_entries(filter, after, limit).await
    }

    async fn count_entries(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.0.count_entries().await
    }

    async fn count_intents(&self) -> Result<BTreeMap<String, u64>, PortError> {
        self.0.count_intents().await
    }

    async fn list_intents(
        &self,
        run: Option<&str>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Intent>, PortError> {
        self.0.list_intents(run, after, limit).await
    }
}

#[async_trait]
impl Queue for Flawed<MemoryQueue> {
    async fn send(&self, task: &Task, delay: Duration) -> Result<(), PortError> {
        let delay = if self.1 == Flaw::LosesDelays { Duration::ZERO } else { delay };
        self.0.send(task, delay).await
    }
}

#[async_trait]
impl TaskSource for Flawed<MemoryQueue> {
    async fn receive(&self, limit: u32, hold: Duration) -> Result<Vec<HeldTask>, PortError> {
        let hold = if self.1 == Flaw::HoldsForEver { Duration::MAX } else { hold };
        self.0.receive(limit, hold).await
    }

    async fn acknowledge(&self, held: &HeldTask) -> Result<(), PortError> {
        self.0.acknowledge(held).await
    }
}

#[async_trait]
impl Results for Flawed<MemoryResults> {
    async fn put_new(&self, key: &str, content: &[u8]) -> Result<PutOutcome, PortError> {
        if self.1 == Flaw::Overwrites {
            let bytes = domain::object::encode(key, content).unwrap();
            let object = domain::object::describe(key, &bytes);
            self.0.place(key, bytes);
            return Ok(PutOutcome::Now(object));
        }
        if self.1 == Flaw::ChangesText {
            return self.0.put_new(key, String::from_utf8_lossy(content).as_bytes()).await;
        }
        match self.0.put_new(key, content).await? {
            PutOutcome::Already { object, .. } if self.1 == Flaw::AnswersWithTheNewContent => {
                Ok(PutOutcome::Already { object, content: content.to_vec() })
            }
            put => Ok(put),
        }
    }

    async fn read(&self, key: &str) -> Result<Option<(StoredObject, Vec<u8>)>, PortError> {
        self.0.read(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, PortError> {
        let limit = if self.1 == Flaw::ListsWithoutLimit { u32::MAX } else { limit };
        self.0.list(prefix, after, limit).await
    }
}
