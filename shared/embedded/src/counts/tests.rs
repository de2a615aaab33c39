use domain::entry::{Cause, DeadReason, Entry, State};
use domain::intent::IntentState;
use domain::job::JobId;
use domain::limits::Limits;
use domain::ports::{
    Control, ControlRow, Entries, Expected, Inspection, IntentExpected, IntentWritten, Intents,
    Written,
};
use domain::time::after;
use proptest::prelude::*;

use super::*;
use crate::store::{LEDGER, SqliteStore};
use crate::testing::{TestStore, entry, extract, intent, start, stranger, test_store};

/// What a reading of all rows counts.
fn scanned(store: &SqliteStore) -> Vec<BTreeMap<String, u64>> {
    let raw = stranger(store);
    let all = "SELECT state, count(*) FROM entries GROUP BY state UNION ALL \
               SELECT 'dead:' || dead_reason, count(*) FROM entries \
               WHERE dead_reason IS NOT NULL GROUP BY dead_reason";
    [all, "SELECT state, count(*) FROM intents GROUP BY state"]
        .map(|sql| {
            let mut statement = raw.prepare(sql).unwrap();
            let rows = statement.query_map([], |row| {
                let number: i64 = row.get(1)?;
                Ok((row.get(0)?, u64::try_from(number).unwrap()))
            });
            rows.unwrap().collect::<rusqlite::Result<_>>().unwrap()
        })
        .into()
}

async fn counted(store: &SqliteStore) -> Vec<BTreeMap<String, u64>> {
    vec![store.count_entries().await.unwrap(), store.count_intents().await.unwrap()]
}

async fn write(store: &SqliteStore, next: &Entry, before: Option<&Entry>, fits: bool) {
    let expected = match before {
        Some(before) => Expected::As(before.seen()),
        None => Expected::Absent(start()),
    };
    let written = Entries::write(store, next, expected).await.unwrap();
    assert_eq!(written == Written::Done, fits, "{written:?}");
}

fn dead(row: &Entry, reason: DeadReason) -> Entry {
    let state = State::Dead { reason, error: None, result: None };
    row.settled(state, Cause::Work, start(), &Limits::default())
}

/// A row is counted where it is, through death, redrive, another death, expiry and a new life.
#[tokio::test]
async fn counts_follow_a_row_through_its_generations() {
    let TestStore { store, clock, directory: _directory } = test_store();
    let limits = Limits::default();
    let expected = entry("a");
    write(&store, &expected, None, true).await;
    write(&store, &expected, None, false).await;
    assert_eq!(counted(&store).await, scanned(&store));
    let gone = dead(&expected, DeadReason::Gone);
    write(&store, &gone, Some(&expected), true).await;
    write(&store, &gone, Some(&expected), false).await;
    let wanted = [("dead", 1), ("dead:gone", 1)].map(|(name, rows)| (name.to_owned(), rows));
    assert_eq!(store.count_entries().await.unwrap(), wanted.into());
    let again = gone.redriven(None, start(), &limits).unwrap();
    write(&store, &again, Some(&gone), true).await;
    assert_eq!(store.count_entries().await.unwrap(), [("received".to_owned(), 1)].into());
    let cancelled = dead(&again, DeadReason::Cancelled);
    write(&store, &cancelled, Some(&again), true).await;
    assert_eq!(counted(&store).await, scanned(&store));
    // Expired, and written over before it was removed.
    let later = after(start(), limits.retention + limits.max_age);
    let written = Entries::write(&store, &expected, Expected::Absent(later)).await.unwrap();
    assert_eq!(written, Written::Done);
    assert_eq!(store.count_entries().await.unwrap(), [("expected".to_owned(), 1)].into());
    let gone = dead(&expected, DeadReason::Gone);
    write(&store, &gone, Some(&expected), true).await;
    assert!(clock.advance_to(later));
    assert_eq!(store.remove_expired().await.unwrap(), 1);
    assert_eq!(counted(&store).await, [BTreeMap::new(), BTreeMap::new()]);
}

