//! [`domain::ports::Queue`] and [`domain::ports::TaskSource`].

use std::time::Duration;

use domain::job::Kind;
use domain::limits::QUEUE_DELAY_MAX;
use domain::ports::{ErrorKind, HeldTask, Queue, TaskSource};
use domain::task::Task;

use super::QueueSubject;
use super::samples::{ODD_IDS, key, key_of};

const HOLD: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

fn task(id: &str) -> Task {
    Task { key: key(id) }
}

async fn send(subject: &QueueSubject<impl Queue>, id: &str, delay: Duration) {
    subject.queue.send(&task(id), delay).await.unwrap();
}

async fn receive(subject: &QueueSubject<impl TaskSource>, limit: u32) -> Vec<HeldTask> {
    let held = subject.queue.receive(limit, HOLD).await.unwrap();
    assert!(held.len() <= usize::try_from(limit).unwrap());
    held
}

fn ids(held: &[HeldTask]) -> Vec<&str> {
    let mut ids: Vec<_> = held.iter().map(|held| held.task.key.job_id.as_str()).collect();
    ids.sort_unstable();
    ids
}

/// An empty queue answers at once, with nothing.
pub async fn an_empty_queue_gives_nothing<Q: Queue + TaskSource>(subject: &QueueSubject<Q>) {
    assert!(receive(subject, 10).await.is_empty());
}

/// A task is received as it was sent, and is gone once it is acknowledged.
pub async fn an_acknowledged_task_is_gone<Q: Queue + TaskSource>(subject: &QueueSubject<Q>) {
    send(subject, "a", Duration::ZERO).await;
    let held = receive(subject, 10).await;
    assert_eq!(ids(&held), ["a"]);
    assert_eq!(held[0].task, task("a"));
    for _ in 0..2 {
        subject.queue.acknowledge(&held[0]).await.unwrap();
    }
    subject.clock.advance(2 * HOLD);
    assert!(receive(subject, 10).await.is_empty());
}

/// A task is hidden while it is held, and visible again afterwards.
pub async fn a_held_task_is_hidden_until_the_hold_ends<Q: Queue + TaskSource>(
    subject: &QueueSubject<Q>,
) {
    send(subject, "a", Duration::ZERO).await;
    let first = receive(subject, 10).await;
    assert_eq!(ids(&first), ["a"]);
    subject.clock.advance(HOLD.saturating_sub(SECOND));
    assert!(receive(subject, 10).await.is_empty());
    subject.clock.advance(SECOND);
    let second = receive(subject, 10).await;
    assert_eq!(ids(&second), ["a"]);
    assert_ne!(second[0].receipt, first[0].receipt);
    assert!(receive(subject, 10).await.is_empty());
}

/// Who acknowledges after the hold takes the task from nobody who holds it now.
pub async fn a_late_acknowledgement_changes_nothing<Q: Queue + TaskSource>(
    subject: &QueueSubject<Q>,
) {
    send(subject, "a", Duration::ZERO).await;
    let first = receive(subject, 10).await;
    subject.clock.advance(HOLD);
    let second = receive(subject, 10).await;
    subject.queue.acknowledge(&first[0]).await.unwrap();
    subject.clock.advance(HOLD);
    let third = receive(subject, 10).await;
    assert_eq!(ids(&third), ["a"], "the task is still owed");
    subject.queue.acknowledge(&second[0]).await.unwrap();
    subject.queue.acknowledge(&third[0]).await.unwrap();
    subject.clock.advance(HOLD);
    assert!(receive(subject, 10).await.is_empty());
}

/// A receipt that this queue never gave acknowledges nothing.
pub async fn a_foreign_receipt_is_harmless<Q: Queue + TaskSource>(subject: &QueueSubject<Q>) {
    send(subject, "a", Duration::ZERO).await;
    for receipt in ["", "x", "1", "1-", "99999999999999999999-1", "' OR 1=1 --"] {
        let held = HeldTask { task: task("a"), receipt: receipt.to_owned() };
        subject.queue.acknowledge(&held).await.unwrap();
    }
    assert_eq!(ids(&receive(subject, 10).await), ["a"]);
}

