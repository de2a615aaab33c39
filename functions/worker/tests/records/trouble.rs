//! Trouble of one record, of the account, and messages that come twice.

use std::time::Duration;

use domain::entry::StateName;
use domain::job::JobStatus;
use domain::ports::{ApiError, ApiErrorKind, Clock as _};
use domain::task::Task;
use domain::testing::extract_answer;
use domain::time::{after, between};
use futures_util::future::join;

use super::rig::{Rig, error, event, failures, key, rig};

fn state(rig: &Rig, id: &str) -> StateName {
    rig.ledger.entry(&key(id)).unwrap().state.name()
}

/// WK-02: the table cannot give the second row of three: exactly that message is named.
#[tokio::test]
async fn an_error_of_the_table_names_exactly_its_own_message() {
    let rig = rig();
    let tasks = [rig.finished("j1").await, rig.finished("j2").await, rig.finished("j3").await];
    assert!(rig.ledger.corrupt(&key("j2")));
    assert_eq!(rig.work(&tasks.each_ref().map(String::as_str)).await, ["m1"]);
    assert_eq!((state(&rig, "j1"), state(&rig, "j3")), (StateName::Stored, StateName::Stored));
    assert!(rig.queue.tasks().is_empty(), "nothing is sent for what comes again by itself");
}

/// WK-02: the platform refuses the connection, or answers what nobody can read, about the second of
/// three. It is not lost: its row is put off, and has a task of its own in place of the message.
#[tokio::test]
async fn trouble_of_the_platform_puts_exactly_its_own_job_off() {
    for kind in [ApiErrorKind::Unavailable, ApiErrorKind::Unreadable] {
        let rig = rig();
        let tasks = [rig.finished("j1").await, rig.announce("j2").await, rig.finished("j3").await];
        let job_id = key("j2").job_id;
        rig.jobs.script.answer_extract(&job_id, Err(error(kind)));
        rig.jobs.script.answer_extract(&job_id, Ok(extract_answer(&job_id, JobStatus::Completed)));
        assert!(rig.work(&tasks.each_ref().map(String::as_str)).await.is_empty(), "{kind:?}");
        let states = ["j1", "j2", "j3"].map(|id| state(&rig, id));
        assert_eq!(states, [StateName::Stored, StateName::Received, StateName::Stored]);
        assert_eq!(rig.queue.tasks(), [Task { key: key("j2") }]);
        rig.clock.advance(rig.worker.pipeline.limits.backoff_cap);
        assert!(rig.work(&[&tasks[1]]).await.is_empty());
        assert_eq!((state(&rig, "j2"), rig.looks()), (StateName::Stored, 4), "{kind:?}");
    }
}

/// WK-05: `Retry-After: 3600`, and one of 50,000 clamped, with twenty seconds left and four others
/// waiting: nobody sleeps and no message is named, so that none nears the dead-letter queue. The
/// account pauses: the platform is not asked about the others, which are put off as well, and all
/// are stored afterwards.
#[tokio::test]
async fn throttling_costs_neither_sleep_nor_receives() {
    for header in ["3600", "50000"] {
        let rig = rig();
        let limits = &rig.worker.pipeline.limits;
        let clamp = limits.retry_after_clamp;
        let wait = domain::backoff::parse_retry_after(header, rig.clock.now(), clamp).unwrap();
        let job_id = key("j1").job_id;
        let throttled = ApiError {
            status: Some(429),
            retry_after: Some(wait),
            ..error(ApiErrorKind::Throttled)
        };
        rig.jobs.script.answer_extract(&job_id, Err(throttled));
        let mut tasks = vec![rig.finished("j1").await];
        for id in ["j2", "j3", "j4", "j5"] {
            tasks.push(rig.finished(id).await);
        }
        let tasks: Vec<_> = tasks.iter().map(String::as_str).collect();
        let deadline = after(rig.clock.now(), Duration::from_secs(20));
        assert!(rig.work_until(&tasks, deadline).await.is_empty(), "{header}");
        assert_eq!((rig.clock.sleeps(), rig.looks()), (Vec::new(), 1), "{header}");
        let hour = Duration::from_hours(1);
        for id in ["j1", "j2", "j3", "j4", "j5"] {
            let row = rig.ledger.entry(&key(id)).unwrap();
            let off = between(rig.clock.now(), row.not_before.unwrap());
            assert!(off >= hour && off < hour + Duration::from_mins(2), "{id}: {off:?}");
            assert_eq!((row.state.name(), row.counters.sweeps), (StateName::Received, 0));
        }
        rig.clock.advance(hour + Duration::from_mins(2));
        assert!(rig.work(&tasks).await.is_empty());
        assert_eq!(rig.results.keys().len(), 5, "{header}");
    }
}

/// DQ-02: two messages for one job, one after the other and at once: both are acknowledged, and one
/// result is stored.
#[tokio::test]
async fn two_messages_for_one_job_are_both_acknowledged() {
    let rig = rig();
    let task = rig.finished("j1").await;
    for _ in 0..2 {
        assert!(rig.work(&[&task]).await.is_empty());
    }
    assert_eq!((rig.results.keys().len(), rig.looks()), (1, 1), "the second is not even asked for");
    let task = rig.finished("j2").await;
    let deadline = rig.in_a_minute();
    let work = || rig.worker.work(event(&[&task]), deadline);
    let (one, other) = join(work(), work()).await;
    assert_eq!((failures(&one.unwrap()).len(), failures(&other.unwrap()).len()), (0, 0));
    assert_eq!((rig.results.keys().len(), state(&rig, "j2")), (2, StateName::Stored));
}
