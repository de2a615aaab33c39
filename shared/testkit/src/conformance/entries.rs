//! [`domain::ports::Entries`].

use std::time::Duration;

use domain::entry::{DeadReason, Entry, Seen, StateName};
use domain::job::Kind;
use domain::ports::{ErrorKind, Expected, Loaded, Written};
use domain::time::after;
use futures_util::future::join_all;

use super::LedgerSubject;
use super::samples::{
    ODD_IDS, dead, full, key, key_of, later, one_per_state, open, put, put_all, start,
};

/// A row that nobody wrote is absent, and nothing can be written over it as seen.
pub async fn a_row_that_nobody_wrote_is_absent(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    assert_eq!(ledger.load(&key("a")).await.unwrap(), None);
    let row = open(key("a"), 5);
    let next = row.unsent();
    let written = ledger.write(&next, Expected::As(row.seen())).await.unwrap();
    assert_eq!(written, Written::Conflict(None));
    assert_eq!(ledger.load(&key("a")).await.unwrap(), None);
}

/// Every field and every state comes back as it was written.
pub async fn a_row_comes_back_as_it_was_written(subject: &LedgerSubject) {
    let mut rows = one_per_state();
    rows.push(full(key("full")));
    put_all(&*subject.ledger, &rows).await;
    for row in rows {
        assert_eq!(subject.ledger.load(&row.key).await.unwrap(), Some(row));
    }
}

/// A second identical first write finds the first one's row.
pub async fn a_repeated_first_write_finds_the_row(subject: &LedgerSubject) {
    let row = open(key("a"), 5);
    put(&*subject.ledger, &row).await;
    for _ in 0..2 {
        let written = subject.ledger.write(&row, Expected::Absent(start())).await.unwrap();
        assert_eq!(written, Written::Conflict(Some(Box::new(row.clone()))));
    }
}

/// A write over the row as it was read replaces it whole; repeated, it finds itself.
pub async fn a_write_over_the_row_as_read_replaces_it(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    let row = full(key("a"));
    put(&**ledger, &row).await;
    let next = dead(&row, DeadReason::Gone);
    let expected = Expected::As(row.seen());
    assert_eq!(ledger.write(&next, expected).await.unwrap(), Written::Done);
    assert_eq!(ledger.load(&row.key).await.unwrap(), Some(next.clone()));
    let again = ledger.write(&next, expected).await.unwrap();
    assert_eq!(again, Written::Conflict(Some(Box::new(next))));
}

/// State, generation and version each count: a write that names another one changes nothing.
pub async fn a_write_over_another_row_changes_nothing(subject: &LedgerSubject) {
    let row = full(key("a"));
    put(&*subject.ledger, &row).await;
    let Seen { state, generation, version } = row.seen();
    for seen in [
        Seen { state: StateName::Received, generation, version },
        Seen { state, generation: generation - 1, version },
        Seen { state, generation, version: version - 1 },
        Seen { state, generation, version: version + 1 },
    ] {
        let next = Entry { version: version + 2, token: None, ..row.clone() };
        let written = subject.ledger.write(&next, Expected::As(seen)).await.unwrap();
        assert_eq!(written, Written::Conflict(Some(Box::new(row.clone()))), "{seen:?}");
        assert_eq!(subject.ledger.load(&row.key).await.unwrap(), Some(row.clone()));
    }
}

/// Of two callers that read the same row, the one that writes later learns what the other wrote,
/// and can go on from there.
pub async fn the_loser_of_a_race_learns_the_row_as_it_is(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    put(&**ledger, &open(key("a"), 5)).await;
    let first = ledger.load(&key("a")).await.unwrap().unwrap();
    let second = ledger.load(&key("a")).await.unwrap().unwrap();
    let ours = first.swept(later(1), &domain::limits::Limits::default());
    assert_eq!(ledger.write(&ours, Expected::As(first.seen())).await.unwrap(), Written::Done);
    let theirs = dead(&second, DeadReason::Failed);
    let written = ledger.write(&theirs, Expected::As(second.seen())).await.unwrap();
    let Written::Conflict(Some(found)) = written else { panic!("expected a conflict") };
    assert_eq!(*found, ours);
    let anew = dead(&found, DeadReason::Failed);
    assert_eq!(ledger.write(&anew, Expected::As(found.seen())).await.unwrap(), Written::Done);
    assert_eq!(ledger.load(&key("a")).await.unwrap(), Some(anew));
}

/// Of many writes at a time one succeeds, the first of a row as well as a later one.
pub async fn one_of_many_writes_at_a_time_succeeds(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    let row = open(key("a"), 5);
    for expected in [Expected::Absent(start()), Expected::As(row.seen())] {
        let rows: Vec<_> = (0..20)
            .map(|number| Entry {
                version: if matches!(expected, Expected::As(_)) { 2 } else { 1 },
                token: Some(format!("writer {number}")),
                ..row.clone()
            })
            .collect();
        let written = join_all(rows.iter().map(|row| ledger.write(row, expected))).await;
        let written: Vec<_> = written.into_iter().map(Result::unwrap).collect();
        let winners: Vec<_> =
            rows.iter().zip(&written).filter(|(_, written)| **written == Written::Done).collect();
        assert_eq!(winners.len(), 1, "{expected:?}");
        let won = winners[0].0;
        assert_eq!(ledger.load(&row.key).await.unwrap().as_ref(), Some(won));
        for written in written.iter().filter(|written| **written != Written::Done) {
            assert_eq!(*written, Written::Conflict(Some(Box::new(won.clone()))));
        }
    }
}

