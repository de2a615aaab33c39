use std::time::Duration;

use domain::entry::{Cause, DeadReason, State};
use domain::job::{JobId, Kind};
use domain::limits::Limits;
use domain::time::after;

use super::*;
use crate::limits::ROW_BYTES_MAX;
use crate::testing::{TestStore, entry, entry_of, key, start, stranger, test_store};

const ABSENT: fn() -> Expected = || Expected::Absent(start());

fn dead(entry: &Entry, now: Timestamp) -> Entry {
    let state = State::Dead { reason: DeadReason::Gone, error: None, result: None };
    entry.settled(state, Cause::Work, now, &Limits::default())
}

#[tokio::test]
async fn a_row_is_read_as_it_was_written() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let row = entry("a");
    assert_eq!(store.load(&row.key).await.unwrap(), None);
    assert_eq!(Entries::write(&store, &row, ABSENT()).await.unwrap(), Written::Done);
    assert_eq!(store.load(&row.key).await.unwrap(), Some(row.clone()));
    let again = Entries::write(&store, &row, ABSENT()).await.unwrap();
    assert_eq!(again, Written::Conflict(Some(Box::new(row))));
}

#[tokio::test]
async fn a_write_needs_the_row_as_it_was_read() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let first = entry("a");
    let second = first.swept(start(), &Limits::default());
    let missing = Entries::write(&store, &second, Expected::As(first.seen())).await.unwrap();
    assert_eq!(missing, Written::Conflict(None));
    Entries::write(&store, &first, ABSENT()).await.unwrap();
    let mut wrong = [first.seen(); 3];
    wrong[0].state = domain::entry::StateName::Received;
    wrong[1].generation += 1;
    wrong[2].version = u64::MAX;
    for seen in wrong {
        let outcome = Entries::write(&store, &second, Expected::As(seen)).await.unwrap();
        assert_eq!(outcome, Written::Conflict(Some(Box::new(first.clone()))), "{seen:?}");
    }
    let outcome = Entries::write(&store, &second, Expected::As(first.seen())).await.unwrap();
    assert_eq!(outcome, Written::Done);
    assert_eq!(store.load(&first.key).await.unwrap(), Some(second));
}

/// DQ-05: a row that expired an hour ago and still exists counts as absent; its expiry is in
/// seconds.
#[tokio::test]
async fn an_expired_row_counts_as_absent() {
    let TestStore { store, clock, directory: _directory } = test_store();
    let gone = dead(&entry("a"), start());
    Entries::write(&store, &gone, ABSENT()).await.unwrap();
    let expires_at = gone.expires_at.unwrap();
    assert_eq!(expires_at, after(start(), Limits::default().retention).as_second());
    let before = Timestamp::from_second(expires_at - 1).unwrap();
    let fresh = entry("a");
    let outcome = Entries::write(&store, &fresh, Expected::Absent(before)).await.unwrap();
    assert_eq!(outcome, Written::Conflict(Some(Box::new(gone.clone()))));
    let hour_later = Timestamp::from_second(expires_at + 3_600).unwrap();
    assert_eq!(store.load(&gone.key).await.unwrap(), Some(gone));
    let outcome = Entries::write(&store, &fresh, Expected::Absent(hour_later)).await.unwrap();
    assert_eq!(outcome, Written::Done);
    assert_eq!(store.load(&fresh.key).await.unwrap(), Some(fresh));
    clock.advance(Limits::default().retention * 2);
    assert_eq!(store.remove_expired().await.unwrap(), 0);
}

#[tokio::test]
async fn expired_rows_are_removed() {
    let TestStore { store, clock, directory: _directory } = test_store();
    let (open, gone) = (entry("open"), dead(&entry("gone"), start()));
    Entries::write(&store, &open, ABSENT()).await.unwrap();
    Entries::write(&store, &gone, ABSENT()).await.unwrap();
    clock.advance(Limits::default().retention.saturating_sub(Duration::from_secs(1)));
    assert_eq!(store.remove_expired().await.unwrap(), 0);
    clock.advance(Duration::from_secs(1));
    assert_eq!(store.remove_expired().await.unwrap(), 1);
    assert_eq!(store.load(&gone.key).await.unwrap(), None);
    assert_eq!(store.load(&open.key).await.unwrap(), Some(open));
}

#[tokio::test]
async fn one_of_fifty_writers_wins() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let writers: Vec<_> = (0..50)
        .map(|number| {
            let store = store.clone();
            let mut row = entry("a");
            row.token = Some(number.to_string());
            tokio::spawn(
                async move { (Entries::write(&store, &row, ABSENT()).await.unwrap(), row) },
            )
        })
        .collect();
    let mut outcomes = Vec::new();
    for writer in writers {
        outcomes.push(writer.await.unwrap());
    }
    let winners: Vec<_> =
        outcomes.iter().filter(|(written, _)| *written == Written::Done).collect();
    assert_eq!(winners.len(), 1);
    let winner = &winners[0].1;
    let conflict = Written::Conflict(Some(Box::new(winner.clone())));
    assert_eq!(outcomes.iter().filter(|(written, _)| *written == conflict).count(), 49);
    assert_eq!(store.load(&winner.key).await.unwrap().as_ref(), Some(winner));
}

