use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::envelope::EventType;
use crate::job::{JobStatus, Kind};
use crate::ports::{ApiErrorKind, Clock as _, Delivery, DeliveryStatus, ErrorKind, NewWebhook};
use crate::testing::{Call, ManualClock, MemoryWebhooks};
use crate::time::{after, before};
use crate::work::tests::faults::{Fault, Faulty, run as process};
use crate::work::tests::rig::{HOUR, MINUTE, Rig, answer, error, extract, id, retry_after};

const URL: &str = "https://example.com/webhook";

struct World {
    rig: Rig,
    webhooks: Arc<MemoryWebhooks>,
}

/// A webhook for extract jobs and none for the others; a job whose task was lost, one that only
/// the delivery log tells of, and one that only the list does.
fn world() -> World {
    let rig = Rig::new();
    let webhooks = Arc::new(MemoryWebhooks::new(rig.clock.clone()));
    let event_type = EventType::ExtractCompleted;
    let new = NewWebhook { url: URL.to_owned(), event_type, description: None };
    let created = process(webhooks.create(&new, MINUTE)).unwrap().unwrap();
    process(rig.announce(&extract("lost"))).unwrap();
    rig.queue.lose_all();
    let row = Delivery {
        id: "d".to_owned(),
        event_type: EventType::ExtractCompleted,
        job_id: Some(id("logged")),
        attempt_number: Some(1),
        status: DeliveryStatus::Abandoned,
        http_status: Some(401),
        delivered_at: None,
        created_at: Some(before(rig.now(), HOUR)),
    };
    assert!(webhooks.log(&created.webhook.id, row));
    let listed = crate::ports::Listed {
        job_id: id("listed"),
        status: JobStatus::Completed,
        created_at: Some(before(rig.now(), 2 * HOUR)),
        url: None,
        accepted_urls: None,
        formats: None,
        render_js: None,
    };
    rig.jobs.list_job(Kind::Extract, listed);
    for job in ["lost", "logged", "listed"] {
        rig.jobs.answer_extract(&id(job), Ok(answer(&extract(job), JobStatus::Completed)));
    }
    rig.clock.advance(5 * MINUTE);
    World { rig, webhooks }
}

fn rules() -> Rules {
    let url = Some(URL.to_owned());
    Rules { replay: Some(replay::Rules { url, ..replay::Rules::default() }), ..Rules::default() }
}

impl World {
    fn term(&self) -> Term {
        let until = after(self.rig.now(), 2 * MINUTE);
        Term { until, claimed_until: Some(after(until, MINUTE)) }
    }

    async fn tick_with(&self, steps: Ports<'_>, rules: &Rules, first: &mut Part) -> TickReport {
        let ports = TickPorts { steps, webhooks: &*self.webhooks };
        tick(ports, rules, first, self.term()).await.unwrap()
    }

    async fn tick(&self) -> TickReport {
        self.tick_with(self.rig.ports(), &rules(), &mut Part::default()).await
    }
}

/// All parts, in one run; the report says what each found.
#[tokio::test]
async fn one_tick_finds_what_is_overdue_what_is_logged_and_what_is_listed() {
    let world = world();
    let report = world.tick().await;
    assert_eq!((report.ran, world.rig.queue.depth()), (Ran::Whole, 3));
    let summary = report.summary();
    assert_eq!((summary.gap, summary.gap_unknown), (2, 2));
    assert_eq!(summary.gap_age_s, (2 * HOUR + 5 * MINUTE).as_secs());
    assert_eq!((summary.reconcile_age_s, summary.replay_age_s), (Some(0), Some(0)));
    assert_eq!(summary.subscriptions, [("batch", "missing"), ("crawl", "missing")].into());
    let counted = [
        ("jobs_listed", 1),
        ("list_pages", 4),
        ("log_pages", 2),
        ("log_rows", 1),
        ("tasks_swept", 1),
    ];
    assert_eq!(summary.counted, counted.into());
    assert!(summary.troubles.is_empty());
    world.rig.work_queue().await;
    let again = world.tick().await.summary();
    assert_eq!((again.gap, again.ran), (0, Ran::Whole));
}

