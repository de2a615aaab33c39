use std::time::Duration;

use domain::announce::AnnounceOutcome;
use domain::entry::{DeadReason, StateName};
use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::keyring::NoKeys;
use domain::poll::BulkPolled;
use domain::ports::{ApiError, ApiErrorKind, ErrorKind, PortError};
use domain::receive::{Reception, Unavailable};
use domain::signature::Headers;
use domain::signature::verdict::Unconfigured;
use domain::sweep::Swept;
use domain::work::{PutOff, Skip, Worked};

use super::*;
use crate::catalogue::{Counter, Timing};
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
        (Ok(Worked::Stored { key: "kind=extract/j1".to_owned() }), Counter::JobsStored),
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
        (Counter::RowsExpired, 9),
        (Counter::TickTroubles, 3),
        (Counter::Ticks, 1),
    ] {
        assert_eq!(metrics.read(counter), count, "{counter:?}");
    }
}