/// A delayed task becomes visible when its delay has passed, to the second.
pub async fn a_delayed_task_becomes_visible_in_time<Q: Queue + TaskSource>(
    subject: &QueueSubject<Q>,
) {
    for delay in [SECOND, HOLD, QUEUE_DELAY_MAX] {
        send(subject, "a", delay).await;
        subject.clock.advance(delay.saturating_sub(SECOND));
        assert!(receive(subject, 10).await.is_empty(), "{delay:?}");
        subject.clock.advance(SECOND);
        let held = receive(subject, 10).await;
        assert_eq!(ids(&held), ["a"], "{delay:?}");
        subject.queue.acknowledge(&held[0]).await.unwrap();
    }
}

/// DQ-11: a delay over the longest is refused, and nothing is sent.
pub async fn a_longer_delay_is_refused<Q: Queue + TaskSource>(subject: &QueueSubject<Q>) {
    for delay in [QUEUE_DELAY_MAX + Duration::from_millis(1), Duration::MAX] {
        let error = subject.queue.send(&task("a"), delay).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{delay:?}");
    }
    subject.clock.advance(2 * QUEUE_DELAY_MAX);
    assert!(receive(subject, 10).await.is_empty());
}

/// Tasks are not deduplicated: two sends are two messages, each acknowledged by itself.
pub async fn equal_tasks_are_two_messages<Q: Queue + TaskSource>(subject: &QueueSubject<Q>) {
    send(subject, "a", Duration::ZERO).await;
    send(subject, "a", Duration::ZERO).await;
    let held = receive(subject, 10).await;
    assert_eq!(ids(&held), ["a", "a"]);
    assert_ne!(held[0].receipt, held[1].receipt);
    subject.queue.acknowledge(&held[0]).await.unwrap();
    subject.clock.advance(HOLD);
    assert_eq!(ids(&receive(subject, 10).await), ["a"]);
}

/// No more tasks are taken than were asked for, and the others stay visible.
pub async fn no_more_tasks_are_taken_than_asked_for<Q: Queue + TaskSource>(
    subject: &QueueSubject<Q>,
) {
    for id in ["a", "b", "c", "d"] {
        send(subject, id, Duration::ZERO).await;
    }
    assert!(receive(subject, 0).await.is_empty());
    let mut all = receive(subject, 3).await;
    assert_eq!(all.len(), 3);
    all.extend(receive(subject, 3).await);
    assert_eq!(ids(&all), ["a", "b", "c", "d"]);
    assert!(receive(subject, 3).await.is_empty());
}

/// Odd ids and all kinds travel as they are.
pub async fn odd_tasks_travel_as_they_are<Q: Queue + TaskSource>(subject: &QueueSubject<Q>) {
    let longest = "\"".repeat(128);
    let mut tasks = Vec::new();
    for kind in Kind::ALL {
        for id in ODD_IDS.into_iter().chain([longest.as_str()]) {
            tasks.push(Task { key: key_of(kind, id) });
        }
    }
    for task in &tasks {
        subject.queue.send(task, Duration::ZERO).await.unwrap();
    }
    let mut found: Vec<_> = receive(subject, 100).await.into_iter().map(|held| held.task).collect();
    found.sort();
    tasks.sort();
    assert_eq!(found, tasks);
}

/// A message that is no task is dropped, and stands in nobody's way.
pub async fn a_message_that_is_no_task_is_dropped<Q: Queue + TaskSource>(
    subject: &QueueSubject<Q>,
) {
    let Some(send_body) = &subject.send_body else { return };
    let large = "x".repeat(10_000);
    for body in ["", "{}", "null", r#"{"v":9,"job_id":"a","kind":"extract"}"#, &large] {
        send_body(body);
    }
    send(subject, "a", Duration::ZERO).await;
    let mut found = Vec::new();
    for _ in 0..6 {
        found.extend(receive(subject, 2).await);
    }
    assert_eq!(ids(&found), ["a"]);
    subject.queue.acknowledge(&found[0]).await.unwrap();
    subject.clock.advance(HOLD);
    assert!(receive(subject, 10).await.is_empty());
}
