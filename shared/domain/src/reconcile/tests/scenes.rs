//! What is found, and what is done about it.

use super::*;
use crate::announce::announce;
use crate::entry::{Cause, DeadReason, State};
use crate::limits::Limits;
use crate::testing::Call;
use crate::time::after;
use crate::work::tests::rig::{answer, link_of};

/// Each kind's list is walked, and each job comes to its end by its status: what has finished is
/// announced, what is open is expected and the sweep's from then on.
#[tokio::test]
async fn jobs_that_nobody_knows_are_found_in_all_lists() {
    let rig = Rig::new();
    for kind in Kind::ALL {
        for status in ["completed", "failed", "cancelled", "queued", "processing", "brand-new"] {
            list(&rig, kind, &format!("{kind}-{status}"), status, MINUTE);
        }
    }
    let report = run(rig.ports()).await;
    assert_eq!((report.announced, report.unknown, report.expected), (9, 9, 9));
    assert_eq!((report.pages, report.partial, report.trouble), (6, false, None));
    assert_eq!((count(&rig, StateName::Received), count(&rig, StateName::Expected)), (9, 9));
    assert_eq!(rig.queue.depth(), 9);
    assert_eq!(report.oldest, Some(before(rig.now(), MINUTE)));
    assert_eq!(report.walked_at, Some(rig.now()));
    for entry in rig.ledger.entries() {
        assert!(entry.due_at.is_some(), "{}", entry.key);
        assert_eq!(entry.history.last().unwrap().cause, Cause::Reconcile);
    }
    let open = rig.entry(&extract("extract-queued"));
    assert_eq!(open.job_created_at, Some(before(rig.now(), MINUTE)));
    // A second run knows them all.
    let again = run(rig.ports()).await;
    assert_eq!((again.announced, again.expected, again.listed), (0, 0, 18));
    assert_eq!(rig.queue.depth(), 9);
}

/// Unfiltered: nothing but dates is asked for, and the window ends where webhooks have had their
/// time, so that what is created meanwhile moves no page.
#[tokio::test]
async fn the_window_is_pinned_and_leaves_young_jobs_to_their_webhooks() {
    let rig = Rig::new();
    let young = list(&rig, Kind::Extract, "young", "completed", 9 * MINUTE);
    let old = list(&rig, Kind::Extract, "old", "completed", 11 * MINUTE);
    let rules = Rules { threshold: 10 * MINUTE, ..rules() };
    assert_eq!(run_with(rig.ports(), &rules, WET).await.announced, 1);
    assert_eq!((rig.ledger.entry(&young), rig.stands(&old)), (None, "received".to_owned()));
    let to = Some(before(rig.now(), 10 * MINUTE));
    let asked = rig.jobs.calls().into_iter().map(|call| match call {
        Call::List(_, query) => (query.created_to, query.page_size),
        other => panic!("{other:?}"),
    });
    assert!(asked.into_iter().all(|asked| asked == (to, 100)));
    rig.clock.advance(MINUTE);
    assert_eq!(run_with(rig.ports(), &rules, WET).await.announced, 1);
    assert_eq!(rig.stands(&young), "received");
}

/// S02, SC-01: a delivery that was never sent, a webhook that was switched off, and deliveries
/// that were answered 401, 500 or 413 and then abandoned are all one to a job list.
#[tokio::test]
async fn a_job_of_ours_that_nobody_announced_is_announced() {
    let rig = Rig::new();
    let key = list(&rig, Kind::Extract, "ours", "completed", MINUTE);
    let link = Some(link_of(&key, "s"));
    rig.ledger.place(&Entry::expected(key.clone(), link, Cause::Submit, rig.now(), &rig.limits));
    let report = run(rig.ports()).await;
    assert_eq!((report.announced, report.unknown), (1, 0));
    assert_eq!((rig.stands(&key), rig.queue.depth()), ("received".to_owned(), 1));
    assert!(rig.entry(&key).link.is_some());
}

/// SC-01, S02: a row that was received and never finished is left to the sweep, which owns it; the
/// list does not multiply its tasks.
#[tokio::test]
async fn a_row_that_was_received_is_left_to_the_sweep() {
    let rig = Rig::new();
    let key = list(&rig, Kind::Extract, "a", "completed", MINUTE);
    rig.announce(&key).await;
    rig.queue.lose_all();
    rig.clock.advance(HOUR);
    assert_eq!(run(rig.ports()).await.announced, 0);
    assert_eq!(rig.queue.depth(), 0);
    assert_eq!(crate::sweep::sweep(rig.ports(), 10).await.unwrap().sent, 1);
}

/// S03, SC-02: the job is announced, its fetch fails, and the next run need not find it again: the
/// row is owed until it is stored.
#[tokio::test]
async fn a_fetch_that_fails_after_the_run_is_made_up_for() {
    let rig = Rig::new();
    let key = list(&rig, Kind::Extract, "a", "completed", MINUTE);
    let broken = ApiError::new(crate::ports::ApiErrorKind::Unavailable, "reset");
    rig.jobs.answer_extract(&key.job_id, Err(broken));
    rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
    assert_eq!(run(rig.ports()).await.announced, 1);
    rig.work_queue().await;
    assert_eq!(rig.stands(&key), "received");
    assert_eq!(run(rig.ports()).await.announced, 0);
    rig.settle().await;
    assert_eq!(rig.stands(&key), "stored");
}

