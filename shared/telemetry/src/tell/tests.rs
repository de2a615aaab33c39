use std::time::Duration;

use domain::announce::AnnounceOutcome;
use domain::entry::{DeadReason, StateName};
use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::keyring::NoKeys;
use domain::poll::BulkPolled;
use domain::ports::{ApiError, ApiErrorKind, ErrorKind, PortError};
use domain::receive::{Reception, Unavailable};
use domain::reconcile::Reconciled;
use domain::replay::Replayed;
use domain::signature::Headers;
use domain::signature::verdict::Unconfigured;
use domain::subscriptions::Subscriptions;
use domain::sweep::Swept;
use domain::tick::{Outcome, Part, Ran, TickReport};
use domain::time::{Timestamp, after};
use domain::work::{FollowedUp, PutOff, Skip, Worked};

use super::*;
use crate::catalogue::{Counter, Gauge, Timing};
use crate::metrics::Metrics;

const TOOK: Duration = Duration::from_millis(3);

struct NoHeaders;

impl Headers for NoHeaders {
    fn values(&self, _: &str) -> Vec<&[u8]> {
        Vec::new()
    }
}

fn key() -> JobKey {
    JobKey::new(Kind::Extract, JobId::parse("j1").unwrap())
}

fn trouble() -> PortError {
    PortError::new("ledger", "write", ErrorKind::Unavailable)
        .with_source(std::io::Error::other("the disk is full"))
}

fn accepted(outcome: AnnounceOutcome) -> Reception {
    let (delivery_id, secret) = (Some("d1".to_owned()), "current".to_owned());
    Reception::Accepted { key: key(), outcome, delivery_id, secret }
}

fn receptions() -> Vec<(Reception, Counter)> {
    let unconfigured = NoKeys::Unconfigured(Unconfigured::NoSecret);
    vec![
        (accepted(AnnounceOutcome::New), Counter::DeliveriesAccepted),
        (accepted(AnnounceOutcome::Sent(StateName::Expected)), Counter::DeliveriesAccepted),
        (accepted(AnnounceOutcome::Known(StateName::Stored)), Counter::DeliveriesRepeated),
        (Reception::Ignored { event: "ping\n".to_owned() }, Counter::DeliveriesIgnored),
        (Reception::Unusable { code: "job_id_missing" }, Counter::DeliveriesUnusable),
        (
            Reception::Unavailable(Unavailable::Secrets(unconfigured)),
            Counter::DeliveriesUnavailable,
        ),
        (Reception::Unavailable(Unavailable::Port(trouble())), Counter::DeliveriesUnavailable),
        (Reception::Unavailable(Unavailable::Deadline), Counter::DeliveriesUnavailable),
    ]
}

fn outcomes() -> Vec<(Result<Worked, PortError>, Counter)> {
    let put_off = |because| Worked::PutOff { wait: Duration::from_secs(90), because };
    let api = ApiError::new(ApiErrorKind::Unavailable, "no answer came in time");
    vec![
        (
            Ok(Worked::Stored { key: "kind=extract/j1".to_owned(), follow_up: None }),
            Counter::JobsStored,
        ),
        (Ok(Worked::Superseded { by: JobId::parse("j2").unwrap() }), Counter::JobsSuperseded),
        (Ok(Worked::Dead(DeadReason::Gone)), Counter::JobsDead),
        (Ok(put_off(PutOff::Unfinished(JobStatus::Processing))), Counter::JobsPutOff),
        (Ok(put_off(PutOff::Trouble(api))), Counter::JobsPutOff),
        (Ok(Worked::Skipped(Skip::Absent)), Counter::TasksUnknown),
        (Err(trouble()), Counter::TasksFailed),
    ]
}

#[test]
fn deliveries_are_counted_by_what_became_of_them() {
    let metrics = Metrics::for_flushes();
    for (reception, counter) in receptions() {
        let before = metrics.read(counter);
        delivery(&metrics, &reception, &NoHeaders, b"", TOOK);
        assert_eq!(metrics.read(counter), before + 1, "{reception:?}");
    }
    delivery_unread(&metrics, 413);
    assert_eq!(metrics.read(Counter::DeliveriesUnread), 1);
    let all = u64::try_from(receptions().len()).unwrap() + 1;
    assert_eq!(metrics.counts().values().sum::<u64>(), all, "each once");
    assert_eq!(metrics.take_values(Timing::Delivery).len(), receptions().len());
}

#[test]
fn tasks_are_counted_by_what_became_of_them() {
    let metrics = Metrics::for_flushes();
    for (worked, counter) in outcomes() {
        let before = metrics.read(counter);
        task(&metrics, &key(), &worked, TOOK);
        assert_eq!(metrics.read(counter), before + 1, "{worked:?}");
    }
    task_panicked(&metrics, &key());
    assert_eq!(metrics.read(Counter::TasksPanicked), 1);
    let all = u64::try_from(outcomes().len()).unwrap() + 1;
    assert_eq!(metrics.counts().values().sum::<u64>(), all, "each once");
}

