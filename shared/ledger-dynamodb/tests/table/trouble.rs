//! What no emulator does: refusals, silence, halves of answers, an index that lags.

use std::time::Duration;

use aws_client::Patience;
use domain::announce::Announcing;
use domain::entry::{Announcement, Cause, DeadReason, Entry, Seen, State, StateName};
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::ports::{
    Clock as _, Control as _, ControlRow, Due as _, Entries as _, EntryFilter, ErrorKind, Expected,
    Inspection as _, Intents as _, PortError, Written,
};
use domain::time::{Timestamp, before};
use domain::update::{Changed, change};
use ledger_dynamodb::limits::{
    BATCH_BARREN_MAX, QUERY_PAGES_MAX, SCAN_PAGES_MAX, UNRESOLVED_PAGES_MAX,
};
use serde_json::{Value, json};

use crate::table::Table;
use crate::wire::{BROKEN, Call, Fate, THROTTLED, Wire};

fn key(id: &str) -> JobKey {
    JobKey::new(Kind::Extract, JobId::parse(id).unwrap())
}

fn open(id: &str, now: Timestamp) -> Entry {
    let mut entry = Entry::expected(key(id), None, Cause::Submit, now, &Limits::default());
    entry.due_at = Some(now);
    entry
}

fn dead(entry: &Entry, now: Timestamp) -> Entry {
    let state = State::Dead { reason: DeadReason::Failed, error: None, result: None };
    entry.settled(state, Cause::Work, now, &Limits::default())
}

fn word() -> Announcement {
    Announcement { cause: Cause::Delivery, delivery_id: None, token: "this-call".to_owned() }
}

/// DQ-02: a write whose answer was lost is made again by the SDK, and meets its own row, which
/// counts as written.
#[test]
fn a_write_whose_answer_was_lost_meets_its_own_row() {
    testkit::run(async {
        let table = Table::new().await;
        let wire = Wire::with(0, Fate::Lose).await;
        let ledger = table.ledger_by(&wire.endpoint);
        let (now, row) = (table.clock.now(), open("a", table.clock.now()));
        let changed = change(&ledger, None, now, |_| Some(row.clone())).await.unwrap();
        assert_eq!(changed, Changed::Written(Box::new(row.clone())));
        assert_eq!(wire.operations(), ["PutItem", "PutItem"]);
        let wire = Wire::with(0, Fate::Lose).await;
        let ledger = table.ledger_by(&wire.endpoint);
        let next = dead(&row, now);
        let written = ledger.write(&next, Expected::As(row.seen())).await.unwrap();
        assert_eq!(written, Written::Conflict(Some(Box::new(next))));
        assert_eq!(wire.operations(), ["PutItem", "PutItem"]);
    });
}

/// DQ-01, DQ-02: an announcement whose answer was lost is this call's, and its task is sent.
#[test]
fn an_announcement_whose_answer_was_lost_is_written_once_and_wants_its_task() {
    testkit::run(async {
        let table = Table::new().await;
        let wire = Wire::with(1, Fate::Lose).await;
        let ledger = table.ledger_by(&wire.endpoint);
        let (now, limits) = (table.clock.now(), Limits::default());
        let announced = ledger.announce(&key("a"), &word(), now, &limits).await.unwrap();
        let Announcing::Unsent { row: Some(row), before: None } = announced else {
            panic!("{announced:?}")
        };
        assert_eq!(row.version, 1);
        assert_eq!(wire.operations(), ["GetItem", "PutItem", "PutItem"]);
        // The same call once more, from above.
        let announced = ledger.announce(&key("a"), &word(), now, &limits).await.unwrap();
        assert!(matches!(announced, Announcing::Unsent { .. }), "{announced:?}");
        assert_eq!(ledger.load(&key("a")).await.unwrap().unwrap().version, 1);
        let other = Announcement { token: "another".to_owned(), ..word() };
        let announced = ledger.announce(&key("a"), &other, now, &limits).await.unwrap();
        assert_eq!(announced, Announcing::Known(StateName::Received));
    });
}

/// A control row cannot be told from an equal one of somebody else: a lost answer is no success.
#[test]
fn a_control_write_whose_answer_was_lost_is_not_claimed() {
    testkit::run(async {
        let table = Table::new().await;
        let wire = Wire::with(0, Fate::Lose).await;
        let ledger = table.ledger_by(&wire.endpoint);
        let row = ControlRow { name: "spend".to_owned(), version: 1, value: "{}".to_owned() };
        assert!(!ledger.write_control(&row).await.unwrap());
        assert_eq!(ledger.load_control("spend").await.unwrap(), Some(row));
    });
}

