//! One search answers for all POSTs whose answers were lost at about the same time.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::request::FetchOptions;
use crate::sweep::{Swept, recover_due};
use crate::testing::Call;

fn asked(position: u64) -> Submission {
    let url = format!("https://example.com/page/{position}");
    let request = JobRequest::extract(&url, FetchOptions::default()).unwrap();
    Submission { run: "run".into(), position, request, reference: None }
}

fn job(position: u64) -> JobId {
    id(&format!("lost-{position}"))
}

/// Submits, and the answers are lost.
async fn lose(rig: &Rig, positions: std::ops::Range<u64>) {
    for position in positions {
        rig.jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(job(position)));
        let submitted = submit(rig.ports(), &asked(position)).await.unwrap();
        assert!(matches!(submitted, Submitted::Unanswered { .. }), "{submitted:?}");
    }
    rig.jobs.clear_calls();
}

fn states(rig: &Rig) -> BTreeMap<&'static str, usize> {
    let mut states = BTreeMap::new();
    for intent in rig.ledger.intents() {
        *states.entry(intent.state.name()).or_default() += 1;
    }
    states
}

#[tokio::test]
async fn one_walk_over_the_list_answers_for_all() {
    let rig = Rig::new();
    let look_at = recoverable_at(&rig);
    lose(&rig, 0..60).await;
    rig.clock.advance_to(look_at);
    assert_eq!(recover_due(rig.ports(), 1_000).await.unwrap().adopted, 60);
    assert_eq!(rig.jobs.calls().len(), 2, "a page of sixty jobs, and an empty one");
    for position in 0..60 {
        let link = rig.entry(&JobKey::new(Kind::Extract, job(position))).link.unwrap();
        assert_eq!(link.submission, Intent::id_of(&asked(position)));
    }
}

/// The submitter that comes first finds the others' jobs as well.
#[tokio::test]
async fn whoever_searches_searches_for_all_that_are_due() {
    let rig = Rig::new();
    let look_at = recoverable_at(&rig);
    lose(&rig, 0..10).await;
    rig.clock.advance_to(look_at);
    for position in 0..10 {
        let submitted = submit(rig.ports(), &asked(position)).await.unwrap();
        assert_eq!(submitted, accepted(job(position).as_str(), Submitter::Earlier));
    }
    assert_eq!(rig.jobs.calls().len(), 2);
}

/// POSTs that lie far apart are looked for one by one: a walk does not read what lies between.
#[tokio::test]
async fn posts_that_lie_far_apart_are_looked_for_apart() {
    let rig = Rig::new();
    lose(&rig, 0..1).await;
    rig.clock.advance(3 * HOUR);
    lose(&rig, 1..2).await;
    rig.clock.advance(HOUR);
    assert_eq!(recover_due(rig.ports(), 1_000).await.unwrap().adopted, 2);
    let windows: Vec<_> = rig
        .jobs
        .calls()
        .iter()
        .filter_map(|call| match call {
            Call::List(_, query) => Some((query.created_from.unwrap(), query.created_to.unwrap())),
            _ => None,
        })
        .collect();
    assert_eq!(windows.len(), 4);
    assert!(windows.iter().all(|(from, to)| between(*from, *to) < HOUR));
}

/// Intents whose POST cannot be looked for yet are left alone.
#[tokio::test]
async fn a_post_that_was_just_made_is_not_looked_for_with_the_others() {
    let rig = Rig::new();
    let look_at = recoverable_at(&rig);
    lose(&rig, 0..1).await;
    rig.clock.advance(MINUTE);
    lose(&rig, 1..2).await;
    rig.clock.advance_to(look_at);
    assert_eq!(recover_due(rig.ports(), 1_000).await.unwrap().adopted, 1);
    assert_eq!(states(&rig), [("accepted", 1), ("open", 1)].into());
}

/// A search that failed is one search for each, and they are searched for together again.
#[tokio::test]
async fn a_search_that_failed_is_made_again_together() {
    let rig = Rig::new();
    let look_at = recoverable_at(&rig);
    lose(&rig, 0..10).await;
    rig.clock.advance_to(look_at);
    rig.jobs.fail_list(error(ApiErrorKind::Unavailable, None));
    assert_eq!(recover_due(rig.ports(), 1_000).await.unwrap(), Swept::default());
    let intents = rig.ledger.intents();
    assert!(intents.iter().all(|intent| intent.state.open_post().unwrap().searches == 1));
    let due: BTreeSet<_> = intents.iter().map(|intent| intent.due_at).collect();
    assert_eq!(due.len(), 1);
    rig.clock.advance_to(due.into_iter().next().unwrap().unwrap());
    assert_eq!(recover_due(rig.ports(), 1_000).await.unwrap().adopted, 10);
    assert_eq!(rig.jobs.calls().len(), 3);
}

/// While the account is paused nobody searches, and no search is counted; at the pause's end the
/// first one finds all.
#[tokio::test]
async fn a_pause_counts_no_search() {
    let rig = Rig::new();
    lose(&rig, 0..10).await;
    let until = after(rig.now(), 2 * rig.limits.ambiguous_after);
    rig.pauses.extend(&rig.ledger, Scope::All, until, "throttled").await.unwrap();
    while after(rig.now(), HOUR) < until {
        rig.clock.advance(HOUR);
        assert_eq!(recover_due(rig.ports(), 1_000).await.unwrap(), Swept::default());
        let submitted = submit(rig.ports(), &asked(0)).await.unwrap();
        assert!(matches!(submitted, Submitted::Unanswered { look_at } if look_at > until));
    }
    assert_eq!(rig.jobs.calls(), []);
    rig.clock.advance_to(until);
    assert_eq!(recover_due(rig.ports(), 1_000).await.unwrap().adopted, 10);
    assert_eq!(rig.jobs.calls().len(), 2);
}

/// A row at fault concerns its own intent: the neighbours are found all the same.
#[tokio::test]
async fn a_row_at_fault_does_not_keep_its_neighbours_from_being_found() {
    let rig = Rig::new();
    let look_at = recoverable_at(&rig);
    lose(&rig, 0..3).await;
    let key = JobKey::new(Kind::Extract, job(1));
    rig.announce(&key).await;
    assert!(rig.ledger.corrupt(&key));
    rig.clock.advance_to(look_at);
    let swept = recover_due(rig.ports(), 1_000).await.unwrap();
    assert_eq!(swept.adopted, 2);
    assert_eq!(states(&rig), [("accepted", 2), ("open", 1)].into());
    let late = after(rig.now(), MINUTE);
    rig.clock.advance_to(late);
    assert_eq!(recover_due(rig.ports(), 1_000).await.unwrap().unreadable, 1);
}
