//! [`domain::ports::Inspection`].

use std::collections::{BTreeMap, BTreeSet};

use domain::entry::{DeadReason, Entry, StateName};
use domain::intent::Intent;
use domain::job::Kind;
use domain::limits::Limits;
use domain::ports::{EntryFilter, Expected, Written};
use domain::time::after;

use super::LedgerSubject;
use super::samples::{
    ODD_IDS, accepted, dead, extract_request, full, intent, key, key_of, one_per_state, open,
    plain_intent, put, put_all, put_intent, put_over, start,
};

/// Pages in which a test reads at most.
const PAGES_MAX: usize = 100;

async fn all_entries(subject: &LedgerSubject, filter: &EntryFilter, limit: u32) -> Vec<Entry> {
    let mut rows = Vec::new();
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let page = subject.ledger.list_entries(filter, after.as_ref(), limit).await.unwrap();
        assert!(page.items.len() <= usize::try_from(limit).unwrap());
        assert_eq!(page.unreadable, [""; 0]);
        rows.extend(page.items);
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
    panic!("the pages never end");
}

async fn all_intents(subject: &LedgerSubject, run: Option<&str>, limit: u32) -> Vec<Intent> {
    let mut rows = Vec::new();
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let page = subject.ledger.list_intents(run, after.as_ref(), limit).await.unwrap();
        assert!(page.items.len() <= usize::try_from(limit).unwrap());
        assert_eq!(page.unreadable, [""; 0]);
        rows.extend(page.items);
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
    panic!("the pages never end");
}

/// A new ledger holds nothing.
pub async fn an_empty_ledger_lists_and_counts_nothing(subject: &LedgerSubject) {
    assert!(all_entries(subject, &EntryFilter::default(), 10).await.is_empty());
    assert!(all_intents(subject, None, 10).await.is_empty());
    assert!(subject.ledger.count_entries().await.unwrap().values().all(|count| *count == 0));
    assert!(subject.ledger.count_intents().await.unwrap().values().all(|count| *count == 0));
}

/// Rows of each kind come in the order of their ids' bytes, whatever the order of writing.
pub async fn rows_are_listed_in_key_order(subject: &LedgerSubject) {
    let mut rows = Vec::new();
    for id in ODD_IDS {
        for kind in [Kind::Crawl, Kind::Extract] {
            rows.push(open(key_of(kind, id), 5));
        }
    }
    put_all(&*subject.ledger, &rows).await;
    let mut listed = all_entries(subject, &EntryFilter::default(), 7).await;
    if subject.caps.lists_in_key_order {
        for kind in Kind::ALL {
            let of_kind: Vec<_> = listed.iter().filter(|row| row.key.kind == kind).collect();
            assert!(of_kind.is_sorted_by_key(|row| row.key.job_id.as_str()), "{kind}");
        }
    }
    rows.sort_by(|left, right| left.key.cmp(&right.key));
    listed.sort_by(|left, right| left.key.cmp(&right.key));
    assert_eq!(listed, rows);
}

/// Pages hold each row once: at the limit and one over it.
pub async fn pages_hold_each_row_once(subject: &LedgerSubject) {
    let rows: Vec<_> = (10..20).map(|number| open(key(&format!("row-{number}")), 5)).collect();
    put_all(&*subject.ledger, &rows).await;
    for limit in [1, 3, 9, 10, 11] {
        let mut listed = all_entries(subject, &EntryFilter::default(), limit).await;
        listed.sort_by(|left, right| left.key.cmp(&right.key));
        assert_eq!(listed, rows, "pages of {limit}");
    }
}

/// A filter lists the rows of a state, of a kind, and of both, over all pages.
pub async fn a_filter_lists_what_it_names(subject: &LedgerSubject) {
    let mut rows = one_per_state();
    for kind in [Kind::Batch, Kind::Crawl] {
        rows.extend(one_per_state().into_iter().map(|mut row| {
            row.key.kind = kind;
            row
        }));
    }
    put_all(&*subject.ledger, &rows).await;
    let states = StateName::ALL.into_iter().map(Some).chain([None]);
    for state in states {
        for kind in Kind::ALL.into_iter().map(Some).chain([None]) {
            let mut expected: Vec<_> = rows
                .iter()
                .filter(|row| state.is_none_or(|state| row.state.name() == state))
                .filter(|row| kind.is_none_or(|kind| row.key.kind == kind))
                .cloned()
                .collect();
            let filter = EntryFilter { state, kind, reference: None };
            let mut listed = all_entries(subject, &filter, 2).await;
            expected.sort_by(|left, right| left.key.cmp(&right.key));
            listed.sort_by(|left, right| left.key.cmp(&right.key));
            assert_eq!(listed, expected, "{state:?} {kind:?}");
        }
    }
}