/// SC-13: the job finishes between the look at its row and the write.
#[tokio::test]
async fn a_row_that_settles_meanwhile_stays_settled() {
    let rig = Rig::new();
    let key = list(&rig, Kind::Extract, "a", "completed", MINUTE);
    rig.ledger.place(&Entry::expected(key.clone(), None, Cause::Submit, rig.now(), &rig.limits));
    let state = State::Dead { reason: DeadReason::Failed, error: None, result: None };
    let done = rig.entry(&key).settled(state, Cause::Work, rig.now(), &rig.limits);
    // The calls: pause and place of the walk, the rows of the page, then the row to announce.
    for before in 3..6 {
        let rig = Rig::new();
        list(&rig, Kind::Extract, "a", "completed", MINUTE);
        rig.ledger.place(&Entry::expected(
            key.clone(),
            None,
            Cause::Submit,
            rig.now(),
            &rig.limits,
        ));
        let ports = crate::work::tests::faults::Faulty::with_visitor(&rig, before, || {
            rig.ledger.place(&done);
        });
        let report = run(ports.ports()).await;
        assert_eq!((report.announced, rig.queue.depth()), (0, 0), "before call {before}");
        assert_eq!(rig.entry(&key), done);
    }
}

/// A job that was thought gone or stuck is opened again by its listed end, a few times; whoever
/// lists a job that cannot be had keeps nobody busy for ever.
#[tokio::test]
async fn a_listed_end_opens_what_was_thought_gone_a_few_times() {
    let rig = Rig::new();
    let key = extract("a");
    let gone = ApiError {
        status: Some(410),
        ..ApiError::new(crate::ports::ApiErrorKind::Missing, "gone")
    };
    rig.jobs.answer_extract(&key.job_id, Err(gone));
    list(&rig, Kind::Extract, "a", "completed", MINUTE);
    rig.announce(&key).await;
    for _ in 0..10 {
        rig.settle().await;
        assert_eq!(rig.stands(&key), "dead gone");
        run(rig.ports()).await;
    }
    let row = rig.entry(&key);
    assert_eq!((row.generation, row.counters.reopens), (3, 3));
    assert_eq!(rig.queue.depth(), 0);
}

/// Forgotten jobs that the platform still lists stay forgotten; young ones whose row is there and
/// has expired are not forgotten by us.
#[tokio::test]
async fn forgotten_jobs_that_are_still_listed_stay_forgotten() {
    let rig = Rig::new();
    let rig = Rig { limits: Limits { retention: 10 * HOUR, ..Limits::default() }, ..rig };
    let old = list(&rig, Kind::Extract, "old", "completed", 9 * HOUR + MINUTE);
    let young = list(&rig, Kind::Extract, "young", "completed", 8 * HOUR);
    assert_eq!(run(rig.ports()).await.announced, 1);
    rig.settle().await;
    assert_eq!((rig.stands(&young), rig.ledger.entry(&old)), ("stored".to_owned(), None));
    // Its row expires; the platform lists it for ever, and a ledger that lost its watermark asks.
    rig.clock.advance(11 * HOUR);
    lose_places(&rig).await;
    let report = run(rig.ports()).await;
    assert_eq!((report.announced, report.expected), (0, 0));
    assert!(rig.entry(&young).is_expired(rig.now()));
    // A list that ignores the dates gives them all the same.
    let jobs = [listed(&rig, "old", "completed", 20 * HOUR)];
    let lists =
        Lists::new(&rig, |_, query| Ok(lists::page((query.page == 1).then(|| jobs[0].clone()))));
    let report = run(lists.ports()).await;
    assert_eq!((report.announced, report.forgotten), (0, 1));
    assert_eq!(rig.ledger.entry(&old), None);
}

/// SC-12: a time of creation that cannot be read is counted, and the job looked at.
#[tokio::test]
async fn a_job_of_unknown_age_is_looked_at() {
    let rig = Rig::new();
    let undated = Listed { created_at: None, ..listed(&rig, "a", "completed", MINUTE) };
    let lists =
        Lists::new(&rig, |_, query| Ok(lists::page((query.page == 1).then(|| undated.clone()))));
    let report = run(lists.ports()).await;
    assert_eq!((report.announced, report.undated, report.partial), (1, 1, false));
    assert_eq!(report.oldest, None);
}

