//! What the logs say, and what is done about it.

use super::*;
use crate::entry::{DeadReason, State};
use crate::limits::Limits;
use crate::pause::Scope;
use crate::time::after;

/// Deliveries answered 401, 500 or 413 and then abandoned, or never answered at all: each job is
/// announced, whatever we said of its delivery.
#[tokio::test]
async fn a_job_whose_deliveries_were_all_refused_is_announced() {
    let (rig, webhooks, ids) = world();
    for (number, answered) in [401, 500, 413, 0].into_iter().enumerate() {
        let job = format!("j{number}");
        for (status, age) in [(DeliveryStatus::Failed, 2 * HOUR), (DeliveryStatus::Abandoned, HOUR)]
        {
            assert!(webhooks.log(&ids[0], row(&rig, &job, status, answered, age)));
        }
    }
    let mut batch = abandoned(&rig, "b", HOUR);
    batch.event_type = EventType::BatchCompleted;
    assert!(webhooks.log(&ids[1], batch));
    let report = run(&rig, &*webhooks).await;
    assert_eq!((report.webhooks, report.rows), (3, 9));
    assert_eq!((report.announced, report.unknown, report.taken), (5, 5, 0));
    assert_eq!((report.oldest, report.partial), (Some(before(rig.now(), HOUR)), false));
    assert_eq!((rig.ledger.entries().len(), rig.queue.depth()), (5, 5));
    let entry = rig.entry(&extract("j0"));
    assert_eq!(entry.history[0].cause, Cause::Replay);
    assert!(entry.history[0].delivery_id.as_ref().unwrap().starts_with("j0-abandoned"));
    assert_eq!(rig.stands(&JobKey::new(Kind::Batch, id("b"))), "received");
    // Once more: they are known, and nothing is asked of the platform but the logs.
    let again = run(&rig, &*webhooks).await;
    assert_eq!((again.announced, rig.queue.depth()), (0, 5));
    assert_eq!(rig.jobs.calls(), []);
}

/// SC-08, S05: a second attempt succeeded, in either order of the log and with the border of a
/// page between them: the job is known, and costs no call.
#[tokio::test]
async fn a_job_whose_second_attempt_succeeded_is_left_alone() {
    let rig = Rig::new();
    let failed = row(&rig, "a", DeliveryStatus::Failed, 500, HOUR);
    let taken = row(&rig, "a", DeliveryStatus::Success, 200, 30 * MINUTE);
    rig.announce(&extract("a")).await;
    for rows in [[failed.clone(), taken.clone()], [taken, failed]] {
        for size in [1, 2] {
            let logs = Logs::new(|_, page| Ok(paged(&rows, page, size)));
            assert_eq!(run(&rig, &logs).await.announced, 0);
        }
    }
    assert_eq!((rig.queue.depth(), rig.jobs.calls().len()), (1, 0));
}

/// Whatever the log says: a delivery that was taken, and of whose job the ledger knows nothing, as
/// after a restored backup, or not that it has ended.
#[tokio::test]
async fn a_taken_delivery_of_which_the_ledger_knows_nothing_is_announced() {
    let (rig, webhooks, ids) = world();
    for job in ["lost", "expected", "stored"] {
        assert!(webhooks.log(&ids[0], row(&rig, job, DeliveryStatus::Success, 200, HOUR)));
    }
    let row = Entry::expected(extract("expected"), None, Cause::Submit, rig.now(), &rig.limits);
    rig.ledger.place(&row);
    let state = State::Dead { reason: DeadReason::Failed, error: None, result: None };
    let row = Entry::expected(extract("stored"), None, Cause::Submit, rig.now(), &rig.limits);
    rig.ledger.place(&row.settled(state, Cause::Work, rig.now(), &rig.limits));
    let report = run(&rig, &*webhooks).await;
    assert_eq!((report.announced, report.unknown, report.taken), (2, 1, 2));
    assert_eq!(rig.stands(&extract("lost")), "received");
    assert_eq!(rig.stands(&extract("expected")), "received");
}