/// Rows are counted by state, and dead ones by reason too.
pub async fn rows_are_counted_by_state_and_reason(subject: &LedgerSubject) {
    let mut expected = BTreeMap::new();
    for (name, row) in [
        ("a", open(key("a"), 5)),
        ("b", open(key("b"), 5)),
        ("c", dead(&open(key("c"), 5), DeadReason::Gone)),
        ("d", dead(&open(key("d"), 5), DeadReason::Gone)),
        ("e", dead(&open(key("e"), 5), DeadReason::TooLarge)),
    ] {
        assert_eq!(row.key.job_id.as_str(), name);
        put(&*subject.ledger, &row).await;
    }
    for (name, count) in [("expected", 2), ("dead", 3), ("dead:gone", 2), ("dead:too_large", 1)] {
        expected.insert(name.to_owned(), count);
    }
    let mut counted = subject.ledger.count_entries().await.unwrap();
    counted.retain(|_, count| *count > 0);
    assert_eq!(counted, expected);
}

/// A ref lists the rows that have it, of every kind and state, and with other filters those of
/// them that fit; a ref that nobody has lists nothing.
pub async fn a_ref_lists_the_rows_that_have_it(subject: &LedgerSubject) {
    let mut rows = Vec::new();
    for (id, reference) in [("a", "ours"), ("b", "ours"), ("c", "other"), ("d", "Ours")] {
        for kind in [Kind::Extract, Kind::Crawl] {
            let mut row = full(key_of(kind, id));
            row.link.as_mut().unwrap().reference = Some(reference.to_owned());
            rows.push(row);
        }
    }
    rows.push(open(key("none"), 5));
    let mut settled = dead(&rows[0], DeadReason::Gone);
    settled.key = key("e");
    rows.push(settled);
    put_all(&*subject.ledger, &rows).await;
    // A link may come later than the row.
    let late = rows[8].linked(rows[0].link.as_ref().unwrap()).unwrap();
    put_over(&*subject.ledger, &rows[8], &late).await;
    rows[8] = late;
    for reference in ["ours", "other", "Ours", "nobody's"] {
        for state in [None, Some(StateName::Dead), Some(StateName::Expected)] {
            for kind in [None, Some(Kind::Crawl)] {
                let filter = EntryFilter { state, kind, reference: Some(reference.to_owned()) };
                let has = |row: &Entry| {
                    row.link.as_ref().and_then(|link| link.reference.as_deref()) == Some(reference)
                };
                let mut expected: Vec<_> = rows
                    .iter()
                    .filter(|row| has(row))
                    .filter(|row| state.is_none_or(|state| row.state.name() == state))
                    .filter(|row| kind.is_none_or(|kind| row.key.kind == kind))
                    .cloned()
                    .collect();
                let mut listed = all_entries(subject, &filter, 2).await;
                expected.sort_by(|left, right| left.key.cmp(&right.key));
                listed.sort_by(|left, right| left.key.cmp(&right.key));
                assert_eq!(listed, expected, "{filter:?}");
            }
        }
    }
}

async fn counted(subject: &LedgerSubject) -> BTreeMap<String, u64> {
    let mut counted = subject.ledger.count_entries().await.unwrap();
    counted.retain(|_, count| *count > 0);
    counted
}

fn counts<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
    counts.map(|(name, count)| (name.to_owned(), count)).into()
}

/// A row is counted once, where it is: through death, redrive and another death, not where a
/// write was refused, and also when a new row takes the place of an expired one.
pub async fn counts_follow_a_row(subject: &LedgerSubject) {
    let (ledger, limits) = (&*subject.ledger, Limits::default());
    let first = open(key("a"), 5);
    put(ledger, &first).await;
    let gone = dead(&first, DeadReason::Gone);
    put_over(ledger, &first, &gone).await;
    let refused = ledger.write(&gone, Expected::As(first.seen())).await.unwrap();
    assert!(matches!(refused, Written::Conflict(_)), "{refused:?}");
    assert_eq!(counted(subject).await, counts([("dead", 1), ("dead:gone", 1)]));
    let again = gone.redriven(None, start(), &limits).unwrap();
    put_over(ledger, &gone, &again).await;
    assert_eq!(counted(subject).await, counts([("received", 1)]));
    let failed = dead(&again, DeadReason::Failed);
    put_over(ledger, &again, &failed).await;
    assert_eq!(counted(subject).await, counts([("dead", 1), ("dead:failed", 1)]));
    let expired = after(start(), limits.retention.saturating_mul(2));
    let written = ledger.write(&first, Expected::Absent(expired)).await.unwrap();
    assert_eq!(written, Written::Done);
    assert_eq!(counted(subject).await, counts([("expected", 1)]));
}

