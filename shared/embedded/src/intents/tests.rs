use domain::entry::Cause;
use domain::intent::IntentState;
use domain::job::{JobError, JobId};
use domain::limits::Limits;
use domain::ports::{Due, Entries, Expected, Inspection};
use domain::post::Post;

use super::*;
use crate::limits::ROW_BYTES_MAX;
use crate::testing::{TestStore, crawl, entry, extract, intent, start, stranger, test_store};

const URL: &str = "https://example.com/";

fn accepted(intent: &Intent) -> Intent {
    let state = IntentState::Accepted { job_id: JobId::parse("j1").unwrap() };
    intent.moved(state, start(), &Limits::default())
}

#[tokio::test]
async fn an_intent_is_written_once_per_version() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let first = intent("run", 0, extract(URL));
    let absent = IntentExpected::Absent(start());
    assert_eq!(store.load_intent(&first.id).await.unwrap(), None);
    let missing = store.write_intent(&first, IntentExpected::Version(1)).await.unwrap();
    assert_eq!(missing, IntentWritten::Conflict(None));
    assert_eq!(store.write_intent(&first, absent).await.unwrap(), IntentWritten::Done);
    let conflict = IntentWritten::Conflict(Some(Box::new(first.clone())));
    assert_eq!(store.write_intent(&first, absent).await.unwrap(), conflict);
    let second = accepted(&first);
    for version in [0, 2, u64::MAX] {
        let expected = IntentExpected::Version(version);
        assert_eq!(store.write_intent(&second, expected).await.unwrap(), conflict, "{version}");
    }
    let expected = IntentExpected::Version(1);
    assert_eq!(store.write_intent(&second, expected).await.unwrap(), IntentWritten::Done);
    assert_eq!(store.load_intent(&first.id).await.unwrap(), Some(second));
}

/// DQ-05: an intent that expired counts as absent although its row is there.
#[tokio::test]
async fn an_expired_intent_counts_as_absent() {
    let TestStore { store, clock, directory: _directory } = test_store();
    let first = intent("run", 0, extract(URL));
    let done = accepted(&first);
    store.write_intent(&done, IntentExpected::Absent(start())).await.unwrap();
    let expires_at = done.expires_at.unwrap();
    let at = |second| Timestamp::from_second(second).unwrap();
    let early = store.write_intent(&first, IntentExpected::Absent(at(expires_at - 1))).await;
    assert_eq!(early.unwrap(), IntentWritten::Conflict(Some(Box::new(done.clone()))));
    let late = store.write_intent(&first, IntentExpected::Absent(at(expires_at))).await;
    assert_eq!(late.unwrap(), IntentWritten::Done);
    store.write_intent(&done, IntentExpected::Version(1)).await.unwrap();
    clock.advance(Limits::default().retention);
    assert_eq!(store.remove_expired().await.unwrap(), 1);
    assert_eq!(store.load_intent(&first.id).await.unwrap(), None);
}

/// One run has one POST per submission, however many begin it at once.
#[tokio::test]
async fn one_of_fifty_openers_wins() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let openers: Vec<_> = (0..50)
        .map(|_| {
            let store = store.clone();
            let row = intent("run", 0, extract(URL));
            tokio::spawn(async move {
                store.write_intent(&row, IntentExpected::Absent(start())).await.unwrap()
            })
        })
        .collect();
    let mut won = 0;
    for opener in openers {
        won += usize::from(opener.await.unwrap() == IntentWritten::Done);
    }
    assert_eq!(won, 1);
}

#[tokio::test]
async fn open_posts_are_seen_by_kind() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let open = intent("run", 0, crawl(URL));
    store.write_intent(&open, IntentExpected::Absent(start())).await.unwrap();
    assert!(store.has_unresolved_post(Kind::Crawl, start()).await.unwrap());
    assert!(!store.has_unresolved_post(Kind::Extract, start()).await.unwrap());
    let refused = IntentState::Refused { error: JobError::new("NO", "no", false) };
    let closed = open.moved(refused, start(), &Limits::default());
    store.write_intent(&closed, IntentExpected::Version(1)).await.unwrap();
    assert!(!store.has_unresolved_post(Kind::Crawl, start()).await.unwrap());

    let row = entry("a");
    Entries::write(&store, &row, Expected::Absent(start())).await.unwrap();
    assert!(!store.has_unresolved_post(Kind::Extract, start()).await.unwrap());
    let post = Post::first("token".to_owned(), start(), &Limits::default());
    let paying = row.resubmitting(post, start(), start());
    Entries::write(&store, &paying, Expected::As(row.seen())).await.unwrap();
    assert!(store.has_unresolved_post(Kind::Extract, start()).await.unwrap());
    assert!(!store.has_unresolved_post(Kind::Batch, start()).await.unwrap());
    let back = paying.back_to_received(start(), start(), &Limits::default());
    assert_eq!(back.history.last().unwrap().cause, Cause::Work);
    Entries::write(&store, &back, Expected::As(paying.seen())).await.unwrap();
    assert!(!store.has_unresolved_post(Kind::Extract, start()).await.unwrap());
}