/// What an operation changed is not counted when it fails, and its siblings are.
#[tokio::test]
async fn an_operation_that_fails_counts_nothing() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let failing = store.write(LEDGER, "test", |group| {
        group.count(RowsOf::Entries, "expected", 1);
        group.execute("INSERT INTO nowhere VALUES (1)", [])
    });
    let row = entry("a");
    let sibling = Entries::write(&store, &row, Expected::Absent(start()));
    let (failed, written) = tokio::join!(failing, sibling);
    failed.unwrap_err();
    assert_eq!(written.unwrap(), Written::Done);
    assert_eq!(store.count_entries().await.unwrap(), [("expected".to_owned(), 1)].into());
}

/// Counts are durable with the rows, and shared by all who open the file.
#[tokio::test]
async fn two_openers_count_together() {
    let TestStore { store, clock, directory: _directory } = test_store();
    let other = SqliteStore::open(store.path(), clock, crate::Settings::default()).unwrap();
    for (store, id) in [(&store, "a"), (&other, "b"), (&store, "c")] {
        write(store, &entry(id), None, true).await;
    }
    let control = ControlRow { name: "n".to_owned(), version: 1, value: "{}".to_owned() };
    assert!(store.write_control(&control).await.unwrap());
    assert_eq!(counted(&store).await, counted(&other).await);
    assert_eq!(counted(&store).await, scanned(&store));
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Write(u8),
    Settle(u8, DeadReason),
    Store(u8),
    Redrive(u8),
    Submit(u8),
    Accept(u8),
    Expire,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let row = 0_u8..4;
    let reason = prop::sample::select(&DeadReason::ALL[..]);
    let act = prop_oneof![
        row.clone().prop_map(Act::Write),
        (row.clone(), reason).prop_map(|(row, reason)| Act::Settle(row, reason)),
        row.clone().prop_map(Act::Store),
        row.clone().prop_map(Act::Redrive),
        row.clone().prop_map(Act::Submit),
        row.prop_map(Act::Accept),
        Just(Act::Expire),
    ];
    prop::collection::vec(act, 1..24)
}

async fn perform(test: &TestStore, act: Act) {
    let limits = Limits::default();
    let store = &test.store;
    let now = domain::ports::Clock::now(&*test.clock);
    let row_of = |row: u8| entry(&format!("row-{row}"));
    match act {
        Act::Write(row) => {
            Entries::write(store, &row_of(row), Expected::Absent(now)).await.unwrap();
        }
        Act::Settle(row, _) | Act::Store(row) | Act::Redrive(row) => {
            let Some(there) = store.load(&row_of(row).key).await.unwrap() else { return };
            let next = match act {
                Act::Settle(_, reason) => Some(dead(&there, reason)),
                Act::Redrive(_) => there.redriven(None, now, &limits),
                _ => {
                    let by = JobId::parse("next").unwrap();
                    let state = State::Superseded { by };
                    Some(there.settled(state, Cause::Work, now, &limits))
                }
            };
            let Some(next) = next else { return };
            Entries::write(store, &next, Expected::As(there.seen())).await.unwrap();
        }
        Act::Submit(row) | Act::Accept(row) => {
            let open = intent("run", u64::from(row), extract("https://example.com/"));
            let there = store.load_intent(&open.id).await.unwrap();
            let (next, expected) = match (act, there) {
                (Act::Accept(_), Some(there)) => {
                    let state = IntentState::Accepted { job_id: JobId::parse("j").unwrap() };
                    let next = there.moved(state, now, &limits);
                    (next, IntentExpected::Version(there.version))
                }
                _ => (open, IntentExpected::Absent(now)),
            };
            let written = store.write_intent(&next, expected).await.unwrap();
            assert!(matches!(written, IntentWritten::Done | IntentWritten::Conflict(_)));
        }
        Act::Expire => {
            test.clock.advance(limits.retention);
            store.remove_expired().await.unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Whatever is done to rows, the counts are what reading all of them gives.
    #[test]
    fn counts_are_what_a_reading_of_all_rows_gives(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let test = test_store();
            for act in &acts {
                perform(&test, *act).await;
                assert_eq!(counted(&test.store).await, scanned(&test.store), "{act:?}");
            }
        });
    }
}