/// Caps that were reached, and what is paid for once more, are counted beside the outcome.
#[test]
fn caps_and_retries_are_counted_beside_the_outcome() {
    let metrics = Metrics::for_flushes();
    let stored = |follow_up| Worked::Stored { key: "k".to_owned(), follow_up: Some(follow_up) };
    let (wait, because) = (Duration::from_mins(15), PutOff::Spent);
    for worked in [
        stored(FollowedUp::Asked { items: 7, left: 1 }),
        stored(FollowedUp::Capped { items: 2 }),
        Worked::PutOff { wait, because },
    ] {
        task(&metrics, &key(), &Ok(worked), TOOK);
    }
    let counters = [Counter::ItemsAskedAgain, Counter::RetriesCapped, Counter::RetriesUnspent];
    assert_eq!(counters.map(|counter| metrics.read(counter)), [7, 1, 1]);
    assert_eq!((metrics.read(Counter::JobsStored), metrics.read(Counter::JobsPutOff)), (2, 1));
}

#[test]
fn ticks_are_counted_part_by_part() {
    let metrics = Metrics::for_flushes();
    let some = Swept {
        sent: 1,
        dead: 2,
        adopted: 3,
        not_accepted: 4,
        ambiguous: 5,
        unreadable: 6,
        ..Swept::default()
    };
    swept(&metrics, &Ok(some));
    swept(&metrics, &Err(trouble()));
    polled(&metrics, &Ok(BulkPolled { pages: 7, announced: 8, ..BulkPolled::default() }));
    let unread = Some(ApiError::new(ApiErrorKind::Unreadable, "the answer has no list `jobs`"));
    polled(&metrics, &Ok(BulkPolled { trouble: unread, ..BulkPolled::default() }));
    polled(&metrics, &Err(trouble()));
    expired_removed(&metrics, &Ok(9));
    expired_removed(&metrics, &Err(trouble()));
    tick(&metrics, TOOK);
    for (counter, count) in [
        (Counter::TasksSwept, 1),
        (Counter::JobsDead, 2),
        (Counter::IntentsAdopted, 3),
        (Counter::IntentsNotAccepted, 4),
        (Counter::IntentsAmbiguous, 5),
        (Counter::RowsUnreadable, 6),
        (Counter::ListPages, 7),
        (Counter::JobsAnnounced, 8),
        (Counter::ListTroubles, 1),
        (Counter::RowsExpired, 9),
        (Counter::TickTroubles, 3),
        (Counter::Ticks, 1),
    ] {
        assert_eq!(metrics.read(counter), count, "{counter:?}");
    }
}

/// SC-07: a list that is none is counted where an alarm looks, and so is how much was on the others.
#[test]
fn a_tick_is_told_part_by_part() {
    let metrics = Metrics::for_flushes();
    let at = Timestamp::UNIX_EPOCH;
    let subscriptions = Subscriptions::of(&Kind::ALL, None, &[]);
    let replayed = Replayed {
        pages: 1,
        announced: 2,
        unreadable: 3,
        faulty: 4,
        subscriptions: Some(subscriptions),
        read_at: Some(at),
        ..Replayed::default()
    };
    let api = ApiError::new(ApiErrorKind::Unreadable, "the answer has no list `jobs`");
    let reconciled = Reconciled {
        pages: 5,
        listed: 15,
        announced: 6,
        expected: 7,
        unreadable: 8,
        faulty: 9,
        walked_at: Some(at),
        trouble: Some(api),
        ..Reconciled::default()
    };
    let report = TickReport {
        ended: after(at, Duration::from_secs(10)),
        swept: Some(Ok(Swept { sent: 1, ..Swept::default() })),
        replayed: Some(Outcome { did: replayed, error: Some(trouble()) }),
        reconciled: Some(Outcome { did: reconciled, error: None }),
        cut: Some(Part::Retirements),
        ..TickReport::default()
    };
    ticked(&metrics, &report);
    let counted = [
        ("jobs_expected", 7),
        ("jobs_listed", 15),
        ("jobs_missed", 8),
        ("list_pages", 5),
        ("list_troubles", 1),
        ("listed_unreadable", 11),
        ("log_pages", 1),
        ("rows_unreadable", 13),
        ("tasks_swept", 1),
        ("tick_troubles", 2),
        ("ticks", 1),
    ];
    assert_eq!(metrics.counts(), counted.into());
    for (gauge, value) in
        [(Gauge::ReplayAge, 10), (Gauge::ReconcileAge, 10), (Gauge::SubscriptionsWrong, 3)]
    {
        assert_eq!(metrics.gauge(gauge), Some(value), "{gauge:?}");
    }
    // A run that another one kept from its work is no heartbeat.
    ticked(&metrics, &TickReport { ran: Ran::Elsewhere, ..TickReport::default() });
    assert_eq!(metrics.read(Counter::Ticks), 1);
}
