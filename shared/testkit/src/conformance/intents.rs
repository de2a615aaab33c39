//! [`domain::ports::Intents`].

use domain::entry::DeadReason;
use domain::intent::{Intent, IntentState};
use domain::job::{JobError, JobId, Kind};
use domain::limits::Limits;
use domain::ports::{ErrorKind, Expected, IntentExpected, IntentWritten, Written};
use domain::post::Post;
use domain::request::{FetchOptions, JobRequest};
use domain::time::{Timestamp, after};
use futures_util::future::join_all;

use super::LedgerSubject;
use super::samples::{
    accepted, dead, intent, key, key_of, later, open, plain_intent, put, put_intent, resubmitting,
    start,
};

/// An intent in each of its states.
fn one_per_state() -> Vec<Intent> {
    let post = Post::first("token".to_owned(), start(), &Limits::default());
    let states = [
        IntentState::Open { post: post.clone() },
        IntentState::Deferred { post },
        IntentState::Accepted { job_id: JobId::parse("job").unwrap() },
        IntentState::Refused { error: JobError::new("code", "mess\u{e4}ge", false) },
        IntentState::Ambiguous,
    ];
    let moved = states.into_iter().zip(0..).map(|(state, position)| {
        plain_intent("run \u{e9}", position).moved(state, start(), &Limits::default())
    });
    moved.collect()
}

/// An intent that nobody wrote is absent, and no version of it can be written over.
pub async fn an_intent_that_nobody_wrote_is_absent(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    let row = plain_intent("r", 0);
    assert_eq!(ledger.load_intent(&row.id).await.unwrap(), None);
    let next = accepted(&row);
    let written = ledger.write_intent(&next, IntentExpected::Version(1)).await.unwrap();
    assert_eq!(written, IntentWritten::Conflict(None));
    assert_eq!(ledger.load_intent(&row.id).await.unwrap(), None);
}

/// Every state and every kind of request comes back as it was written.
pub async fn an_intent_comes_back_as_it_was_written(subject: &LedgerSubject) {
    let options = FetchOptions::default;
    let mut rows = one_per_state();
    let urls = ["https://example.com/a", "https://example.com/b?\u{e9}"];
    rows.push(intent("r", 1 << 53, JobRequest::batch(urls, options()).unwrap()));
    rows.push(intent("r", 1, JobRequest::crawl(urls[0], options(), 2, 50).unwrap()));
    for row in &rows {
        put_intent(&*subject.ledger, row).await;
    }
    for row in rows {
        assert_eq!(subject.ledger.load_intent(&row.id).await.unwrap(), Some(row));
    }
}

/// A second identical first write finds the first one's intent.
pub async fn a_repeated_first_write_finds_the_intent(subject: &LedgerSubject) {
    let row = plain_intent("r", 0);
    put_intent(&*subject.ledger, &row).await;
    let written = subject.ledger.write_intent(&row, IntentExpected::Absent(start())).await.unwrap();
    assert_eq!(written, IntentWritten::Conflict(Some(Box::new(row))));
}

/// A write over the version that was read replaces the intent; over another one, nothing.
pub async fn a_write_names_the_version_that_was_read(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    let first = plain_intent("r", 0);
    put_intent(&**ledger, &first).await;
    let second = first.put_off(later(500));
    for wrong in [0, 2] {
        let next = Intent { version: 3, ..second.clone() };
        let written = ledger.write_intent(&next, IntentExpected::Version(wrong)).await.unwrap();
        assert_eq!(written, IntentWritten::Conflict(Some(Box::new(first.clone()))), "{wrong}");
    }
    let written = ledger.write_intent(&second, IntentExpected::Version(1)).await.unwrap();
    assert_eq!(written, IntentWritten::Done);
    // The loser of the race, and the winner's own repetition.
    for late in [accepted(&first), second.clone()] {
        let written = ledger.write_intent(&late, IntentExpected::Version(1)).await.unwrap();
        assert_eq!(written, IntentWritten::Conflict(Some(Box::new(second.clone()))));
    }
    assert_eq!(ledger.load_intent(&first.id).await.unwrap(), Some(second));
}

/// Of many first writes at a time one succeeds.
pub async fn one_of_many_first_writes_succeeds(subject: &LedgerSubject) {
    let rows: Vec<_> = (0..20_u32)
        .map(|number| Intent { reference: Some(number.to_string()), ..plain_intent("r", 0) })
        .collect();
    let expected = IntentExpected::Absent(start());
    let written = join_all(rows.iter().map(|row| subject.ledger.write_intent(row, expected))).await;
    let mut winners = rows
        .iter()
        .zip(written)
        .filter(|(_, written)| matches!(written, Ok(IntentWritten::Done)))
        .map(|(row, _)| row);
    let won = winners.next().expect("one write succeeds");
    assert_eq!(winners.next(), None);
    assert_eq!(subject.ledger.load_intent(&won.id).await.unwrap().as_ref(), Some(won));
}