/// Intents are counted by state.
pub async fn intents_are_counted_by_state(subject: &LedgerSubject) {
    for position in 0..3 {
        put_intent(&*subject.ledger, &plain_intent("r", position)).await;
    }
    put_intent(&*subject.ledger, &accepted(&plain_intent("r", 3))).await;
    let mut counted = subject.ledger.count_intents().await.unwrap();
    counted.retain(|_, count| *count > 0);
    let expected = [("accepted".to_owned(), 1), ("open".to_owned(), 3)];
    assert_eq!(counted, BTreeMap::from(expected));
}

/// Intents come in the order of run and position, as numbers, and each once.
pub async fn intents_are_listed_by_run_and_position(subject: &LedgerSubject) {
    let mut rows = Vec::new();
    for position in [10, 2, 1, 9, 100, 0] {
        for run in ["b", "a", "B"] {
            rows.push(plain_intent(run, position));
        }
    }
    // Two requests may share a position when an input file was changed.
    rows.push(intent("a", 9, extract_request("https://example.com/other")));
    for row in &rows {
        put_intent(&*subject.ledger, row).await;
    }
    rows.sort_by(|left, right| {
        (&left.run, left.position, &left.id).cmp(&(&right.run, right.position, &right.id))
    });
    for limit in [1, 4, 18, 19, 20] {
        for run in [None, Some("a"), Some("b"), Some("c")] {
            let mut listed = all_intents(subject, run, limit).await;
            let place = |row: &Intent| (row.run.clone(), row.position);
            assert!(listed.is_sorted_by_key(place), "{run:?}, pages of {limit}");
            listed.sort_by_key(|row| (row.run.clone(), row.position, row.id.clone()));
            let of_run = |row: &&Intent| run.is_none_or(|run| row.run == run);
            let expected: Vec<_> = rows.iter().filter(of_run).cloned().collect();
            assert_eq!(listed, expected, "{run:?}, pages of {limit}");
        }
    }
}

/// A row that does not decode is named, and hides no other, whatever is asked for.
pub async fn a_listed_row_that_does_not_decode_hides_no_other(subject: &LedgerSubject) {
    let (Some(spoil), Some(spoil_intent)) = (&subject.spoil_entry, &subject.spoil_intent) else {
        return;
    };
    let ledger = &subject.ledger;
    for name in ["first", "spoilt-row", "last"] {
        put(&**ledger, &open(key(name), 5)).await;
    }
    spoil(&key("spoilt-row"));
    let all = EntryFilter::default();
    let by_state = EntryFilter { state: Some(StateName::Expected), ..all.clone() };
    let by_kind = EntryFilter { kind: Some(Kind::Extract), ..all.clone() };
    for filter in [all, by_state, by_kind] {
        let page = ledger.list_entries(&filter, None, 10).await.unwrap();
        let found: BTreeSet<_> = page.items.iter().map(|row| row.key.job_id.as_str()).collect();
        assert_eq!(found, BTreeSet::from(["first", "last"]), "{filter:?}");
        only_names(&page.unreadable, "spoilt-row");
    }
    let intents = [plain_intent("r", 0), plain_intent("r", 1)];
    for intent in &intents {
        put_intent(&**ledger, intent).await;
    }
    spoil_intent(&intents[0].id);
    for run in [None, Some("r")] {
        let page = ledger.list_intents(run, None, 10).await.unwrap();
        assert_eq!(page.items, intents[1..], "{run:?}");
        only_names(&page.unreadable, &intents[0].id);
    }
    let counted = ledger.count_entries().await.unwrap();
    assert_eq!(counted.get("expected"), Some(&3), "a spoilt row is counted all the same");
}

/// One row is named, by its key.
pub(super) fn only_names(unreadable: &[String], key: &str) {
    let [row] = unreadable else { panic!("{unreadable:?}") };
    assert!(row.contains(key), "{row}");
}