/// A delivery that is on its way is left alone while it is young, also where that takes long; then
/// its job is announced.
#[tokio::test]
async fn a_delivery_on_its_way_is_left_alone_for_a_while() {
    let (rig, webhooks, ids) = world();
    let mut pending = row(&rig, "a", DeliveryStatus::Pending, 0, Duration::ZERO);
    assert!(webhooks.log(&ids[0], pending.clone()));
    for _ in 0..9 {
        rig.clock.advance(MINUTE);
        // Others come after it, so that it lies ever further back.
        assert!(webhooks.log(&ids[0], abandoned(&rig, "other", Duration::ZERO)));
        assert_eq!(run(&rig, &*webhooks).await.waiting, 1);
        assert!(saved(&rig, &ids[0]).read_to <= pending.created_at);
    }
    assert_eq!(known(&rig), ["other"]);
    rig.clock.advance(MINUTE);
    assert_eq!(run(&rig, &*webhooks).await.announced, 1);
    assert_eq!(known(&rig), ["a", "other"]);
    // A row that is not dated may be as old as it likes.
    pending.created_at = None;
    pending.job_id = Some(id("b"));
    assert!(webhooks.log(&ids[0], pending));
    assert_eq!(run(&rig, &*webhooks).await.announced, 1);
}

/// SC-09, S04: entries that we answered 400 ourselves bring their jobs once; five runs over the same
/// log fetch and store nothing again, and a job that cannot be had is not brought back for ever.
#[tokio::test]
async fn what_we_refuse_for_good_is_not_brought_back_for_ever() {
    let (rig, webhooks, ids) = world();
    for job in ["fine", "gone"] {
        assert!(webhooks.log(&ids[0], row(&rig, job, DeliveryStatus::Abandoned, 400, HOUR)));
    }
    let fine = crate::work::tests::rig::answer(&extract("fine"), crate::job::JobStatus::Completed);
    rig.jobs.answer_extract(&id("fine"), Ok(fine));
    let mut calls = Vec::new();
    for _ in 0..8 {
        // Most jobs of the account are there, so that it is this one that is gone.
        (0..50).for_each(|_| rig.looks.note(false));
        run(&rig, &*webhooks).await;
        rig.settle().await;
        calls.push(rig.jobs.calls().len());
        rig.jobs.clear_calls();
    }
    assert_eq!((rig.stands(&extract("fine")).as_str(), rig.results.puts()), ("stored", 1));
    assert_eq!(rig.stands(&extract("gone")), "dead gone");
    // Opened again three times, each with its few looks; then no more.
    let looks = usize::try_from(rig.limits.missing_looks_max).unwrap();
    assert_eq!(calls, [1 + looks, looks, looks, looks, 0, 0, 0, 0]);
    // The operator's list has it, with the answer that we gave.
    let mut told = Vec::new();
    let mut hear = |logged: &Logged| told.push((logged.key.clone(), logged.answered, logged.row));
    let dry = Manner { is_dry: true, ..WET };
    let (mut report, rules) = (Replayed::default(), rules());
    replay(rig.ports(), &*webhooks, &rules, dry, &mut report, &mut hear).await.unwrap();
    assert!(told.contains(&(extract("gone"), Some(400), Some(StateName::Dead))), "{told:?}");
}

/// Rows without a job, of other events, unreadable ones and unknown words are counted and left.
#[tokio::test]
async fn odd_rows_are_survived_and_counted() {
    let (rig, webhooks, ids) = world();
    let nameless = Delivery { job_id: None, ..abandoned(&rig, "x", HOUR) };
    let event_type = EventType::Unknown("map_completed".to_owned());
    let strange = Delivery { event_type, ..abandoned(&rig, "y", HOUR) };
    let status = DeliveryStatus::Unknown("exploded".to_owned());
    let exploded = row(&rig, "good", status, 0, HOUR);
    for delivery in [nameless, strange, exploded] {
        assert!(webhooks.log(&ids[0], delivery));
    }
    webhooks.set_unreadable(2);
    let report = run(&rig, &*webhooks).await;
    assert_eq!((report.nameless, report.strange, report.announced), (1, 1, 1));
    assert!(report.unreadable >= 2 && report.partial);
    assert_eq!(known(&rig), ["good"]);
}

/// Forgotten jobs that the log still tells of stay forgotten.
#[tokio::test]
async fn forgotten_jobs_stay_forgotten() {
    let (rig, webhooks, ids) = world();
    let rig = Rig { limits: Limits { retention: 10 * HOUR, ..Limits::default() }, ..rig };
    assert!(webhooks.log(&ids[0], abandoned(&rig, "old", 9 * HOUR + MINUTE)));
    assert!(webhooks.log(&ids[0], abandoned(&rig, "young", 8 * HOUR)));
    let report = run(&rig, &*webhooks).await;
    assert_eq!((report.announced, report.forgotten), (1, 1));
    assert_eq!(known(&rig), ["young"]);
}

