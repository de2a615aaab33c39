use domain::entry::{Cause, DeadReason, State};
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::ports::{Entries, Expected};

use super::*;
use crate::testing::{TestStore, entry_of, start, stranger, test_store};

/// Nine rows: of each kind one that is expected, one dead and gone, one dead and cancelled.
async fn filled() -> (TestStore, Vec<Entry>) {
    let test = test_store();
    let mut rows = Vec::new();
    for kind in Kind::ALL {
        for (id, reason) in
            [("b", None), ("a", Some(DeadReason::Gone)), ("C", Some(DeadReason::Cancelled))]
        {
            let mut row = entry_of(JobKey::new(kind, JobId::parse(id).unwrap()));
            if let Some(reason) = reason {
                let state = State::Dead { reason, error: None, result: None };
                row = row.settled(state, Cause::Work, start(), &Limits::default());
            }
            Entries::write(&test.store, &row, Expected::Absent(start())).await.unwrap();
            rows.push(row);
        }
    }
    (test, rows)
}

#[tokio::test]
async fn rows_come_by_arrival_and_in_pages() {
    let (test, rows) = filled().await;
    let states = [None, Some(StateName::Dead), Some(StateName::Expected), Some(StateName::Stored)];
    for state in states {
        for kind in [None, Some(Kind::Batch)] {
            let filter = EntryFilter { state, kind, reference: None };
            let wanted: Vec<_> = rows
                .iter()
                .filter(|row| state.is_none_or(|state| row.state.name() == state))
                .filter(|row| kind.is_none_or(|kind| row.key.kind == kind))
                .cloned()
                .collect();
            let mut found = Vec::new();
            let mut from = None;
            for _ in 0..rows.len() {
                let page = test.store.list_entries(&filter, from.as_ref(), 2).await.unwrap();
                found.extend(page.items);
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
            assert_eq!((found, from), (wanted, None), "{filter:?}");
        }
    }
}

#[tokio::test]
async fn rows_are_counted_by_state_and_reason() {
    let (test, _rows) = filled().await;
    let counts = test.store.count_entries().await.unwrap();
    let wanted = [("dead", 6), ("dead:cancelled", 3), ("dead:gone", 3), ("expected", 3)];
    assert_eq!(counts, wanted.map(|(name, rows)| (name.to_owned(), rows)).into());
}

#[tokio::test]
async fn a_row_that_does_not_decode_is_named_and_shows_nothing() {
    let (test, rows) = filled().await;
    stranger(&test.store)
        .execute("UPDATE entries SET json = '{\"private\":1}' WHERE job_id = 'C'", [])
        .unwrap();
    let filter = EntryFilter::default();
    let page = test.store.list_entries(&filter, None, 9).await.unwrap();
    assert_eq!(page.items.len() + page.unreadable.len(), rows.len());
    assert!(page.unreadable.iter().all(|row| row.contains(" C does not decode")));
    assert!(!page.unreadable.is_empty() && !format!("{page:?}").contains("private"));
    let cursor = Cursor("{}".to_owned());
    let error = test.store.list_entries(&filter, Some(&cursor), 9).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    let error = test.store.list_intents(None, Some(&cursor), 9).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
}

fn plan(connection: &Connection, sql: &str) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let nothing = vec![rusqlite::types::Null; statement.parameter_count()];
    let nothing = rusqlite::params_from_iter(nothing);
    let lines = statement.query_map(nothing, |row| row.get::<_, String>(3)).unwrap();
    lines.collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ")
}

/// Each listing begins in its index at the very row that the page begins with.
#[tokio::test]
async fn every_listing_begins_at_its_first_row() {
    let (test, _rows) = filled().await;
    let raw = stranger(&test.store);
    let direct = |range: &str| format!("SEARCH entries USING INDEX {range}");
    let by_ref = direct("entries_by_ref (ref=? AND rowid>?)");
    let by_number = "SEARCH entries USING INTEGER PRIMARY KEY (rowid>?)".to_owned();
    let range = "entries_by_state (state=? AND kind=? AND rowid>?)";
    let both = direct(range);
    for (state, kind, reference, wanted) in [
        (false, false, false, Some(by_number)),
        (false, true, false, None),
        (true, false, false, None),
        (true, true, false, Some(both)),
        (false, false, true, Some(by_ref.clone())),
        (false, true, true, Some(by_ref.clone())),
        (true, false, true, Some(by_ref.clone())),
        (true, true, true, Some(by_ref)),
    ] {
        let filter = EntryFilter {
            state: state.then_some(StateName::Dead),
            kind: kind.then_some(Kind::Crawl),
            reference: reference.then(|| "ref".to_owned()),
        };
        let plan = plan(&raw, &selection(&filter));
        let Some(wanted) = wanted else {
            let ranges = if state { Kind::ALL.len() } else { StateName::ALL.len() };
            let covered = format!("SEARCH entries USING COVERING INDEX {range}");
            assert_eq!(plan.matches(&covered).count(), ranges, "{plan}");
            assert!(!plan.contains("SCAN entries") && !plan.contains("TEMP B-TREE"), "{plan}");
            continue;
        };
        assert_eq!(plan, wanted, "{filter:?}");
    }
}

/// A million rows are no reason to wait: every question has an index, and nothing is sorted.
#[tokio::test]
async fn every_question_is_answered_by_an_index() {
    let (test, _rows) = filled().await;
    let raw = stranger(&test.store);
    let runs = "SELECT json FROM intents WHERE";
    let due = "due_at IS NOT NULL AND due_at <= ?1 AND";
    for (sql, index) in [
        (
            format!(
                "SELECT json FROM entries WHERE {due} (due_at, rowid) > (?2, ?3) \
                 ORDER BY due_at, rowid LIMIT 9"
            ),
            "entries_by_due",
        ),
        (
            format!("{runs} {due} (due_at, id) > (?2, ?3) ORDER BY due_at, id LIMIT 9"),
            "intents_by_due",
        ),
        (
            format!("{runs} (run, position, id) > (?1, ?2, ?3) ORDER BY run, position, id"),
            "intents_by_run",
        ),
        (
            format!(
                "{runs} run = ?4 AND (run, position, id) > (?1, ?2, ?3) \
                 ORDER BY run, position, id"
            ),
            "intents_by_run",
        ),
        ("SELECT name, number FROM counts WHERE rows_of = ?1".to_owned(), "PRIMARY KEY"),
        ("SELECT 1 FROM entries WHERE state = ?1 AND kind = ?2".to_owned(), "entries_by_state"),
        ("SELECT 1 FROM intents WHERE state = 'open' AND kind = ?1".to_owned(), "intents_open"),
        (
            "SELECT rowid FROM entries WHERE expires_at <= ?1 ORDER BY expires_at".to_owned(),
            "entries_by_expiry",
        ),
        ("SELECT min(visible_at) FROM tasks".to_owned(), "tasks_by_visibility"),
        (
            "SELECT body FROM tasks WHERE visible_at <= ?1 ORDER BY visible_at, id".to_owned(),
            "tasks_by_visibility",
        ),
    ] {
        let plan = plan(&raw, &sql);
        assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{sql}: {plan}");
    }
}
