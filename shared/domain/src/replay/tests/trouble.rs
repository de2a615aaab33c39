//! Logs that move, grow and lie, calls that fail, and time that runs out.

use super::*;
use crate::ports::{ApiErrorKind, DeliveryPage};
use crate::time::after;
use crate::work::tests::faults::{Fault, Faulty};
use crate::work::tests::rig::{answer, error, retry_after};

/// So many rows, one a minute, newest first; `j0` is the newest.
fn many(rig: &Rig, count: u32) -> Vec<Delivery> {
    (0..count).map(|number| abandoned(rig, &format!("j{number}"), MINUTE * number)).collect()
}

/// SC-05, S26: four rows, pages of two, one leaves before the second page is read; then one
/// arrives. The next run finds what slipped through; repeats do no harm.
#[tokio::test]
async fn a_row_that_slips_between_two_pages_is_found_by_the_next_run() {
    let rig = Rig::new();
    let rows: Vec<_> = (1..=4_u32).map(|n| abandoned(&rig, &format!("j{n}"), HOUR * n)).collect();
    let arrived = abandoned(&rig, "arrived", MINUTE);
    let logs = Logs::new(move |before, page| {
        let mut rows = rows.clone();
        if before >= 1 {
            rows.remove(0);
        }
        if before >= 2 {
            rows.insert(0, arrived.clone());
        }
        Ok(paged(&rows, page, 2))
    });
    run(&rig, &logs).await;
    assert_eq!(known(&rig), ["j1", "j2", "j4"]);
    run(&rig, &logs).await;
    assert_eq!(known(&rig), ["arrived", "j1", "j2", "j3", "j4"]);
    assert_eq!(rig.queue.depth(), 5);
}

/// The cost is in proportion to what is new, whichever end of the log it comes to; and once a day
/// the log is read whole.
#[tokio::test]
async fn the_cost_is_in_proportion_to_what_is_new() {
    for reversed in [false, true] {
        let rig = Rig::new();
        let rows = std::sync::Mutex::new(many(&rig, 5_000));
        let logs = Logs::new(|_, page| {
            let mut rows = rows.lock().unwrap().clone();
            if reversed {
                rows.reverse();
            }
            Ok(paged(&rows, page, 100))
        });
        let read = async || {
            let announced = run(&rig, &logs).await.announced;
            (logs.take_pages().len(), announced)
        };
        // The first reading, and the one that confirms it.
        assert_eq!(read().await, (51, 5_000));
        assert!(read().await.0 <= 51);
        let (pages, _) = read().await;
        assert!(pages <= 4, "reversed {reversed}: {pages}");
        for round in 1..=3_u32 {
            rig.clock.advance(10 * MINUTE);
            let new = (0..250_u32).map(|n| abandoned(&rig, &format!("r{round}-{n}"), SECOND * n));
            let old = std::mem::take(&mut *rows.lock().unwrap());
            *rows.lock().unwrap() = new.chain(old).collect();
            let (pages, announced) = read().await;
            // What came with the last round is confirmed on the way.
            assert_eq!(announced, 250);
            assert!(pages <= 12, "reversed {reversed}: {pages}");
        }
        rig.clock.advance(24 * HOUR);
        assert!(read().await.0 > 50);
    }
}

/// Order is not to be trusted: a log that was thought to come newest first, and does not any more,
/// hides nothing for longer than a day.
#[tokio::test]
async fn an_order_that_changes_hides_nothing_for_ever() {
    let rig = Rig::new();
    let mut rows = many(&rig, 300);
    let logs = Logs::new(|_, page| Ok(paged(&rows, page, 100)));
    for _ in 0..3 {
        run(&rig, &logs).await;
    }
    drop(logs);
    rig.clock.advance(HOUR);
    rows.push(abandoned(&rig, "at-the-end", Duration::ZERO));
    let logs = Logs::new(|_, page| Ok(paged(&rows, page, 100)));
    run(&rig, &logs).await;
    assert!(!known(&rig).contains(&"at-the-end".to_owned()));
    rig.clock.advance(24 * HOUR);
    run(&rig, &logs).await;
    assert!(known(&rig).contains(&"at-the-end".to_owned()));
}