async fn announcing(fate: Fate, patience: Patience) -> PortError {
    let table = Table::new().await;
    let wire = Wire::always(fate).await;
    let ledger = table.ledger_with(&wire.endpoint, patience);
    let now = table.clock.now();
    ledger.announce(&key("a"), &word(), now, &Limits::default()).await.unwrap_err()
}

/// DQ-04: whatever the table answers, it is an error that says what to do, and in time; nothing of
/// the row is in it.
#[test]
fn lasting_trouble_is_an_error_that_says_what_to_do() {
    testkit::run(async {
        let brief = Patience {
            attempt: Duration::from_millis(200),
            operation: Duration::from_millis(400),
            ..Patience::RECEIVER
        };
        for (fate, kind) in [
            (THROTTLED, ErrorKind::Throttled),
            (Fate::Refuse(400, "ThrottlingException"), ErrorKind::Throttled),
            (Fate::Refuse(400, "RequestLimitExceeded"), ErrorKind::Throttled),
            (Fate::Refuse(400, "ResourceNotFoundException"), ErrorKind::Denied),
            (Fate::Refuse(400, "AccessDeniedException"), ErrorKind::Denied),
            (Fate::Refuse(400, "UnrecognizedClientException"), ErrorKind::Denied),
            (Fate::Refuse(400, "ExpiredTokenException"), ErrorKind::Denied),
            (Fate::Refuse(400, "ValidationException"), ErrorKind::Invalid),
            (BROKEN, ErrorKind::Unavailable),
            (Fate::Refuse(503, "ServiceUnavailable"), ErrorKind::Unavailable),
            (Fate::Lose, ErrorKind::Unavailable),
            (Fate::Hang, ErrorKind::Unavailable),
        ] {
            let error = announcing(fate.clone(), brief).await;
            assert_eq!(error.kind, kind, "{fate:?}: {error:?}");
            assert!(!format!("{error:?}").contains("this-call"), "{error:?}");
        }
    });
}

/// A refusal that does not say what is there cannot be decided on, unless something was expected to
/// be there and is not.
#[test]
fn a_refusal_that_does_not_tell_the_row_is_no_conflict_with_nothing() {
    testkit::run(async {
        let table = Table::new().await;
        let refused = Fate::Refuse(400, "ConditionalCheckFailedException");
        let is_read = |call: &Call| call.operation == "GetItem";
        let plan = move |_, call: &Call| if is_read(call) { Fate::Pass } else { refused.clone() };
        let wire = Wire::new(plan).await;
        let ledger = table.ledger_by(&wire.endpoint);
        let now = table.clock.now();
        let row = open("a", now);
        let error = ledger.write(&row, Expected::Absent(now)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        let error = ledger.announce(&key("a"), &word(), now, &Limits::default()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        let seen = Seen { state: StateName::Expected, generation: 0, version: 1 };
        let written = ledger.write(&dead(&row, now), Expected::As(seen)).await.unwrap();
        assert_eq!(written, Written::Conflict(None));
        let calls = ["PutItem", "GetItem", "PutItem", "PutItem"];
        assert_eq!(wire.operations(), calls, "no read afterwards, no repetition");
    });
}

/// What does not fit the table never gets there.
#[test]
fn what_the_table_would_refuse_is_refused_before_the_call() {
    testkit::run(async {
        let table = Table::new().await;
        let wire = Wire::always(Fate::Pass).await;
        let ledger = table.ledger_by(&wire.endpoint);
        for name in [String::new(), "x".repeat(513), "\u{20ac}".repeat(171)] {
            let row = ControlRow { name: name.clone(), version: 1, value: "{}".to_owned() };
            let error = ledger.write_control(&row).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Invalid, "{} bytes", name.len());
            assert_eq!(ledger.load_control(&name).await.unwrap(), None);
            assert_eq!(ledger.load_intent(&name).await.unwrap(), None);
        }
        let value = "x".repeat(400_001);
        let row = ControlRow { name: "a".to_owned(), version: 1, value };
        assert_eq!(ledger.write_control(&row).await.unwrap_err().kind, ErrorKind::Invalid);
        let now = table.clock.now();
        let forgotten = Entry { due_at: None, ..open("a", now) };
        let removed = Entry { expires_at: Some(0), ..open("a", now) };
        for row in [forgotten, removed] {
            let error = ledger.write(&row, Expected::Absent(now)).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Invalid);
        }
        assert_eq!(wire.operations(), [""; 0]);
    });
}

