use domain::ports::Clock as _;

use super::*;
use crate::testing::{TestStore, key, stranger, test_store};

const HOLD: Duration = Duration::from_secs(30);

fn task(id: &str) -> Task {
    Task { key: key(id) }
}

fn count(store: &SqliteStore) -> i64 {
    stranger(store).query_row("SELECT count(*) FROM tasks", [], |row| row.get(0)).unwrap()
}

async fn ids(store: &SqliteStore) -> Vec<String> {
    let held = store.receive(10, HOLD).await.unwrap();
    held.into_iter().map(|held| held.task.key.job_id.to_string()).collect()
}

#[tokio::test]
async fn a_held_task_is_hidden_until_its_hold_ends() {
    let TestStore { store, clock, directory: _directory } = test_store();
    store.send(&task("a"), Duration::ZERO).await.unwrap();
    assert_eq!(ids(&store).await, ["a"]);
    assert_eq!(ids(&store).await, [""; 0]);
    clock.advance(HOLD);
    assert_eq!(ids(&store).await, ["a"]);
}

#[tokio::test]
async fn a_delayed_task_is_visible_when_its_delay_ends() {
    let TestStore { store, clock, directory: _directory } = test_store();
    store.send(&task("late"), QUEUE_DELAY_MAX).await.unwrap();
    store.send(&task("soon"), Duration::from_millis(1)).await.unwrap();
    assert_eq!(ids(&store).await, [""; 0]);
    clock.advance(Duration::from_millis(1));
    assert_eq!(ids(&store).await, ["soon"]);
    clock.advance(QUEUE_DELAY_MAX);
    assert_eq!(ids(&store).await, ["soon", "late"]);
}

#[tokio::test]
async fn a_longer_delay_is_refused() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let delay = QUEUE_DELAY_MAX + Duration::from_nanos(1);
    let error = store.send(&task("a"), delay).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(count(&store), 0);
}

#[tokio::test]
async fn only_the_last_receipt_removes_a_task() {
    let TestStore { store, clock, directory: _directory } = test_store();
    store.send(&task("a"), Duration::ZERO).await.unwrap();
    let first = store.receive(1, HOLD).await.unwrap().remove(0);
    clock.advance(HOLD);
    let second = store.receive(1, HOLD).await.unwrap().remove(0);
    assert_ne!(first.receipt, second.receipt);
    store.acknowledge(&first).await.unwrap();
    assert_eq!(count(&store), 1);
    store.acknowledge(&second).await.unwrap();
    store.acknowledge(&second).await.unwrap();
    assert_eq!(count(&store), 0);
}

/// A receipt does not fit a task that was sent after its own was removed.
#[tokio::test]
async fn an_old_receipt_never_fits_a_new_task() {
    let TestStore { store, directory: _directory, .. } = test_store();
    store.send(&task("old"), Duration::ZERO).await.unwrap();
    let old = store.receive(1, HOLD).await.unwrap().remove(0);
    store.acknowledge(&old).await.unwrap();
    store.send(&task("new"), Duration::ZERO).await.unwrap();
    assert_eq!(ids(&store).await, ["new"]);
    store.acknowledge(&old).await.unwrap();
    for receipt in ["", "1", "x:1", "1:x", "99:1"] {
        let held = HeldTask { task: task("old"), receipt: receipt.to_owned() };
        store.acknowledge(&held).await.unwrap();
    }
    assert_eq!(count(&store), 1);
}

#[tokio::test]
async fn what_is_no_task_is_removed_and_counted() {
    let TestStore { store, directory: _directory, .. } = test_store();
    stranger(&store)
        .execute("INSERT INTO tasks (visible_at, takes, body) VALUES (0, 0, 'no task')", [])
        .unwrap();
    store.send(&task("a"), Duration::ZERO).await.unwrap();
    assert_eq!(ids(&store).await, ["a"]);
    assert_eq!((store.dropped_tasks(), count(&store)), (1, 1));
}

#[tokio::test]
async fn each_of_many_takers_gets_other_tasks() {
    let TestStore { store, directory: _directory, .. } = test_store();
    for number in 0..40 {
        store.send(&task(&number.to_string()), Duration::ZERO).await.unwrap();
    }
    let takers: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.receive(5, HOLD).await.unwrap() })
        })
        .collect();
    let mut seen = Vec::new();
    for taker in takers {
        let held = taker.await.unwrap();
        assert_eq!(held.len(), 5);
        seen.extend(held.into_iter().map(|held| held.task));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 40);
    assert_eq!(store.receive(0, HOLD).await.unwrap(), []);
}

#[tokio::test]
async fn waiting_ends_when_a_task_is_sent_or_due() {
    let TestStore { store, clock, directory: _directory } = test_store();
    let day = Duration::from_hours(24);
    let begun = clock.now();
    store.wait_for_task(day).await.unwrap();
    assert_eq!(between(begun, clock.now()), day);

    // The permit of a task sent meanwhile ends the next wait, whose sleep would move the clock.
    let begun = clock.now();
    store.send(&task("a"), Duration::from_secs(5)).await.unwrap();
    store.wait_for_task(day).await.unwrap();
    assert_eq!(clock.now(), begun);

    assert_eq!(store.next_visible_at().await.unwrap(), Some(after(begun, Duration::from_secs(5))));
    store.wait_for_task(day).await.unwrap();
    assert_eq!(between(begun, clock.now()), Duration::from_secs(5));
    assert_eq!(ids(&store).await, ["a"]);
}

#[tokio::test]
async fn tasks_that_are_held_or_put_off_do_not_wait() {
    let TestStore { store, clock, directory: _directory } = test_store();
    assert_eq!(store.count_waiting().await.unwrap(), 0);
    for id in ["a", "b", "c"] {
        store.send(&task(id), Duration::ZERO).await.unwrap();
    }
    store.send(&task("d"), Duration::from_secs(5)).await.unwrap();
    assert_eq!(store.count_waiting().await.unwrap(), 3);
    assert_eq!(store.receive(1, HOLD).await.unwrap().len(), 1);
    assert_eq!(store.count_waiting().await.unwrap(), 2);
    clock.sleep(HOLD + Duration::from_secs(5)).await;
    assert_eq!(store.count_waiting().await.unwrap(), 4, "a hold that has ended, and a delay");
}
