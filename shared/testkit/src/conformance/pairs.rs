//! [`domain::ports::Pairs`].

use domain::entry::{DeadReason, Entry};
use domain::job::Kind;
use domain::ports::{ErrorKind, Expected, Met, RowWrite, WrittenBoth};
use futures_util::future::join_all;

use super::LedgerSubject;
use super::samples::{dead, full, key, key_of, later, open, put, put_over, start};

/// A row that is to be written where none is.
fn new(entry: &Entry) -> RowWrite<'_> {
    RowWrite { entry, expected: Expected::Absent(start()) }
}

/// A row that is to be written over another.
fn over<'a>(before: &Entry, entry: &'a Entry) -> RowWrite<'a> {
    RowWrite { entry, expected: Expected::As(before.seen()) }
}

fn other(entry: &Entry) -> Met {
    Met::Other(Some(Box::new(entry.clone())))
}

async fn write(subject: &LedgerSubject, rows: [RowWrite<'_>; 2]) -> WrittenBoth {
    subject.ledger.write_both(rows).await.unwrap()
}

async fn load(subject: &LedgerSubject, entry: &Entry) -> Option<Entry> {
    subject.ledger.load(&entry.key).await.unwrap()
}

/// One over another and one where none is, either way round; they are found by whatever finds rows
/// that were written alone.
pub async fn two_rows_come_back_as_they_were_written(subject: &LedgerSubject) {
    let before = full(key_of(Kind::Batch, "a"));
    put(&*subject.ledger, &before).await;
    let next = dead(&before, DeadReason::Gone);
    let beside = full(key_of(Kind::Extract, "a"));
    let rows = [over(&before, &next), new(&beside)];
    assert_eq!(write(subject, rows).await, WrittenBoth::Done);
    assert_eq!(load(subject, &next).await, Some(next));
    assert_eq!(load(subject, &beside).await, Some(beside.clone()));
    let fresh = open(key_of(Kind::Crawl, "a"), 5);
    let after = dead(&beside, DeadReason::Gone);
    let rows = [new(&fresh), over(&beside, &after)];
    assert_eq!(write(subject, rows).await, WrittenBoth::Done);
    assert_eq!(load(subject, &after).await, Some(after));
    let counts = subject.ledger.count_entries().await.unwrap();
    assert_eq!(counts.get("dead:gone").copied(), Some(2));
    let due = subject.ledger.list_due(later(9), None, 10).await.unwrap();
    assert_eq!(due.items, [fresh]);
}

/// A second identical call finds the first one's rows, and changes nothing.
pub async fn a_repeated_write_of_two_finds_both(subject: &LedgerSubject) {
    let before = open(key("a"), 5);
    put(&*subject.ledger, &before).await;
    let next = dead(&before, DeadReason::Gone);
    let beside = open(key_of(Kind::Batch, "b"), 5);
    let rows = [over(&before, &next), new(&beside)];
    assert_eq!(write(subject, rows).await, WrittenBoth::Done);
    for _ in 0..2 {
        let met = [other(&next), other(&beside)];
        assert_eq!(write(subject, rows).await, WrittenBoth::Conflict(met));
    }
    assert_eq!(load(subject, &next).await, Some(next));
}

/// Where one of the two is not as expected, the other is not written either; what is there of each
/// is told.
pub async fn neither_is_written_where_one_is_not_as_expected(subject: &LedgerSubject) {
    let (one, two) = (open(key("a"), 5), open(key("b"), 5));
    put(&*subject.ledger, &one).await;
    put(&*subject.ledger, &two).await;
    let moved = dead(&two, DeadReason::Failed);
    put_over(&*subject.ledger, &two, &moved).await;
    let next = dead(&one, DeadReason::Gone);
    let late = dead(&two, DeadReason::Gone);
    let absent = open(key("c"), 5);
    let newer = Entry { version: 2, ..absent.clone() };
    for (rows, met) in [
        ([over(&one, &next), over(&two, &late)], [Met::Expected, other(&moved)]),
        ([over(&two, &late), over(&one, &next)], [other(&moved), Met::Expected]),
        ([over(&one, &next), new(&two)], [Met::Expected, other(&moved)]),
        ([new(&absent), over(&two, &late)], [Met::Expected, other(&moved)]),
        ([over(&one, &next), over(&absent, &newer)], [Met::Expected, Met::Other(None)]),
        ([new(&one), over(&absent, &newer)], [other(&one), Met::Other(None)]),
    ] {
        assert_eq!(write(subject, rows).await, WrittenBoth::Conflict(met));
        assert_eq!(load(subject, &one).await, Some(one.clone()));
        assert_eq!(load(subject, &two).await, Some(moved.clone()));
        assert_eq!(load(subject, &absent).await, None);
    }
}

/// Two rows of one job are a bug of ours.
pub async fn two_rows_of_one_job_are_refused(subject: &LedgerSubject) {
    let row = open(key("a"), 5);
    let error = subject.ledger.write_both([new(&row), new(&row)]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(load(subject, &row).await, None);
}

/// Of many writes of the same two at a time one succeeds, and the others learn so or are told to
/// come again.
pub async fn one_of_many_writes_of_two_succeeds(subject: &LedgerSubject) {
    let before = open(key("a"), 5);
    put(&*subject.ledger, &before).await;
    let pairs: Vec<_> = (0..10)
        .map(|number| {
            let token = Some(format!("writer {number}"));
            let next = Entry { token: token.clone(), ..dead(&before, DeadReason::Gone) };
            (next, Entry { token, ..open(key("b"), 5) })
        })
        .collect();
    let writing = pairs.iter().map(|(next, beside)| async {
        // Transactions that meet may be refused for now.
        for _ in 0..50 {
            match subject.ledger.write_both([over(&before, next), new(beside)]).await {
                Ok(written) => return written,
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
        }
        panic!("refused for ever");
    });
    let written = join_all(writing).await;
    let won: Vec<_> =
        pairs.iter().zip(&written).filter(|(_, it)| **it == WrittenBoth::Done).collect();
    assert_eq!(won.len(), 1, "{written:?}");
    let ((next, beside), _) = won[0];
    assert_eq!(load(subject, next).await.as_ref(), Some(next));
    assert_eq!(load(subject, beside).await.as_ref(), Some(beside));
    let conflict = WrittenBoth::Conflict([other(next), other(beside)]);
    assert_eq!(written.iter().filter(|it| **it == conflict).count(), 9);
}

/// Whoever reads while two rows are written finds both as they were, or the first to be read as it
/// was, or both as they are: never the second without the first.
pub async fn nobody_finds_one_of_two(subject: &LedgerSubject) {
    for number in 0..20 {
        let before = open(key(&format!("a{number}")), 5);
        put(&*subject.ledger, &before).await;
        let next = dead(&before, DeadReason::Gone);
        let beside = open(key(&format!("b{number}")), 5);
        let writing = write(subject, [over(&before, &next), new(&beside)]);
        let reading = async {
            // Read first, it is there only if the other, read later, is written.
            let beside = load(subject, &beside).await;
            (beside, load(subject, &next).await)
        };
        let (written, (found, other)) = futures_util::future::join(writing, reading).await;
        assert_eq!(written, WrittenBoth::Done);
        assert!(found.is_none() || other.as_ref() == Some(&next), "{found:?} without {other:?}");
    }
}

/// A row that does not decode is named, and its neighbour is not written.
pub async fn a_pair_beside_one_that_does_not_decode_is_not_written(subject: &LedgerSubject) {
    let Some(spoil) = &subject.spoil_entry else { return };
    let spoilt = open(key("spoilt-row"), 5);
    put(&*subject.ledger, &spoilt).await;
    spoil(&spoilt.key);
    let beside = open(key("b"), 5);
    let error = subject.ledger.write_both([new(&spoilt), new(&beside)]).await.expect_err("spoilt");
    assert_eq!(error.kind, ErrorKind::Corrupt);
    assert!(format!("{error:?}").contains("spoilt-row"), "{error:?}");
    assert_eq!(load(subject, &beside).await, None);
}

/// DQ-11: two rows of the largest size are kept; one byte more of one keeps both out.
pub async fn two_large_rows_are_kept_and_one_byte_more_is_refused(subject: &LedgerSubject) {
    let largest = |id: &str| {
        let mut row = Entry { token: Some(String::new()), ..open(key(id), 5) };
        let bare = serde_json::to_string(&row).unwrap().len();
        row.token = Some("x".repeat(subject.caps.row_bytes_max - bare));
        row
    };
    let (one, two) = (largest("a"), largest("b"));
    assert_eq!(write(subject, [new(&one), new(&two)]).await, WrittenBoth::Done);
    assert_eq!(load(subject, &one).await, Some(one));
    assert_eq!(load(subject, &two).await, Some(two));
    let (mut over, beside) = (largest("c"), open(key("d"), 5));
    over.token = over.token.map(|token| token + "x");
    let error = subject.ledger.write_both([new(&beside), new(&over)]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(load(subject, &beside).await, None);
}