/// Without webhooks nothing but the job lists is asked, and all jobs are found by them.
#[tokio::test]
async fn without_webhooks_the_job_lists_find_every_job() {
    let world = world();
    world.webhooks.clear_calls();
    let rules = Rules { replay: None, ..rules() };
    let report = world.tick_with(world.rig.ports(), &rules, &mut Part::default()).await;
    assert_eq!((report.ran, report.summary().gap), (Ran::Whole, 1));
    assert_eq!(world.webhooks.calls(), []);
    assert!(report.replayed.is_none() && report.summary().subscriptions.is_empty());
}

/// SC-10: two at once: one works, the other leaves it alone and is no failure; a holder that died
/// holds nobody up for longer than its own time.
#[tokio::test]
async fn one_tick_at_a_time_is_at_work() {
    let world = world();
    let (now, until) = (world.rig.now(), after(world.rig.now(), 2 * MINUTE));
    let ledger = &world.rig.ledger;
    claim::take(ledger, CLAIM, "killed", now, until).await.unwrap().unwrap();
    let report = world.tick().await;
    assert_eq!((report.ran, world.rig.queue.depth()), (Ran::Elsewhere, 0));
    assert!(report.summary().counted.is_empty());
    world.rig.clock.advance_to(until);
    assert_eq!(world.tick().await.ran, Ran::Whole);
    // It is given back.
    assert_eq!(world.tick().await.ran, Ran::Whole);
}

/// SC-10: a tick that ignores the claim, as one whose clock is wrong would, does no double work.
#[tokio::test]
async fn a_second_tick_at_any_moment_sends_no_task_twice() {
    let calls = {
        let world = world();
        let faulty = Faulty::new(&world.rig, []);
        process(world.tick_with(faulty.ports(), &rules(), &mut Part::default())).unwrap();
        faulty.calls().len()
    };
    for call in 0..calls {
        let world = world();
        let visitor = || {
            // No two runs write at the same instant.
            world.rig.clock.advance(Duration::from_millis(1));
            let term = Term { claimed_until: None, ..world.term() };
            let ports = TickPorts { steps: world.rig.ports(), webhooks: &*world.webhooks };
            let mut first = Part::default();
            let _ = process(tick(ports, &rules(), &mut first, term)).unwrap();
        };
        let faulty = Faulty::with_visitor(&world.rig, call, visitor);
        process(world.tick_with(faulty.ports(), &rules(), &mut Part::default())).unwrap();
        assert_eq!(world.rig.queue.sent(), 4, "before call {call}");
    }
}

/// SC-10: two processes whose clocks are two minutes apart: whichever of them is ahead, the claim of
/// the one at work holds, its own time is over when it has died, and no task is sent twice.
#[tokio::test]
async fn clocks_that_differ_neither_share_the_claim_nor_keep_it() {
    let apart = 2 * MINUTE;
    for is_ahead in [true, false] {
        let world = world();
        let shown =
            if is_ahead { after(world.rig.now(), apart) } else { before(world.rig.now(), apart) };
        let other = ManualClock::at(shown);
        let steps = || Ports { clock: &other, ..world.rig.ports() };
        let term = |now| Term {
            until: after(now, 2 * MINUTE),
            claimed_until: Some(after(now, 3 * MINUTE)),
        };
        let (now, holder) = (world.rig.now(), &world.rig.ledger);
        let until = term(now).claimed_until.unwrap();
        claim::take(holder, CLAIM, "at work", now, until).await.unwrap().unwrap();
        let ports = || TickPorts { steps: steps(), webhooks: &*world.webhooks };
        let mut first = Part::default();
        let report = tick(ports(), &rules(), &mut first, term(other.now())).await.unwrap();
        assert_eq!((report.ran, world.rig.queue.sent()), (Ran::Elsewhere, 1), "ahead {is_ahead}");
        // The holder has died: the other one waits for the end of the claim, by its own clock.
        other.advance_to(until);
        let report = tick(ports(), &rules(), &mut first, term(other.now())).await.unwrap();
        assert_eq!((report.ran, world.rig.queue.sent()), (Ran::Whole, 4), "ahead {is_ahead}");
        world.rig.clock.advance(MINUTE);
        assert_eq!(world.tick().await.ran, Ran::Whole);
        assert_eq!(world.rig.queue.sent(), 4, "ahead {is_ahead}");
    }
}