/// A row that expired counts as absent for a first write, and for nothing else: to the second.
pub async fn an_expired_row_is_there_and_counts_as_absent(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    let row = dead(&open(key("a"), 5), DeadReason::Failed);
    put(&**ledger, &row).await;
    let expires_at = after(start(), domain::limits::Limits::default().retention);
    assert_eq!(row.expires_at, Some(expires_at.as_second()));
    let fresh = open(key("a"), 9);
    let early = domain::time::before(expires_at, Duration::from_secs(1));
    let written = ledger.write(&fresh, Expected::Absent(early)).await.unwrap();
    assert_eq!(written, Written::Conflict(Some(Box::new(row.clone()))));
    assert_eq!(ledger.load(&row.key).await.unwrap(), Some(row.clone()), "expired, not removed");
    assert_eq!(ledger.write(&fresh, Expected::Absent(expires_at)).await.unwrap(), Written::Done);
    assert_eq!(ledger.load(&row.key).await.unwrap(), Some(fresh.clone()), "replaced whole");
    let written = ledger.write(&row, Expected::Absent(later(1 << 40))).await.unwrap();
    assert_eq!(written, Written::Conflict(Some(Box::new(fresh))), "open rows never expire");
}

/// Ids that differ in a byte, and kinds, are rows of their own.
pub async fn odd_ids_are_rows_of_their_own(subject: &LedgerSubject) {
    let longest = "x".repeat(128);
    let quotes = "\"".repeat(128);
    let mut rows = Vec::new();
    for kind in Kind::ALL {
        for id in ODD_IDS.into_iter().chain([longest.as_str(), quotes.as_str()]) {
            let number = u64::try_from(rows.len()).unwrap();
            rows.push(open(key_of(kind, id), number));
        }
    }
    put_all(&*subject.ledger, &rows).await;
    for row in rows {
        assert_eq!(subject.ledger.load(&row.key).await.unwrap(), Some(row));
    }
}

/// DQ-11: the largest row is kept; one byte more is refused, and changes nothing.
pub async fn the_largest_row_is_kept_and_one_byte_more_is_refused(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    let mut row = open(key("a"), 5);
    row.token = Some(String::new());
    let bare = serde_json_len(&row);
    // Two bytes a character: bytes are counted, not characters.
    let room = subject.caps.row_bytes_max - bare;
    row.token = Some("\u{e9}".repeat(room / 2) + &"x".repeat(room % 2));
    put(&**ledger, &row).await;
    assert_eq!(ledger.load(&row.key).await.unwrap().as_ref(), Some(&row));
    let mut over = Entry { version: 2, ..row.clone() };
    over.token = over.token.map(|token| token + "x");
    let error = ledger.write(&over, Expected::As(row.seen())).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    over.key = key("b");
    let error = ledger.write(&over, Expected::Absent(start())).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(ledger.load(&row.key).await.unwrap(), Some(row));
    assert_eq!(ledger.load(&over.key).await.unwrap(), None);
}

fn serde_json_len(row: &Entry) -> usize {
    serde_json::to_string(row).unwrap().len()
}

/// A row that does not decode is an error that names its key, not an absent row, and is not
/// written over.
pub async fn a_row_that_does_not_decode_is_named(subject: &LedgerSubject) {
    let Some(spoil) = &subject.spoil_entry else { return };
    let ledger = &subject.ledger;
    let row = open(key("spoilt-row"), 5);
    put(&**ledger, &row).await;
    put(&**ledger, &open(key("sound"), 5)).await;
    spoil(&row.key);
    for error in [
        ledger.load(&row.key).await.expect_err("a spoilt row"),
        ledger.write(&row, Expected::Absent(start())).await.expect_err("a spoilt row"),
    ] {
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(format!("{error:?}").contains("spoilt-row"), "{error:?}");
    }
    assert!(ledger.load(&key("sound")).await.unwrap().is_some());
}

/// Many rows are read at once: those that are there, each once, whatever their kind and state; an
/// expired one that still exists is among them.
pub async fn many_rows_are_read_at_once(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    assert_eq!(ledger.load_many(&[]).await.unwrap(), Loaded::default());
    let mut rows = one_per_state();
    rows.push(full(key_of(Kind::Batch, "full")));
    rows.extend((0..120).map(|number| open(key(&format!("many-{number:03}")), number)));
    put_all(&**ledger, &rows).await;
    let mut keys: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();
    keys.push(key("many-000"));
    keys.push(key("nobody-wrote-this"));
    keys.push(key_of(Kind::Crawl, "many-000"));
    let mut loaded = ledger.load_many(&keys).await.unwrap();
    assert_eq!(loaded.unreadable, []);
    loaded.rows.sort_by(|a, b| a.key.cmp(&b.key));
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(loaded.rows, rows);
}

/// SC-03: one row that does not decode is named, and the others are read all the same.
pub async fn of_many_rows_one_that_does_not_decode_is_named(subject: &LedgerSubject) {
    let Some(spoil) = &subject.spoil_entry else { return };
    let (ledger, sound) = (&subject.ledger, open(key("sound"), 5));
    put(&**ledger, &open(key("spoilt-row"), 5)).await;
    put(&**ledger, &sound).await;
    spoil(&key("spoilt-row"));
    let loaded = ledger.load_many(&[key("spoilt-row"), key("sound"), key("none")]).await.unwrap();
    assert_eq!((loaded.rows, loaded.unreadable), (vec![sound], vec![key("spoilt-row")]));
}
