//! Rows so large that the table's own pages end early.

use std::collections::BTreeSet;

use domain::entry::{Cause, Entry};
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::ports::{Clock as _, Due as _, Entries as _, EntryFilter, Expected, Inspection as _};
use ledger_dynamodb::limits::{BATCH_KEYS_MAX, ROW_BYTES_MAX};

use crate::table::Table;
use crate::wire::{Fate, Wire};

/// Large rows: more than the 16 MB of a batch's answer.
const LARGE: usize = 45;
/// All rows: more than a batch has keys.
const ROWS: usize = BATCH_KEYS_MAX + 20;
/// Pages in which a test reads at most.
const PAGES_MAX: usize = 100;

fn row(number: usize, table: &Table) -> Entry {
    let now = table.clock.now();
    let key = JobKey::new(Kind::Crawl, JobId::parse(&format!("row-{number}")).unwrap());
    let mut entry = Entry::expected(key, None, Cause::Submit, now, &Limits::default());
    entry.due_at = Some(now);
    if number < LARGE {
        entry.token = Some("x".repeat(ROW_BYTES_MAX - 1_000));
    }
    entry
}

/// WK-15: a page of large rows ends early, a batch's answer leaves keys unprocessed, a scan ends
/// after a few rows: each row is listed once all the same, and counted.
#[test]
fn large_rows_are_listed_once_each() {
    testkit::run(async {
        let table = Table::new().await;
        let wire = Wire::always(Fate::Pass).await;
        let ledger = table.ledger_by(&wire.endpoint);
        let now = table.clock.now();
        for number in 0..ROWS {
            ledger.write(&row(number, &table), Expected::Absent(now)).await.unwrap();
        }
        wire.take();
        let first = ledger.list_due(now, None, 200).await.unwrap();
        assert_eq!(first.items.len(), BATCH_KEYS_MAX, "the page ended with its first batch");
        let batches = wire.operations().iter().filter(|name| *name == "BatchGetItem").count();
        assert!(batches > 1, "the batch's answer left keys unprocessed");
        let second = ledger.list_due(now, first.next.as_ref(), 200).await.unwrap();
        assert_eq!(second.next, None);
        let listed = first.items.iter().chain(&second.items);
        let keys: BTreeSet<_> = listed.map(|entry| entry.key.clone()).collect();
        assert_eq!((keys.len(), first.items.len() + second.items.len()), (ROWS, ROWS));

        let (mut scanned, mut after, mut pages) = (Vec::new(), None, 0);
        for _ in 0..PAGES_MAX {
            let filter = EntryFilter::default();
            let page = ledger.list_entries(&filter, after.as_ref(), 200).await.unwrap();
            scanned.extend(page.items.into_iter().map(|entry| entry.key));
            (after, pages) = (page.next, pages + 1);
            if after.is_none() {
                break;
            }
        }
        assert!(pages > 1, "the listing ended early");
        assert_eq!((scanned.len(), scanned.into_iter().collect()), (ROWS, keys));
        let counted = ledger.count_entries().await.unwrap();
        assert_eq!(counted.get("expected"), Some(&u64::try_from(ROWS).unwrap()));
    });
}