async fn three_due(table: &Table) -> Vec<Entry> {
    let (ledger, now) = (table.ledger(), table.clock.now());
    let rows = ["a", "b", "c"].map(|id| open(id, now));
    for row in &rows {
        ledger.write(row, Expected::Absent(now)).await.unwrap();
    }
    rows.into()
}

/// Keys that a batch leaves unprocessed are asked for again: at once while some come, after a
/// growing pause while none do.
#[test]
fn unprocessed_keys_are_asked_for_again() {
    testkit::run(async {
        let table = Table::new().await;
        let rows = three_due(&table).await;
        for (parts, sleeps) in [
            (&[1, 1, 1][..], &[][..]),
            (&[2, 0, 1], &[50]),
            (&[0, 0, 0, 1, 0, 2], &[50, 100, 200, 50]),
        ] {
            let wire = Wire::new(move |call, made: &Call| {
                let batches = call.checked_sub(11).filter(|_| made.operation == "BatchGetItem");
                let part = batches.and_then(|batch| parts.get(batch));
                part.map_or(Fate::Pass, |part| Fate::Part(*part))
            });
            let wire = wire.await;
            let before = table.clock.sleeps().len();
            let now = table.clock.now();
            let page = table.ledger_by(&wire.endpoint).list_due(now, None, 10).await.unwrap();
            assert_eq!(page.items, rows, "{parts:?}");
            let slept: Vec<_> = table.clock.sleeps().into_iter().skip(before).collect();
            let wanted: Vec<_> = sleeps.iter().map(|wait| Duration::from_millis(*wait)).collect();
            assert_eq!(slept, wanted, "{parts:?}");
            assert_eq!(wire.operations().len(), 11 + parts.len());
        }
    });
}

/// Keys that stay unprocessed are throttling, after a bounded wait.
#[test]
fn keys_that_stay_unprocessed_are_throttling() {
    testkit::run(async {
        let table = Table::new().await;
        three_due(&table).await;
        let wire = Wire::new(|_, call: &Call| match call.operation.as_str() {
            "BatchGetItem" => Fate::Part(0),
            _ => Fate::Pass,
        });
        let wire = wire.await;
        let ledger = table.ledger_by(&wire.endpoint);
        let error = ledger.list_due(table.clock.now(), None, 10).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Throttled);
        let calls = wire.operations().iter().filter(|name| *name == "BatchGetItem").count();
        assert_eq!(u32::try_from(calls).unwrap(), BATCH_BARREN_MAX);
        let slept: Duration = table.clock.sleeps().iter().sum();
        assert_eq!(slept, Duration::from_millis(50 + 100 + 200 + 400 + 800));
    });
}

/// A place before all that is due.
const EARLY: &str = "entry#2026-11-30T11:00:00.000000000Z#extract#a";

/// A page of an index as the table answers it.
fn page_of(shard: &str, sorts: &[String], more_after: Option<&str>) -> Value {
    let text = |text: &str| json!({ "S": text });
    let item = |sort: &str| {
        let id = sort.rsplit('#').next().unwrap();
        json!({
            "due_shard": text(shard), "due_sort": text(sort),
            "pk": text(&format!("job#{id}")), "sk": text("extract"),
        })
    };
    let items: Vec<_> = sorts.iter().map(|sort| item(sort)).collect();
    let mut page = json!({ "Count": items.len(), "ScannedCount": items.len(), "Items": items });
    if let Some(sort) = more_after {
        page["LastEvaluatedKey"] = item(sort);
    }
    page
}

/// The partition that a query asks for.
fn asked(call: &Call) -> &str {
    call.body["ExpressionAttributeValues"][":partition"]["S"].as_str().unwrap_or_default()
}

