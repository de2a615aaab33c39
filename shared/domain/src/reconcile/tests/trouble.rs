//! Entries that cannot be read, calls that fail, and time that runs out.

use super::lists::{cut, page};
use super::*;
use crate::ports::{ApiErrorKind, Clock as _, ErrorKind, ListPage};
use crate::time::{after, between};
use crate::work::tests::rig::{error, retry_after};

fn unavailable() -> ApiError {
    error(ApiErrorKind::Unavailable, None)
}

/// SC-03, SC-12: no time of creation, one that is none, no status, and a good job behind them: the
/// good one is handled, three are counted, and the run says that it was partial.
#[tokio::test]
async fn one_bad_entry_does_not_stop_the_run() {
    let rig = Rig::new();
    let undated = |name| Listed { created_at: None, ..listed(&rig, name, "completed", MINUTE) };
    let good = listed(&rig, "good", "completed", MINUTE);
    let jobs = [undated("none"), undated("yesterday"), good];
    let lists = Lists::new(&rig, |_, query| {
        let all = ListPage { unreadable: 1, ..page(jobs.clone()) };
        Ok(if query.page == 1 { all } else { page([]) })
    });
    let report = run(lists.ports()).await;
    assert_eq!((report.undated, report.unreadable, report.partial), (2, 1, true));
    assert_eq!((rig.stands(&extract("good")).as_str(), rig.queue.depth()), ("received", 3));
}

/// SC-04: sixty jobs whose rows do not decode, and a good one behind them: it is reached in the
/// first run, and after a few runs the hopeless ones hold up nothing any more.
#[tokio::test]
async fn a_hopeless_prefix_does_not_hide_what_lies_behind_it() {
    let rig = Rig::new();
    for number in 0..60_u32 {
        let key = list(&rig, Kind::Extract, &format!("a{number:02}"), "completed", HOUR);
        rig.announce(&key).await;
        assert!(rig.ledger.corrupt(&key));
    }
    list(&rig, Kind::Extract, "good", "completed", MINUTE);
    let report = run(rig.ports()).await;
    assert_eq!((report.announced, report.faulty, report.partial), (1, 60, true));
    let mut unsure = 0;
    for _ in 0..4 {
        unsure += run(rig.ports()).await.unsure;
    }
    let expected = before(rig.now(), MINUTE + rules().overlap);
    assert_eq!((saved(&rig).watermark, unsure), (Some(expected), 1));
    assert_eq!(run(rig.ports()).await.faulty, 0, "the window has gone on");
}

/// SC-03: so is a row that the ledger refuses to write; the job comes with one of the next runs.
#[tokio::test]
async fn a_row_that_cannot_be_written_is_its_own_trouble() {
    use crate::receive::tests::bench::{Bench, Fault};
    let (bench, rig) = (Bench::new(), Rig::new());
    for number in 0..3_u32 {
        let job = listed(&rig, &format!("j{number}"), "completed", MINUTE);
        bench.jobs.list_job(Kind::Extract, job);
    }
    // Pause and place; the rows one by one; of each job its row, read again and written.
    bench.gate.spoil(2 + 3 + 2, Fault::Before(ErrorKind::Invalid));
    let report = run(bench.ports()).await;
    assert_eq!((report.announced, report.faulty, report.partial), (2, 1, true));
    let report = run(bench.ports()).await;
    assert_eq!((report.announced, report.faulty, report.partial), (1, 0, false));
}

/// SC-07: an answer that is no list is a failed run, and never an empty list.
#[tokio::test]
async fn an_answer_without_its_list_is_trouble() {
    let rig = Rig::new();
    let lists = Lists::new(&rig, |_, _| Err(error(ApiErrorKind::Unreadable, Some(200))));
    let report = run(lists.ports()).await;
    assert_eq!(report.trouble.unwrap().kind, ApiErrorKind::Unreadable);
    assert_eq!((report.partial, report.walked_at), (true, None));
    assert_eq!(saved(&rig).walked_at, None);
}

/// SC-11: it fails on page 3 of 5, three times: each run goes on where the last one stopped.
#[tokio::test]
async fn a_run_goes_on_where_the_last_one_stopped() {
    let rig = Rig::new();
    let jobs = many(&rig, "j", 450, HOUR);
    let mut failures = 9;
    let lists = Lists::new(&rig, |_, query| {
        if query.page == 3 && failures > 0 {
            failures -= 1;
            return Err(error(ApiErrorKind::Unavailable, Some(503)));
        }
        Ok(cut(&jobs, query, 100))
    });
    for (pages, announced) in [(vec![1, 2, 3, 3, 3], 200), (vec![3, 3, 3], 0), (vec![3, 3, 3], 0)] {
        let report = run(lists.ports()).await;
        assert_eq!(
            (lists.take_pages(), report.announced, report.partial),
            (pages, announced, true)
        );
    }
    let report = run(lists.ports()).await;
    assert_eq!((lists.take_pages(), report.announced), (vec![3, 4, 5, 6], 250));
    assert!(!report.partial);
}

