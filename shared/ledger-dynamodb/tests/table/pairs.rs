//! Two rows in one transaction, and what becomes of it.

use aws_client::Patience;
use domain::entry::{Cause, DeadReason, Entry, State};
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::ports::{
    Clock as _, Entries as _, ErrorKind, Expected, Met, Pairs as _, RowWrite, WrittenBoth,
};

use crate::table::Table;
use crate::wire::{BROKEN, Fate, THROTTLED, Wire};

fn open(table: &Table, id: &str) -> Entry {
    let key = JobKey::new(Kind::Batch, JobId::parse(id).unwrap());
    Entry::expected(key, None, Cause::Submit, table.clock.now(), &Limits::default())
}

/// A row over which another is to be written, and one where none is.
async fn pair(table: &Table) -> (Entry, Entry, Entry) {
    let before = open(table, "a");
    let now = table.clock.now();
    table.ledger().write(&before, Expected::Absent(now)).await.unwrap();
    let state = State::Dead { reason: DeadReason::Failed, error: None, result: None };
    let next = before.settled(state, Cause::Work, now, &Limits::default());
    (before, next, open(table, "b"))
}

fn rows<'a>(before: &Entry, next: &'a Entry, beside: &'a Entry) -> [RowWrite<'a>; 2] {
    let absent = Expected::Absent(beside.first_seen);
    [
        RowWrite { entry: next, expected: Expected::As(before.seen()) },
        RowWrite { entry: beside, expected: absent },
    ]
}

/// DQ-02: a transaction that is refused for now, or whose answer was lost, is repeated by the SDK
/// under the name that it has, and is made once.
#[test]
fn a_transaction_whose_answer_was_lost_is_made_once() {
    testkit::run(async {
        for fate in [Fate::Lose, BROKEN, THROTTLED] {
            let table = Table::new().await;
            let (before, next, beside) = pair(&table).await;
            let wire = Wire::with(0, fate.clone()).await;
            let ledger = table.ledger_by(&wire.endpoint);
            let written = ledger.write_both(rows(&before, &next, &beside)).await.unwrap();
            assert_eq!(written, WrittenBoth::Done, "{fate:?}");
            let calls = wire.take();
            assert_eq!(calls.len(), 2, "{fate:?}");
            let names: Vec<_> = calls.iter().map(|call| &call.body["ClientRequestToken"]).collect();
            assert!(names[0].is_string() && names[0] == names[1], "{fate:?}: {names:?}");
            assert_eq!(ledger.load(&next.key).await.unwrap(), Some(next));
            assert_eq!(ledger.load(&beside.key).await.unwrap(), Some(beside));
        }
    });
}

/// Where nobody tries again below, the same call from above meets both rows, or writes them.
#[test]
fn a_repeated_call_meets_both_rows_or_writes_them() {
    testkit::run(async {
        let once = Patience { attempts: 1, ..Patience::RECEIVER };
        for (fate, kind, is_made) in [
            (Fate::Lose, ErrorKind::Unavailable, true),
            (BROKEN, ErrorKind::Unavailable, false),
            (THROTTLED, ErrorKind::Throttled, false),
        ] {
            let table = Table::new().await;
            let (before, next, beside) = pair(&table).await;
            let wire = Wire::with(0, fate.clone()).await;
            let ledger = table.ledger_with(&wire.endpoint, once);
            let both = rows(&before, &next, &beside);
            assert_eq!(ledger.write_both(both).await.unwrap_err().kind, kind, "{fate:?}");
            let written = ledger.write_both(both).await.unwrap();
            let other = |row: &Entry| Met::Other(Some(Box::new(row.clone())));
            let expected = if is_made {
                WrittenBoth::Conflict([other(&next), other(&beside)])
            } else {
                WrittenBoth::Done
            };
            assert_eq!(written, expected, "{fate:?}");
        }
    });
}

/// A transaction that met another one is not decided: it is made again later. One that the table
/// will never take is a bug of ours, and one that tells nothing is trouble.
#[test]
fn a_cancelled_transaction_says_what_to_do() {
    testkit::run(async {
        for (codes, kind) in [
            (["TransactionConflict", "None"], ErrorKind::Throttled),
            (["ConditionalCheckFailed", "TransactionConflict"], ErrorKind::Throttled),
            (["None", "ThrottlingError"], ErrorKind::Throttled),
            (["ValidationError", "None"], ErrorKind::Invalid),
            (["None", "ItemCollectionSizeLimitExceeded"], ErrorKind::Invalid),
            (["None", "None"], ErrorKind::Unavailable),
            (["None", "SomethingNew"], ErrorKind::Unavailable),
            // What is there should have been told.
            (["None", "ConditionalCheckFailed"], ErrorKind::Unavailable),
        ] {
            let table = Table::new().await;
            let (before, next, beside) = pair(&table).await;
            let wire = Wire::always(Fate::Cancel(codes)).await;
            let ledger = table.ledger_by(&wire.endpoint);
            let error = ledger.write_both(rows(&before, &next, &beside)).await.unwrap_err();
            assert_eq!(error.kind, kind, "{codes:?}");
            assert_eq!(table.ledger().load(&next.key).await.unwrap(), Some(before));
        }
    });
}