/// A job that is open for longer than any window is deep: it was expected when it was first seen,
/// and is the sweep's until it ends.
#[tokio::test]
async fn a_job_that_outlasts_the_window_is_not_missed() {
    let rig = Rig::new();
    let slow = list(&rig, Kind::Crawl, "slow", "processing", MINUTE);
    assert_eq!(run(rig.ports()).await.expected, 1);
    for hour in 0..6 {
        rig.clock.advance(HOUR);
        let name = format!("quick{hour}");
        list(&rig, Kind::Crawl, &name, "completed", MINUTE);
        run(rig.ports()).await;
    }
    let saved = rig.ledger.controls();
    let watermark = saved.iter().find(|row| row.name == "reconcile/crawl").unwrap();
    let watermark: saved::Saved = serde_json::from_str(&watermark.value).unwrap();
    assert!(watermark.watermark.unwrap() > after(rig.now(), Duration::ZERO) - 2 * HOUR);
    rig.jobs.set_listed_status(&slow, JobStatus::Completed);
    rig.settle().await;
    assert_eq!(rig.stands(&slow), "stored");
}

/// A dry run says what would be done, and does nothing.
#[tokio::test]
async fn a_dry_run_tells_the_plan_and_changes_nothing() {
    let rig = Rig::new();
    list(&rig, Kind::Extract, "done", "completed", MINUTE);
    list(&rig, Kind::Extract, "open", "queued", MINUTE);
    let known = list(&rig, Kind::Extract, "known", "completed", MINUTE);
    rig.announce(&known).await;
    let writes = rig.ledger.writes();
    let (mut report, mut plan) = (Reconciled::default(), Vec::new());
    let mut hear = |found: &Found| {
        plan.push((found.key.job_id.to_string(), found.row, found.step));
    };
    reconcile(rig.ports(), &rules(), DRY, &mut report, &mut hear).await.unwrap();
    plan.sort();
    assert_eq!(
        plan,
        [
            ("done".to_owned(), None, Step::Announce),
            ("known".to_owned(), Some(StateName::Received), Step::Known),
            ("open".to_owned(), None, Step::Expect),
        ]
    );
    assert_eq!((report.announced, report.unknown, report.expected), (1, 1, 1));
    assert_eq!((rig.ledger.writes(), rig.queue.depth()), (writes, 1));
    assert_eq!(rig.ledger.entries().len(), 1);
}

/// Whoever asks for it compares anew what was compared before; the watermark stays where it is.
#[tokio::test]
async fn a_run_that_compares_anew_goes_back_as_far_as_it_is_told() {
    let rig = Rig::new();
    list(&rig, Kind::Extract, "newest", "completed", MINUTE);
    run(rig.ports()).await;
    let old = list(&rig, Kind::Extract, "appeared", "completed", 3 * HOUR);
    list(&rig, Kind::Extract, "older", "completed", 5 * HOUR);
    assert_eq!(run(rig.ports()).await.announced, 0);
    let watermark = saved(&rig).watermark;
    let anew = Rules { anew: true, history: 4 * HOUR, ..rules() };
    assert_eq!(run_with(rig.ports(), &anew, WET).await.announced, 1);
    assert_eq!((rig.stands(&old).as_str(), saved(&rig).watermark), ("received", watermark));
}

/// A run begins no sooner than its time has come, and nothing is asked while the account is
/// paused.
#[tokio::test]
async fn a_list_is_walked_when_its_time_has_come() {
    let rig = Rig::new();
    let rules = Rules { every: 5 * MINUTE, ..rules() };
    assert_eq!(run_with(rig.ports(), &rules, WET).await.walked_at, Some(rig.now()));
    assert_eq!(rig.jobs.calls().len(), 3);
    let walked_at = rig.now();
    rig.clock.advance(4 * MINUTE);
    assert_eq!(run_with(rig.ports(), &rules, WET).await.walked_at, Some(walked_at));
    assert_eq!(rig.jobs.calls().len(), 3);
    rig.clock.advance(MINUTE);
    let until = after(rig.now(), MINUTE);
    rig.pauses.extend(&rig.ledger, Scope::All, until, "throttled").await.unwrap();
    assert!(run_with(rig.ports(), &rules, WET).await.partial);
    assert_eq!(rig.jobs.calls().len(), 3);
    rig.clock.advance(MINUTE);
    assert_eq!(run_with(rig.ports(), &rules, WET).await.walked_at, Some(rig.now()));
    assert_eq!(rig.jobs.calls().len(), 6);
}

/// The job that a lost answer may have made is expected without a link; who looks for it takes it.
#[tokio::test]
async fn a_job_found_here_first_is_linked_later() {
    let rig = Rig::new();
    let key = list(&rig, Kind::Extract, "a", "completed", MINUTE);
    run(rig.ports()).await;
    let link = link_of(&key, "s");
    let claimed = crate::adopt::claim(rig.ports(), &key, &link, Cause::Adopt).await.unwrap();
    assert_eq!(claimed, crate::adopt::Claimed::Ours);
    assert_eq!(rig.entry(&key).link, Some(link));
    // It is announced already: nobody announces it again.
    let again = announce(rig.ports().announcing(), &key, Cause::Delivery, None).await.unwrap();
    assert_eq!(again, crate::announce::AnnounceOutcome::Known(StateName::Received));
}