/// SC-11: it fails on page 3 of 5, three times: each run goes on where the last one stopped.
#[tokio::test]
async fn a_run_goes_on_where_the_last_one_stopped() {
    let rig = Rig::new();
    let rows = many(&rig, 450);
    let mut failures = 9;
    let logs = Logs::new(|_, page| {
        if page == 3 && failures > 0 {
            failures -= 1;
            return Err(error(ApiErrorKind::Unavailable, Some(503)));
        }
        Ok(paged(&rows, page, 100))
    });
    for pages in [vec![1, 2, 3, 3, 3], vec![3, 3, 3], vec![3, 3, 3]] {
        let report = run(&rig, &logs).await;
        assert!(report.partial && report.read_at.is_none());
        assert_eq!(logs.take_pages(), pages);
    }
    let report = run(&rig, &logs).await;
    assert_eq!((logs.take_pages(), report.partial), (vec![3, 4, 5, 6], false));
    assert_eq!(known(&rig).len(), 450);
}

/// SC-15: three seconds, twenty pages of half a second, one `Retry-After` of thirty seconds: it
/// stops in time, says that it is partial, and the next run goes on.
#[tokio::test]
async fn a_run_stops_in_time_and_the_next_one_goes_on() {
    let rig = Rig::new();
    let rows = many(&rig, 2_000);
    let clock = rig.clock.clone();
    let throttled = retry_after(error(ApiErrorKind::Throttled, Some(429)), 30 * SECOND);
    let logs = Logs::new(|before, page| {
        clock.advance(Duration::from_millis(500));
        if before == 7 { Err(throttled.clone()) } else { Ok(paged(&rows, page, 100)) }
    });
    let mut runs = 0;
    loop {
        runs += 1;
        let deadline = after(rig.now(), 3 * SECOND);
        let manner = Manner { look: Look::ScheduledUntil(deadline), is_dry: false };
        let report = run_with(rig.ports(), &logs, &rules(), manner).await;
        assert!(rig.now() <= deadline, "run {runs}");
        if !report.partial {
            break;
        }
        rig.clock.advance(10 * SECOND);
        assert!(runs < 12, "{report:?}");
    }
    assert_eq!(known(&rig).len(), 2_000);
    let pages = logs.take_pages();
    assert!(pages.len() < 28, "{pages:?}");
}

/// DQ-09: of the ten tasks that a run sends, the queue refuses the fourth: the others are sent, and
/// its row, which says that it was not, is left to the sweep.
#[tokio::test]
async fn a_task_that_was_refused_is_left_to_the_sweep() {
    let rig = Rig::new();
    let rows = many(&rig, 10);
    for number in 0..10 {
        let key = extract(&format!("j{number}"));
        let done = answer(&key, crate::job::JobStatus::Completed);
        rig.jobs.answer_extract(&key.job_id, Ok(done));
    }
    let logs = Logs::new(|_, page| Ok(paged(&rows, page, 100)));
    let sends = {
        let dry = Rig::new();
        let whole = Faulty::new(&dry, []);
        run_with(whole.ports(), &logs, &rules(), WET).await;
        let calls = whole.calls();
        (0..calls.len()).filter(|at| calls[*at] == "send").collect::<Vec<_>>()
    };
    assert_eq!(sends.len(), 10);
    let faulty = Faulty::new(&rig, [(sends[3], Fault::FailBefore)]);
    let mut report = Replayed::default();
    let ran = replay(faulty.ports(), &logs, &rules(), WET, &mut report, &mut |_| {}).await;
    assert!(ran.is_err(), "{report:?}");
    let unsent = || {
        let rows = rig.ledger.entries().into_iter();
        rows.filter(|row| row.enqueued_at.is_none()).map(|row| row.state.name()).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        assert_eq!((rig.queue.sent(), unsent()), (9, vec![StateName::Received]));
        run(&rig, &logs).await;
    }
    assert_eq!(rig.work_queue().await, 9);
    rig.clock.advance(rig.limits.enqueue_grace);
    assert_eq!(crate::sweep::sweep(rig.ports(), 100).await.unwrap().sent, 1);
    assert_eq!((rig.work_queue().await, rig.results.keys().len()), (1, 10));
}