/// SC-15: three seconds, twenty pages of half a second each: the run stops in time, says that it is
/// partial, and the next one goes on.
#[tokio::test]
async fn a_run_stops_in_time_and_the_next_one_goes_on() {
    let rig = Rig::new();
    let jobs = many(&rig, "j", 2_000, HOUR);
    let clock = rig.clock.clone();
    let lists = Lists::new(&rig, |_, query| {
        clock.advance(Duration::from_millis(500));
        Ok(cut(&jobs, query, 100))
    });
    let mut runs = 0;
    while saved(&rig).walked_at.is_none() {
        runs += 1;
        let deadline = after(rig.now(), 3 * SECOND);
        let manner = Manner { look: Look::ScheduledUntil(deadline), is_dry: false };
        let report = run_with(lists.ports(), &rules(), manner).await;
        assert!(rig.now() <= deadline, "run {runs}");
        assert!(runs <= 5, "five pages a run, and one that is asked for again");
        assert_eq!(report.partial, runs < 5);
    }
    assert_eq!(rig.ledger.entries().len(), 2_000);
    assert_eq!(lists.queries().len(), 21 + 3);
}

/// SC-15: `Retry-After` pauses the account: nobody calls, and afterwards the walk goes on.
#[tokio::test]
async fn a_wait_that_the_platform_asks_for_is_kept() {
    let rig = Rig::new();
    let jobs = many(&rig, "j", 300, HOUR);
    let throttled = retry_after(error(ApiErrorKind::Throttled, Some(429)), 30 * SECOND);
    let lists = Lists::new(&rig, |before, query| {
        if before == 2 { Err(throttled.clone()) } else { Ok(cut(&jobs, query, 100)) }
    });
    let report = run(lists.ports()).await;
    assert_eq!((report.announced, report.partial), (200, true));
    rig.clock.advance(29 * SECOND);
    assert_eq!(run(lists.ports()).await.pages, 0);
    rig.clock.advance(SECOND);
    assert_eq!(run(lists.ports()).await.announced, 100);
    assert_eq!(lists.take_pages(), [1, 2, 3, 3, 4]);
}

/// Trouble with one list is that list's alone.
#[tokio::test]
async fn trouble_with_one_list_leaves_the_others_alone() {
    let rig = Rig::new();
    list(&rig, Kind::Batch, "b", "completed", MINUTE);
    let lists = Lists::new(&rig, |_, _| Err(error(ApiErrorKind::Missing, Some(404))));
    let ports = lists.ports();
    // The other lists of this platform are empty; the rig's own is asked for the batch.
    let report = run(ports).await;
    assert_eq!(report.trouble.unwrap().status, Some(404));
    rig.jobs.fail_list(unavailable());
    let report = run(rig.ports()).await;
    assert_eq!((report.announced, report.partial), (1, true));
}

/// The ledger or the queue fails in the middle: what was done stays done, and what was not is done
/// by the next run.
#[tokio::test]
async fn a_port_that_fails_ends_the_run_and_loses_nothing() {
    use crate::work::tests::faults::{Fault, Faulty};
    let rig = Rig::new();
    for job in many(&rig, "j", 20, HOUR) {
        rig.jobs.list_job(Kind::Extract, job);
    }
    let faulty = Faulty::new(&rig, [(8, Fault::FailBefore)]);
    let mut report = Reconciled::default();
    let outcome = reconcile(faulty.ports(), &rules(), WET, &mut report, &mut |_| {}).await;
    assert!(outcome.is_err());
    assert!(report.announced > 0 && report.announced < 20, "{report:?}");
    assert_eq!(saved(&rig).watermark, None);
    let begun = rig.clock.now();
    assert!(!run(rig.ports()).await.partial);
    assert_eq!(rig.ledger.entries().len(), 20);
    assert_eq!(between(begun, rig.clock.now()), Duration::ZERO);
}

/// What the ledger says of the last walk is that of the list that was walked longest ago.
#[tokio::test]
async fn the_last_walk_of_all_lists_is_told() {
    let rig = Rig::new();
    assert_eq!(compared_at(&rig.ledger).await.unwrap(), None);
    run(rig.ports()).await;
    let first = rig.now();
    assert_eq!(compared_at(&rig.ledger).await.unwrap(), Some(first));
    rig.clock.advance(MINUTE);
    run(rig.ports()).await;
    assert_eq!(compared_at(&rig.ledger).await.unwrap(), Some(rig.now()));
    // One list that cannot be read holds back what is told.
    let second = rig.now();
    rig.clock.advance(MINUTE);
    rig.jobs.fail_list(error(ApiErrorKind::Denied, Some(403)));
    assert!(run(rig.ports()).await.partial);
    assert_eq!(compared_at(&rig.ledger).await.unwrap(), Some(second));
}