/// Each call fails or is the process's last, before and after its effect: the next ticks make up
/// for it.
#[tokio::test]
async fn any_fault_is_made_up_for_by_the_next_ticks() {
    let calls = {
        let world = world();
        let faulty = Faulty::new(&world.rig, []);
        process(world.tick_with(faulty.ports(), &rules(), &mut Part::default())).unwrap();
        faulty.calls().len()
    };
    for call in 0..calls {
        for fault in Fault::ALL {
            let world = world();
            let faulty = Faulty::new(&world.rig, [(call, fault)]);
            let _ = process(async {
                let ports = TickPorts { steps: faulty.ports(), webhooks: &*world.webhooks };
                drop(tick(ports, &rules(), &mut Part::default(), world.term()).await);
            });
            for _ in 0..3 {
                world.rig.clock.advance(10 * MINUTE);
                world.tick().await;
            }
            world.rig.settle().await;
            for job in ["lost", "logged", "listed"] {
                assert_eq!(world.rig.stands(&extract(job)), "stored", "call {call} {fault:?}");
            }
        }
    }
}

/// SC-15: without time nothing is begun, and the part that had no turn begins the next tick.
#[tokio::test]
async fn a_part_that_had_no_turn_begins_the_next_tick() {
    let world = world();
    let mut first = Part::default();
    let term = Term { until: world.rig.now(), claimed_until: None };
    let ports = TickPorts { steps: world.rig.ports(), webhooks: &*world.webhooks };
    let report = tick(ports, &rules(), &mut first, term).await.unwrap();
    assert_eq!((report.ran, first), (Ran::OutOfTime, Part::Recovery));
    assert!(report.recovered.is_none());
    assert_eq!(world.rig.jobs.calls(), []);

    // The list of jobs asks for a pause: what comes after it has its turn first the next time.
    let throttled = retry_after(error(ApiErrorKind::Throttled, Some(429)), MINUTE);
    world.rig.jobs.fail_list(throttled);
    let report = world.tick_with(world.rig.ports(), &rules(), &mut first).await;
    assert_eq!((report.ran, first), (Ran::Paused, Part::Retirements));
    assert_eq!(report.paused_until, Some(after(world.rig.now(), MINUTE)));
    assert_eq!(report.summary().troubles.len(), 1);
    assert_eq!(world.tick_with(world.rig.ports(), &rules(), &mut first).await.ran, Ran::Paused);
    assert_eq!(first, Part::Retirements);
    world.rig.clock.advance(MINUTE);
    assert_eq!(world.tick_with(world.rig.ports(), &rules(), &mut first).await.ran, Ran::Whole);
    let tasks: BTreeSet<_> = world.rig.queue.tasks().into_iter().collect();
    assert_eq!((first, tasks.len()), (Part::Recovery, 3));
}

/// Trouble ends a part and leaves the others alone.
#[tokio::test]
async fn trouble_ends_a_part_and_leaves_the_others_alone() {
    use crate::receive::tests::bench::{Bench, Fault};
    let (bench, world) = (Bench::new(), world());
    bench.gate.spoil_all("list_due", Fault::Before(ErrorKind::Unavailable));
    let report = world.tick_with(bench.ports(), &rules(), &mut Part::default()).await;
    assert_eq!(report.ran, Ran::Whole);
    let troubles = report.summary().troubles;
    assert_eq!(troubles.keys().copied().collect::<Vec<_>>(), ["bulk_polling", "sweep"]);
    assert_eq!(report.summary().gap, 1, "{report:?}");
    let lists = bench.jobs.calls();
    assert!(lists.iter().any(|call| matches!(call, Call::List(Kind::Crawl, _))));
}

/// Whichever part begins, the others come after it, each once.
#[test]
fn each_part_has_its_turn() {
    for first in Part::ALL {
        let parts: Vec<_> = first.and_others().collect();
        assert_eq!((parts[0], parts.len()), (first, Part::ALL.len()));
        assert!(Part::ALL.iter().all(|part| parts.contains(part)));
    }
    assert_eq!(Part::Retirements.next(), Part::Recovery);
}