/// SC-06, SC-07: a log that ignores the page number ends; an answer that is no log is trouble, and
/// never an empty one.
#[tokio::test]
async fn what_is_no_log_is_not_an_empty_one() {
    let rig = Rig::new();
    let rows = many(&rig, 60);
    let logs = Logs::new(|_, _| Ok(paged(&rows, 1, 100)));
    let report = run(&rig, &logs).await;
    assert_eq!((logs.take_pages(), report.announced), (vec![1, 2, 3, 4], 60));
    let logs = Logs::new(|_, _| Err(error(ApiErrorKind::Unreadable, Some(200))));
    let report = run(&rig, &logs).await;
    assert_eq!((report.trouble.unwrap().kind, report.partial), (ApiErrorKind::Unreadable, true));
}

/// A webhook that vanishes between the list and its log is counted; the others are read.
#[tokio::test]
async fn a_webhook_that_vanishes_meanwhile_is_survived() {
    let (rig, webhooks, ids) = world();
    assert!(webhooks.log(&ids[2], abandoned(&rig, "a", HOUR)));
    let missing = error(ApiErrorKind::Missing, Some(404));
    let logs = Logs::new(|_, _| Err(missing.clone()));
    let report = run(&rig, &logs).await;
    assert_eq!((report.vanished, report.partial, report.trouble), (1, false, None));
    assert_eq!(run(&rig, &*webhooks).await.announced, 1);
}

/// Trouble with the list of webhooks is trouble, and read again soon.
#[tokio::test]
async fn trouble_with_the_list_of_webhooks_is_told() {
    let (rig, webhooks, ids) = world();
    assert!(webhooks.log(&ids[0], abandoned(&rig, "a", HOUR)));
    let rules = Rules { every: HOUR, ..rules() };
    webhooks.fail(error(ApiErrorKind::Refused, Some(403)));
    let report = run_with(rig.ports(), &*webhooks, &rules, WET).await;
    assert_eq!((report.partial, report.trouble.unwrap().status), (true, Some(403)));
    rig.clock.advance(29 * SECOND);
    assert_eq!(run_with(rig.ports(), &*webhooks, &rules, WET).await.webhooks, 0);
    rig.clock.advance(SECOND);
    assert_eq!(run_with(rig.ports(), &*webhooks, &rules, WET).await.announced, 1);
}

/// SC-03: a row of the ledger that does not decode is its own trouble.
#[tokio::test]
async fn a_row_that_does_not_decode_is_its_own_trouble() {
    let (rig, webhooks, ids) = world();
    for job in ["a", "b", "c"] {
        assert!(webhooks.log(&ids[0], abandoned(&rig, job, HOUR)));
    }
    rig.announce(&extract("b")).await;
    assert!(rig.ledger.corrupt(&extract("b")));
    let report = run(&rig, &*webhooks).await;
    assert_eq!((report.announced, report.faulty, report.partial), (2, 1, true));
    // It is looked at a few times, and then holds up nothing any more.
    for _ in 0..5 {
        run(&rig, &*webhooks).await;
    }
    assert!(saved(&rig, &ids[0]).read_to.is_some());
}

/// Entries that cannot be read do not end a log.
#[tokio::test]
async fn unreadable_entries_do_not_end_a_log() {
    let rig = Rig::new();
    let rows = many(&rig, 20);
    let logs = Logs::new(|_, page| {
        let nothing = DeliveryPage { unreadable: 100, ..paged(&[], 1, 1) };
        Ok(if page == 1 { nothing } else { paged(&rows, page - 1, 100) })
    });
    let report = run(&rig, &logs).await;
    assert_eq!((report.announced, report.unreadable), (20, 100));
}