/// SC-14: the index says that rows are due which have settled, moved on or gone meanwhile, and
/// says so twice: the rows themselves are what is listed.
#[test]
fn an_index_that_lags_is_not_believed() {
    testkit::run(async {
        let table = Table::new().await;
        let (ledger, now) = (table.ledger(), table.clock.now());
        let settled = dead(&open("settled", now), now);
        let later = Entry { due_at: Some(now + Duration::from_secs(9)), ..open("later", now) };
        let due = open("due", now);
        for row in [&settled, &later, &due] {
            ledger.write(row, Expected::Absent(now)).await.unwrap();
        }
        let stale = ["settled", "later", "gone", "due"];
        let stale = stale.map(|id| format!("entry#2026-11-30T11:00:00.000000000Z#extract#{id}"));
        let wire = Wire::new(move |_, call: &Call| match asked(call) {
            shard @ ("open#0" | "post#extract") => Fate::Answer(page_of(shard, &stale, None)),
            _ => Fate::Pass,
        });
        let wire = wire.await;
        let page = table.ledger_by(&wire.endpoint).list_due(now, None, 10).await.unwrap();
        assert_eq!((page.items, page.next, page.unreadable), (vec![due], None, Vec::new()));
    });
}

/// A page of an index may be empty and not be the last; only a key says so.
#[test]
fn an_empty_page_is_not_the_last() {
    testkit::run(async {
        let table = Table::new().await;
        let rows = three_due(&table).await;
        let wire = Wire::new(move |_, call: &Call| {
            let is_first = call.body["ExclusiveStartKey"].is_null();
            if is_first && call.operation == "Query" {
                Fate::Answer(page_of(asked(call), &[], Some(EARLY)))
            } else {
                Fate::Pass
            }
        });
        let wire = wire.await;
        let ledger = table.ledger_by(&wire.endpoint);
        let now = table.clock.now();
        let page = ledger.list_due(now, None, 10).await.unwrap();
        assert_eq!((page.items, page.next), (rows, None));
        assert!(!ledger.has_unresolved_post(Kind::Batch, now).await.unwrap());
    });
}

/// Pages that never end are left after a bounded number, with a cursor that goes on, and an
/// undecided question is answered with what only costs a wait.
#[test]
fn pages_that_never_end_are_left_in_time() {
    testkit::run(async {
        let table = Table::new().await;
        let endless = page_of("open#0", &[], Some(EARLY));
        let wire = Wire::always(Fate::Answer(endless)).await;
        let ledger = table.ledger_by(&wire.endpoint);
        let now = table.clock.now();
        let page = ledger.list_due(now, None, 10).await.unwrap();
        assert!(page.items.is_empty() && page.next.is_some());
        assert_eq!(wire.take().len(), usize::try_from(11 * QUERY_PAGES_MAX).unwrap());
        assert!(ledger.has_unresolved_post(Kind::Extract, now).await.unwrap());
        assert_eq!(wire.take().len(), usize::try_from(UNRESOLVED_PAGES_MAX).unwrap());
        let filter = EntryFilter { state: Some(StateName::Dead), ..EntryFilter::default() };
        let page = ledger.list_entries(&filter, None, 10).await.unwrap();
        assert!(page.items.is_empty());
        assert_eq!(wire.take().len(), usize::try_from(SCAN_PAGES_MAX).unwrap());
        let next = ledger.list_entries(&filter, page.next.as_ref(), 10).await.unwrap();
        assert_eq!(next.next, page.next);
        let first = wire.take().remove(0);
        assert_eq!(first.body["ExclusiveStartKey"]["pk"]["S"], "job#a");
    });
}

/// DQ-05: a row that expired an hour ago and still lies there is written over; one whose expiry
/// somebody wrote in milliseconds is not.
#[test]
fn an_expired_row_that_is_still_there_counts_as_absent() {
    testkit::run(async {
        let table = Table::new().await;
        let (ledger, now, limits) = (table.ledger(), table.clock.now(), Limits::default());
        let long_ago = before(now, limits.retention + Duration::from_hours(1));
        let expired = dead(&open("a", long_ago), long_ago);
        ledger.write(&expired, Expected::Absent(long_ago)).await.unwrap();
        let announced = ledger.announce(&key("a"), &word(), now, &limits).await.unwrap();
        assert!(matches!(announced, Announcing::Unsent { before: None, .. }), "{announced:?}");
        assert_eq!(ledger.load(&key("a")).await.unwrap().unwrap().version, 1, "a new row");

        let mut in_millis = dead(&open("b", long_ago), long_ago);
        in_millis.expires_at = in_millis.expires_at.map(|seconds| seconds * 1_000);
        ledger.write(&in_millis, Expected::Absent(long_ago)).await.unwrap();
        let announced = ledger.announce(&key("b"), &word(), now, &limits).await.unwrap();
        assert_eq!(announced, Announcing::Known(StateName::Dead));
    });
}