/// A closed intent that expired counts as absent for a first write; an open one never expires.
pub async fn an_expired_intent_counts_as_absent(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    let fresh = plain_intent("r", 0);
    let closed = accepted(&fresh);
    put_intent(&**ledger, &closed).await;
    let expires_at = after(start(), Limits::default().retention);
    let early = domain::time::before(expires_at, std::time::Duration::from_secs(1));
    let written = ledger.write_intent(&fresh, IntentExpected::Absent(early)).await.unwrap();
    assert_eq!(written, IntentWritten::Conflict(Some(Box::new(closed.clone()))));
    let written = ledger.write_intent(&fresh, IntentExpected::Absent(expires_at)).await.unwrap();
    assert_eq!(written, IntentWritten::Done);
    let end = IntentExpected::Absent(Timestamp::MAX);
    let written = ledger.write_intent(&closed, end).await.unwrap();
    assert_eq!(written, IntentWritten::Conflict(Some(Box::new(fresh))));
}

/// A POST is unresolved while its intent is open, for its kind alone.
pub async fn an_open_intent_is_an_unresolved_post(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    for kind in Kind::ALL {
        assert!(!ledger.has_unresolved_post(kind, start()).await.unwrap(), "{kind}");
    }
    for row in one_per_state().into_iter().filter(|row| !row.state.is_open()) {
        put_intent(&**ledger, &row).await;
    }
    assert!(!ledger.has_unresolved_post(Kind::Extract, start()).await.unwrap());
    let request = JobRequest::crawl("https://e.com/", FetchOptions::default(), 1, 1).unwrap();
    let row = intent("r", 0, request);
    put_intent(&**ledger, &row).await;
    for kind in Kind::ALL {
        let expected = kind == Kind::Crawl;
        assert_eq!(ledger.has_unresolved_post(kind, start()).await.unwrap(), expected, "{kind}");
    }
    let written = ledger.write_intent(&accepted(&row), IntentExpected::Version(1)).await.unwrap();
    assert_eq!(written, IntentWritten::Done);
    assert!(!ledger.has_unresolved_post(Kind::Crawl, start()).await.unwrap());
}

/// A POST is unresolved while a row is being resubmitted, for its kind alone.
pub async fn a_resubmission_is_an_unresolved_post(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    put(&**ledger, &open(key("other"), 5)).await;
    let row = resubmitting(&open(key_of(Kind::Batch, "a"), 5));
    put(&**ledger, &row).await;
    for kind in Kind::ALL {
        let expected = kind == Kind::Batch;
        assert_eq!(ledger.has_unresolved_post(kind, start()).await.unwrap(), expected, "{kind}");
    }
    let settled = dead(&row, DeadReason::Ambiguous);
    let written = ledger.write(&settled, Expected::As(row.seen())).await.unwrap();
    assert_eq!(written, Written::Done);
    assert!(!ledger.has_unresolved_post(Kind::Batch, start()).await.unwrap());
}

/// A POST that was intended after the instant in question is of no account.
pub async fn a_later_post_is_not_counted(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    let early = domain::time::before(start(), std::time::Duration::from_secs(1));
    put_intent(&**ledger, &plain_intent("r", 0)).await;
    put(&**ledger, &resubmitting(&open(key_of(Kind::Batch, "a"), 5))).await;
    for kind in [Kind::Extract, Kind::Batch] {
        for (until, expected) in [(early, false), (start(), true), (later(1), true)] {
            let found = ledger.has_unresolved_post(kind, until).await.unwrap();
            assert_eq!(found, expected, "{kind} until {until}");
        }
    }
}

/// DQ-11: the largest intent is kept; one byte more is refused, and changes nothing.
pub async fn the_largest_intent_is_kept_and_one_byte_more_is_refused(subject: &LedgerSubject) {
    let ledger = &subject.ledger;
    let mut row = plain_intent("r", 0);
    row.reference = Some(String::new());
    let bare = serde_json::to_string(&row).unwrap().len();
    row.reference = Some("x".repeat(subject.caps.row_bytes_max - bare));
    put_intent(&**ledger, &row).await;
    assert_eq!(ledger.load_intent(&row.id).await.unwrap().as_ref(), Some(&row));
    let mut over = row.put_off(later(500));
    over.due_at = row.due_at;
    over.reference = over.reference.map(|text| text + "x");
    let error = ledger.write_intent(&over, IntentExpected::Version(1)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(ledger.load_intent(&row.id).await.unwrap(), Some(row));
}

/// An intent that does not decode is an error that names it, not an absent intent.
pub async fn an_intent_that_does_not_decode_is_named(subject: &LedgerSubject) {
    let Some(spoil) = &subject.spoil_intent else { return };
    let row = plain_intent("r", 0);
    put_intent(&*subject.ledger, &row).await;
    spoil(&row.id);
    for error in [
        subject.ledger.load_intent(&row.id).await.expect_err("a spoilt intent"),
        subject
            .ledger
            .write_intent(&row, IntentExpected::Absent(start()))
            .await
            .expect_err("a spoilt intent"),
    ] {
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(format!("{error:?}").contains(&row.id), "{error:?}");
    }
}