/// SQ-03: after a duplicate another process writes at once, without waiting for a lock.
#[tokio::test]
async fn a_duplicate_leaves_no_lock() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let row = entry("a");
    assert_eq!(Entries::write(&store, &row, ABSENT()).await.unwrap(), Written::Done);
    let duplicate = Entries::write(&store, &row, ABSENT()).await.unwrap();
    assert_eq!(duplicate, Written::Conflict(Some(Box::new(row))));
    let other = stranger(&store);
    other.busy_timeout(Duration::ZERO).unwrap();
    assert_eq!(other.execute("DELETE FROM entries", []).unwrap(), 1);
}

/// A row of exactly 400 kB is kept, one byte more is refused.
#[tokio::test]
async fn the_size_limit_is_exact() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let mut row = entry("a");
    row.token = Some(String::new());
    let bare = serde_json::to_string(&row).unwrap().len();
    row.token = Some("x".repeat(ROW_BYTES_MAX - bare));
    assert_eq!(Entries::write(&store, &row, ABSENT()).await.unwrap(), Written::Done);
    assert_eq!(store.load(&row.key).await.unwrap(), Some(row.clone()));
    row.token = Some("x".repeat(ROW_BYTES_MAX - bare + 1));
    row.version += 1;
    let error = Entries::write(&store, &row, ABSENT()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(store.load(&row.key).await.unwrap().unwrap().version, 1);
}

/// PL-02, PL-08: ids that look like numbers, differ in case alone or hold quotes are rows of
/// their own, and so is one id under another kind.
#[tokio::test]
async fn odd_keys_stay_apart() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let ids = ["42", "042", "4.2e1", "true", "null", "a", "A", "';--", "\"", "%", "_", "\\", "..."];
    let mut rows = Vec::new();
    for id in ids.into_iter().chain([&*"~".repeat(128)]) {
        for kind in Kind::ALL {
            rows.push(entry_of(JobKey::new(kind, JobId::parse(id).unwrap())));
        }
    }
    for row in &rows {
        assert_eq!(Entries::write(&store, row, ABSENT()).await.unwrap(), Written::Done);
    }
    for row in &rows {
        assert_eq!(store.load(&row.key).await.unwrap().as_ref(), Some(row));
    }
}

#[tokio::test]
async fn due_rows_come_oldest_first_in_pages() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let mut wanted = Vec::new();
    for number in 0..10_u32 {
        let mut row = entry(&number.to_string());
        // Pairs of rows are due at one instant.
        row.due_at = Some(after(start(), Duration::from_secs(u64::from(20 - number / 2))));
        Entries::write(&store, &row, ABSENT()).await.unwrap();
        wanted.push(row);
    }
    let mut ahead = entry("ahead");
    ahead.due_at = Some(after(start(), Duration::from_micros(20_000_001)));
    Entries::write(&store, &ahead, ABSENT()).await.unwrap();
    Entries::write(&store, &dead(&entry("dead"), start()), ABSENT()).await.unwrap();
    // Those of one instant come as they arrived.
    wanted.sort_by_key(|row| row.due_at);
    let now = after(start(), Duration::from_secs(20));
    let mut found = Vec::new();
    let mut from = None;
    for pages_left in (0..4).rev() {
        let page = store.list_due(now, from.as_ref(), 3).await.unwrap();
        assert_eq!(page.next.is_some(), pages_left > 0);
        found.extend(page.items);
        from = page.next;
    }
    assert_eq!(found, wanted);
}

/// A listing goes on past rows that do not decode; a read names the row and does not repeat it.
#[tokio::test]
async fn a_row_that_does_not_decode_is_named() {
    let TestStore { store, directory: _directory, .. } = test_store();
    for id in ["a", "b", "c"] {
        Entries::write(&store, &entry(id), ABSENT()).await.unwrap();
    }
    let raw = stranger(&store);
    raw.execute("UPDATE entries SET json = '{\"private\":1}' WHERE job_id = 'a'", []).unwrap();
    raw.execute("UPDATE entries SET json = replace(json, '\"b\"', '\"z\"')", []).unwrap();
    for id in ["a", "b"] {
        let error = store.load(&key(id)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt);
        let text = format!("{error:?}");
        assert!(text.contains(&format!("entry extract {id}")), "{text}");
        assert!(!text.contains("private"), "{text}");
        let lost = Entries::write(&store, &entry(id), ABSENT()).await.unwrap_err();
        assert_eq!(lost.kind, ErrorKind::Corrupt);
    }
    let page = store.list_due(Timestamp::MAX, None, 10).await.unwrap();
    assert_eq!((page.unreadable.len(), page.items.len()), (2, 1));
}

#[tokio::test]
async fn a_strange_cursor_is_refused() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let cursor = Cursor("[1]".to_owned());
    let error = store.list_due(start(), Some(&cursor), 1).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    let error = store.list_due_intents(start(), Some(&cursor), 1).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
}
