//! Each line as it is logged.

#![expect(clippy::unwrap_used, reason = "a test that meets something unexpected shall panic")]

mod log;

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
use domain::tick::{Outcome, Ran, TickReport};
use domain::time::{Timestamp, after};
use domain::work::{PutOff, Skip, Worked};
use serde_json::{Value, json};
use settings::LogLevel;
use telemetry::tell::{
    delivery, delivery_unread, expired_removed, polled, swept, task, task_panicked, tick, ticked,
};
use telemetry::{Form, Metrics, invocation, start_into};

use crate::log::Log;

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

fn tell_deliveries(metrics: &Metrics) {
    for reception in [
        accepted(AnnounceOutcome::New),
        accepted(AnnounceOutcome::Known(StateName::Stored)),
        Reception::Ignored { event: "ping\n".to_owned() },
        Reception::Unusable { code: "job_id_missing" },
        Reception::Unavailable(Unavailable::Secrets(NoKeys::Unconfigured(Unconfigured::NoSecret))),
        Reception::Unavailable(Unavailable::Port(trouble())),
        Reception::Unavailable(Unavailable::Deadline),
    ] {
        delivery(metrics, &reception, &NoHeaders, b"", TOOK);
    }
    delivery_unread(metrics, 413);
}

fn tell_tasks(metrics: &Metrics) {
    let put_off = |because| Worked::PutOff { wait: Duration::from_secs(90), because };
    let api = ApiError::new(ApiErrorKind::Unavailable, "no answer came in time");
    for worked in [
        Ok(Worked::Stored { key: "kind=extract/j1".to_owned(), follow_up: None }),
        Ok(Worked::Superseded { by: JobId::parse("j2").unwrap() }),
        Ok(Worked::Dead(DeadReason::Gone)),
        Ok(put_off(PutOff::Unfinished(JobStatus::Processing))),
        Ok(put_off(PutOff::Trouble(api))),
        Ok(Worked::Skipped(Skip::Absent)),
        Err(trouble()),
    ] {
        task(metrics, &key(), &worked, TOOK);
    }
    task_panicked(metrics, &key());
}

fn tell_ticks(metrics: &Metrics) {
    swept(
        metrics,
        &Ok(Swept {
            dead: 1,
            ambiguous: 2,
            unreadable: 3,
            first_unreadable: Some("entry extract job-1 does not decode (line 1)".to_owned()),
            ..Swept::default()
        }),
    );
    swept(metrics, &Err(trouble()));
    let error = ApiError::new(ApiErrorKind::Throttled, "slow down");
    polled(metrics, &Ok(BulkPolled { trouble: Some(error), ..BulkPolled::default() }));
    polled(metrics, &Err(trouble()));
    expired_removed(metrics, &Err(trouble()));
}

fn tell_upkeep(metrics: &Metrics) {
    let (at, limit) = (Timestamp::UNIX_EPOCH, ApiErrorKind::Throttled);
    let replayed = Replayed {
        announced: 2,
        unknown: 1,
        oldest: Some(at),
        subscriptions: Some(Subscriptions::of(&Kind::ALL, None, &[])),
        trouble: Some(ApiError::new(limit, "slow down")),
        ..Replayed::default()
    };
    let reconciled =
        Reconciled { announced: 1, unreadable: 2, faulty: 3, unsure: 4, ..Reconciled::default() };
    let report = TickReport {
        ended: after(at, Duration::from_mins(1)),
        swept: Some(Ok(Swept { sent: 5, ..Swept::default() })),
        replayed: Some(Outcome { did: replayed, error: Some(trouble()) }),
        reconciled: Some(Outcome { did: reconciled, error: Some(trouble()) }),
        claim: Some(trouble()),
        ..TickReport::default()
    };
    ticked(metrics, &report);
    ticked(metrics, &TickReport { ran: Ran::Elsewhere, ..TickReport::default() });
    ticked(metrics, &TickReport::default());
}

fn tell_nothing(metrics: &Metrics) {
    task(metrics, &key(), &Ok(Worked::Skipped(Skip::Settled(StateName::Stored))), TOOK);
    swept(metrics, &Ok(Swept::default()));
    polled(metrics, &Ok(BulkPolled::default()));
    expired_removed(metrics, &Ok(3));
    tick(metrics, TOOK);
}

fn lines(log: &Log) -> Vec<Value> {
    log.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn shown(lines: &[Value]) -> String {
    let line = |line: &Value| {
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
        format!("{} {}\n", line["level"].as_str().unwrap(), line["fields"])
    };
    lines.iter().map(line).collect()
}

// One test, since a process has one log.
#[test]
fn lines_say_what_happened_and_in_which_invocation() {
    let log = Log::default();
    let writer = log.clone();
    start_into(LogLevel::Trace, Form::Json, move || writer.clone()).unwrap();
    let metrics = Metrics::for_flushes();
    tell_deliveries(&metrics);
    insta::assert_snapshot!("deliveries", shown(&lines(&log)));
    tell_tasks(&metrics);
    insta::assert_snapshot!("tasks", shown(&lines(&log)));
    tell_ticks(&metrics);
    insta::assert_snapshot!("ticks", shown(&lines(&log)));
    tell_upkeep(&metrics);
    insta::assert_snapshot!("upkeep", shown(&lines(&log)));
    tell_nothing(&metrics);
    assert_eq!(lines(&log), Vec::<Value>::new());
    let _entered = invocation("8e1b").entered();
    tell_deliveries(&metrics);
    for line in lines(&log) {
        assert_eq!(line["span"], json!({ "name": "invocation", "request_id": "8e1b" }));
    }
}