/// The few rows in question are found by their state, and a damaged one holds nobody's job back
/// from its owner.
#[tokio::test]
async fn open_posts_are_found_by_an_index_and_counted_when_damaged() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let open = intent("run", 0, crawl(URL));
    store.write_intent(&open, IntentExpected::Absent(start())).await.unwrap();
    let early = domain::time::before(start(), std::time::Duration::from_secs(1));
    assert!(!store.has_unresolved_post(Kind::Crawl, early).await.unwrap());
    assert!(store.has_unresolved_post(Kind::Crawl, Timestamp::MAX).await.unwrap());
    for json in ["[", "{}", r#"{"state":{"name":"open"}}"#] {
        stranger(&store).execute("UPDATE intents SET json = ?1", [json]).unwrap();
        assert!(store.has_unresolved_post(Kind::Crawl, early).await.unwrap(), "{json}");
    }
    let connection = stranger(&store);
    let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {UNRESOLVED}")).unwrap();
    let steps = plan.query_map(params![2, RESUBMITTING, ""], |row| row.get::<_, String>(3));
    let steps: Vec<_> = steps.unwrap().map(Result::unwrap).collect();
    for wanted in [
        "SEARCH intents USING INDEX intents_open (kind=?)",
        "SEARCH entries USING INDEX entries_by_state (state=? AND kind=?)",
    ] {
        assert!(steps.iter().any(|step| step == wanted), "{steps:?}");
    }
}

#[tokio::test]
async fn due_and_listed_intents_come_in_order_and_pages() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let mut wanted = Vec::new();
    for (run, position) in [("b", 0), ("a", 10), ("a", 2), ("a", 0), ("c", 1)] {
        let row = intent(run, position, extract(URL));
        store.write_intent(&row, IntentExpected::Absent(start())).await.unwrap();
        wanted.push(row);
    }
    let closed = accepted(&wanted[4]);
    store.write_intent(&closed, IntentExpected::Version(1)).await.unwrap();
    wanted[4] = closed;
    let due_at = wanted[0].due_at.unwrap();
    wanted.sort_by_key(|row| (row.run.clone(), row.position));

    let mut listed = store.list_intents(None, None, 3).await.unwrap();
    let rest = store.list_intents(None, listed.next.as_ref(), 3).await.unwrap();
    listed.items.extend(rest.items);
    assert_eq!((listed.items, rest.next), (wanted.clone(), None));
    let first = store.list_intents(Some("a"), None, 2).await.unwrap();
    let rest = store.list_intents(Some("a"), first.next.as_ref(), 2).await.unwrap();
    assert_eq!((first.items.as_slice(), rest.items.as_slice()), (&wanted[..2], &wanted[2..3]));
    assert_eq!(store.list_intents(Some("none"), None, 2).await.unwrap().items, []);

    let early = Timestamp::from_microsecond(due_at.as_microsecond() - 1).unwrap();
    assert_eq!(store.list_due_intents(early, None, 9).await.unwrap().items, []);
    let mut due = store.list_due_intents(due_at, None, 3).await.unwrap();
    let rest = store.list_due_intents(due_at, due.next.as_ref(), 3).await.unwrap();
    due.items.extend(rest.items);
    wanted.pop();
    wanted.sort_by_key(|row| row.id.clone());
    assert_eq!((due.items, rest.next), (wanted, None));
    let counts = store.count_intents().await.unwrap();
    assert_eq!(
        counts.into_iter().collect::<Vec<_>>(),
        [("accepted".to_owned(), 1), ("open".to_owned(), 4)]
    );
}

#[tokio::test]
async fn what_cannot_be_kept_or_read_is_said() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let absent = IntentExpected::Absent(start());
    let mut row = intent("run", 0, extract(URL));
    row.run = "x".repeat(ROW_BYTES_MAX);
    let error = store.write_intent(&row, absent).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    row = intent("run", u64::MAX, extract(URL));
    let error = store.write_intent(&row, absent).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    row = intent("run", 0, extract(URL));
    store.write_intent(&row, absent).await.unwrap();
    stranger(&store).execute("UPDATE intents SET json = '[]'", []).unwrap();
    let error = store.load_intent(&row.id).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Corrupt);
    assert!(format!("{error:?}").contains(&row.id));
    let listed = store.list_intents(None, None, 1).await.unwrap();
    let due = store.list_due_intents(Timestamp::MAX, None, 1).await.unwrap();
    for page in [listed, due] {
        assert_eq!((page.items.len(), page.unreadable.len()), (0, 1));
    }
}
