//! [`domain::ports::Due`].

use domain::entry::{DeadReason, Entry};
use domain::intent::Intent;
use domain::job::Kind;
use domain::ports::{Cursor, ErrorKind, Expected, IntentExpected, IntentWritten, Written};
use domain::time::Timestamp;

use super::LedgerSubject;
use super::inspection::only_names;
use super::samples::{
    accepted, dead, key, key_of, later, one_per_state, open, plain_intent, put, put_all,
    put_intent, start,
};

/// Pages in which a test reads at most.
const PAGES_MAX: usize = 100;

/// Reads all due rows in pages of `limit`.
async fn all_due(subject: &LedgerSubject, now: Timestamp, limit: u32) -> Vec<Entry> {
    let mut rows = Vec::new();
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let page = subject.ledger.list_due(now, after.as_ref(), limit).await.unwrap();
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

async fn all_due_intents(subject: &LedgerSubject, now: Timestamp, limit: u32) -> Vec<Intent> {
    let mut rows = Vec::new();
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let page = subject.ledger.list_due_intents(now, after.as_ref(), limit).await.unwrap();
        assert!(page.items.len() <= usize::try_from(limit).unwrap());
        rows.extend(page.items);
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
    panic!("the pages never end");
}

/// Rows are due from their very instant on, oldest first, whatever the order of writing.
pub async fn rows_are_due_oldest_first(subject: &LedgerSubject) {
    assert!(all_due(subject, later(1 << 40), 10).await.is_empty());
    let ages = [30, 10, 20, 40];
    for due in ages {
        put(&*subject.ledger, &open(key(&format!("due-{due}")), due)).await;
    }
    for (now, expected) in
        [(9, vec![]), (10, vec![10]), (29, vec![10, 20]), (99, vec![10, 20, 30, 40])]
    {
        let rows = all_due(subject, later(now), 10).await;
        let expected: Vec<_> =
            expected.into_iter().map(|due| open(key(&format!("due-{due}")), due)).collect();
        assert_eq!(rows, expected, "after {now} s");
    }
}

/// Open rows are listed in all their states; terminal ones never.
pub async fn terminal_rows_are_never_due(subject: &LedgerSubject) {
    let rows = one_per_state();
    put_all(&*subject.ledger, &rows).await;
    let due = all_due(subject, later(1 << 40), 10).await;
    assert_eq!(due.len(), 3);
    for row in rows {
        assert_eq!(due.contains(&row), !row.state.is_terminal(), "{}", row.key);
    }
}

/// A row that is written again is due at its new time alone, or not any more.
pub async fn a_rewritten_row_is_due_at_its_new_time(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    let first = open(key("a"), 10);
    put(&**ledger, &first).await;
    let mut second = first.unsent();
    second.due_at = Some(later(50));
    let written = ledger.write(&second, Expected::As(first.seen())).await.unwrap();
    assert_eq!(written, Written::Done);
    assert!(all_due(subject, later(49), 10).await.is_empty());
    assert_eq!(all_due(subject, later(50), 10).await, [second.clone()]);
    let third = dead(&second, DeadReason::Failed);
    let written = ledger.write(&third, Expected::As(second.seen())).await.unwrap();
    assert_eq!(written, Written::Done);
    assert!(all_due(subject, later(1 << 40), 10).await.is_empty());
}

/// Pages hold each row once: at the limit, one over it, and where many rows are due at once.
pub async fn pages_hold_each_due_row_once(subject: &LedgerSubject) {
    let mut keys = Vec::new();
    for number in 0_u64..13 {
        let kind = Kind::ALL[usize::try_from(number % 3).unwrap()];
        let row = open(key_of(kind, &format!("row-{number}")), number / 5);
        put(&*subject.ledger, &row).await;
        keys.push(row.key);
    }
    keys.sort();
    for limit in [1, 3, 6, 12, 13, 14] {
        let rows = all_due(subject, later(99), limit).await;
        assert!(rows.is_sorted_by_key(|row| row.due_at), "pages of {limit}");
        let mut found: Vec<_> = rows.into_iter().map(|row| row.key).collect();
        found.sort();
        assert_eq!(found, keys, "pages of {limit}");
    }
}

/// A row that does not decode is named and hides no other.
pub async fn a_due_row_that_does_not_decode_is_named(subject: &LedgerSubject) {
    let (Some(spoil), Some(spoil_intent)) = (&subject.spoil_entry, &subject.spoil_intent) else {
        return;
    };
    for (name, due) in [("first", 1), ("spoilt", 2), ("last", 3)] {
        put(&*subject.ledger, &open(key(name), due)).await;
    }
    spoil(&key("spoilt"));
    let page = subject.ledger.list_due(later(9), None, 10).await.unwrap();
    let found: Vec<_> = page.items.iter().map(|row| row.key.job_id.as_str()).collect();
    assert_eq!((found, page.next), (vec!["first", "last"], None));
    only_names(&page.unreadable, "spoilt");
    let intents = [plain_intent("r", 0), plain_intent("r", 1)];
    for intent in &intents {
        put_intent(&*subject.ledger, intent).await;
    }
    spoil_intent(&intents[0].id);
    let page = subject.ledger.list_due_intents(later(1 << 40), None, 10).await.unwrap();
    assert_eq!(page.items, intents[1..]);
    only_names(&page.unreadable, &intents[0].id);
}

/// Open intents are due from their very instant on, oldest first; others never.
pub async fn open_intents_are_due_oldest_first(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    let mut intents = Vec::new();
    for (position, due) in [(0, 30), (1, 10), (2, 20)] {
        let intent = plain_intent("r", position).put_off(later(due));
        put_intent(&**ledger, &intent).await;
        intents.push(intent);
    }
    intents.sort_by_key(|intent| intent.due_at);
    assert!(all_due_intents(subject, later(9), 10).await.is_empty());
    assert_eq!(all_due_intents(subject, later(20), 10).await, intents[..2]);
    let closed = accepted(&intents[0]);
    let expected = IntentExpected::Version(intents[0].version);
    let written = ledger.write_intent(&closed, expected).await.unwrap();
    assert_eq!(written, IntentWritten::Done);
    assert_eq!(all_due_intents(subject, later(99), 10).await, intents[1..]);
}

/// Pages hold each open intent once.
pub async fn pages_hold_each_due_intent_once(subject: &LedgerSubject) {
    let mut ids = Vec::new();
    for position in 0..7 {
        let intent = plain_intent("r", position).put_off(later(position / 3));
        put_intent(&*subject.ledger, &intent).await;
        ids.push(intent.id);
    }
    ids.sort();
    for limit in [1, 2, 6, 7, 8] {
        let found = all_due_intents(subject, later(99), limit).await;
        let mut found: Vec<_> = found.into_iter().map(|intent| intent.id).collect();
        found.sort();
        assert_eq!(found, ids, "pages of {limit}");
    }
}

/// A cursor that this ledger did not make is refused, not guessed at.
pub async fn a_foreign_cursor_is_refused(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    for text in ["", "0", "x", "[]", "{\"a\":1}", "'"] {
        let cursor = Some(Cursor(text.to_owned()));
        let error = ledger.list_due(start(), cursor.as_ref(), 1).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{text}");
        let error = ledger.list_due_intents(start(), cursor.as_ref(), 1).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{text}");
        let filter = domain::ports::EntryFilter::default();
        let error = ledger.list_entries(&filter, cursor.as_ref(), 1).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{text}");
        let error = ledger.list_intents(None, cursor.as_ref(), 1).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{text}");
    }
}