/// Only the webhooks of our address are read, however it is spelt; all, where it is not known. One
/// that is gone is no trouble, and what was known of it is forgotten.
#[tokio::test]
async fn the_webhooks_of_our_address_are_read() {
    let (rig, webhooks, ids) = world();
    let url = "https://example.com/other".to_owned();
    let new = NewWebhook { url, event_type: EventType::ExtractCompleted, description: None };
    let other = webhooks.create(&new, SECOND).await.unwrap().webhook.id;
    assert!(webhooks.log(&other, abandoned(&rig, "other", HOUR)));
    assert!(webhooks.log(&ids[0], abandoned(&rig, "ours", HOUR)));
    let url = Some("HTTPS://example.com:443/webhook".to_owned());
    let ours = Rules { url, ..rules() };
    assert_eq!(run_with(rig.ports(), &*webhooks, &ours, WET).await.webhooks, 3);
    assert_eq!(known(&rig), ["ours"]);
    assert_eq!(run(&rig, &*webhooks).await.webhooks, 4);
    assert_eq!(known(&rig), ["other", "ours"]);
    // Behind another name nobody can say which are ours.
    let unknown = Rules { url: Some("https://example.org/".to_owned()), ..rules() };
    assert_eq!(run_with(rig.ports(), &*webhooks, &unknown, WET).await.webhooks, 4);
    webhooks.delete(&other, SECOND).await.unwrap();
    let report = run(&rig, &*webhooks).await;
    assert_eq!((report.webhooks, report.vanished, report.partial), (3, 0, false));
    let rows = rig.ledger.controls();
    assert!(!rows.iter().any(|row| row.value.contains(other.as_str())));
}

/// The list of webhooks is read in any case: it tells whether the events are delivered.
#[tokio::test]
async fn a_run_tells_how_the_subscriptions_stand() {
    let (rig, webhooks, ids) = world();
    let off = crate::ports::WebhookChange { is_active: Some(false), ..Default::default() };
    webhooks.update(&ids[1], &off, SECOND).await.unwrap();
    webhooks.delete(&ids[2], SECOND).await.unwrap();
    let ours = Rules { url: Some(URL.to_owned()), ..rules() };
    let report = run_with(rig.ports(), &*webhooks, &ours, WET).await;
    let wrong: Vec<_> = report.subscriptions.unwrap().wrong().collect();
    let inactive = crate::subscriptions::Standing::Inactive;
    let missing = crate::subscriptions::Standing::Missing;
    assert_eq!(wrong, [(Kind::Batch, inactive), (Kind::Crawl, missing)]);
    // One that is switched off has a log all the same.
    assert_eq!(report.webhooks, 2);
}

/// A dry run says what would be done, and does nothing.
#[tokio::test]
async fn a_dry_run_tells_the_plan_and_changes_nothing() {
    let (rig, webhooks, ids) = world();
    assert!(webhooks.log(&ids[0], abandoned(&rig, "missed", HOUR)));
    assert!(webhooks.log(&ids[0], row(&rig, "young", DeliveryStatus::Pending, 0, MINUTE)));
    let (mut report, mut plan) = (Replayed::default(), Vec::new());
    let mut hear = |logged: &Logged| plan.push((logged.key.clone(), logged.step));
    let (dry, rules) = (Manner { is_dry: true, ..WET }, rules());
    replay(rig.ports(), &*webhooks, &rules, dry, &mut report, &mut hear).await.unwrap();
    assert_eq!(plan, [(extract("missed"), Step::Announce), (extract("young"), Step::Wait)]);
    assert_eq!((report.announced, report.unknown, report.waiting), (1, 1, 1));
    assert_eq!((rig.ledger.writes(), rig.queue.depth()), (0, 0));
}

/// A run begins no sooner than its time has come, and nothing is asked while the account is
/// paused.
#[tokio::test]
async fn the_logs_are_read_when_their_time_has_come() {
    let (rig, webhooks, _) = world();
    let rules = Rules { every: 5 * MINUTE, ..rules() };
    let reads = async || {
        let report = run_with(rig.ports(), &*webhooks, &rules, WET).await;
        // Whoever asks the ledger is told the same.
        if report.read_at.is_some() {
            assert_eq!(read_at(&rig.ledger).await.unwrap(), report.read_at);
        }
        (report.read_at, take_pages(&webhooks).len())
    };
    assert_eq!(read_at(&rig.ledger).await.unwrap(), None);
    let first = rig.now();
    assert_eq!(reads().await, (Some(first), 3));
    rig.clock.advance(4 * MINUTE);
    assert_eq!(reads().await, (Some(first), 0));
    rig.clock.advance(MINUTE);
    let until = after(rig.now(), MINUTE);
    rig.pauses.extend(&rig.ledger, Scope::All, until, "throttled").await.unwrap();
    assert_eq!(reads().await, (None, 0));
    rig.clock.advance(MINUTE);
    assert_eq!(reads().await, (Some(rig.now()), 3));
}
