use std::time::Duration;

use domain::entry::{Cause, DeadReason, State, StateName};
use domain::ports::{Entries, Expected, TaskSource as _};
use domain::testing::MemoryLedger;
use domain::time::after;

use super::*;
use crate::SqliteStore;
use crate::testing::{TestStore, entry, key, start, stranger, test_store};

fn announcement(token: &str) -> Announcement {
    Announcement {
        cause: Cause::Delivery,
        delivery_id: Some("d1".to_owned()),
        token: token.to_owned(),
    }
}

async fn tasks(store: &SqliteStore) -> usize {
    store.receive(10, Duration::ZERO).await.unwrap().len()
}

fn dead(reason: DeadReason) -> Entry {
    let state = State::Dead { reason, error: None, result: None };
    entry("a").settled(state, Cause::Work, start(), &Limits::default())
}

/// Whatever is there, the row becomes what a ledger makes of it that reads and writes in two
/// steps; and a task is there exactly if that ledger wants one sent.
#[tokio::test]
async fn every_row_is_announced_as_in_parts() {
    let limits = Limits::default();
    let soon = after(start(), Duration::from_secs(1));
    let late = after(start(), limits.retention);
    let enqueued = entry("a").swept(start(), &limits);
    let received = Entry { state: State::Received, ..enqueued };
    let rows = [
        (None, soon),
        (Some(entry("a")), soon),
        (Some(received.clone()), soon),
        (Some(received), late),
        (Some(dead(DeadReason::Failed)), soon),
        (Some(dead(DeadReason::Failed)), late),
        (Some(dead(DeadReason::Gone)), soon),
    ];
    for (row, now) in rows {
        let TestStore { store, clock, directory: _directory } = test_store();
        clock.advance_to(now);
        let memory = MemoryLedger::new();
        if let Some(row) = &row {
            memory.place(row);
            Entries::write(&store, row, Expected::Absent(start())).await.unwrap();
        }
        let (announcement, limits) = (announcement("ours"), Limits::default());
        let wanted = memory.announce(&key("a"), &announcement, now, &limits).await.unwrap();
        let found = store.announce(&key("a"), &announcement, now, &limits).await.unwrap();
        let sent = match wanted {
            Announcing::Unsent { before, .. } => Announcing::Sent { before },
            known => known,
        };
        assert_eq!(found, sent, "{row:?}");
        assert_eq!(store.load(&key("a")).await.unwrap(), memory.entry(&key("a")), "{row:?}");
        let is_sent = matches!(found, Announcing::Sent { .. });
        assert_eq!(tasks(&store).await, usize::from(is_sent), "{row:?}");
    }
}

/// DQ-01: the same call once more, because its answer was lost, sends its task again and leaves
/// the row.
#[tokio::test]
async fn a_repeated_call_finds_its_own_row() {
    let TestStore { store, directory: _directory, .. } = test_store();
    let (ours, limits) = (announcement("ours"), Limits::default());
    for _ in 0..2 {
        let announced = store.announce(&key("a"), &ours, start(), &limits).await.unwrap();
        assert_eq!(announced, Announcing::Sent { before: None });
    }
    assert_eq!(store.load(&key("a")).await.unwrap().unwrap().version, 1);
    let others = announcement("others");
    let announced = store.announce(&key("a"), &others, start(), &limits).await.unwrap();
    assert_eq!(announced, Announcing::Known(StateName::Received));
    assert_eq!(tasks(&store).await, 2);
}

/// A row that does not decode is reported, and neither written over nor given a task.
#[tokio::test]
async fn a_damaged_row_is_left_alone() {
    let TestStore { store, directory: _directory, .. } = test_store();
    Entries::write(&store, &entry("a"), Expected::Absent(start())).await.unwrap();
    stranger(&store).execute("UPDATE entries SET json = '{}'", []).unwrap();
    let announced =
        store.announce(&key("a"), &announcement("ours"), start(), &Limits::default()).await;
    assert_eq!(announced.unwrap_err().kind, ErrorKind::Corrupt);
    let json: String =
        stranger(&store).query_row("SELECT json FROM entries", [], |row| row.get(0)).unwrap();
    assert_eq!(json, "{}");
    assert_eq!(tasks(&store).await, 0);
}

/// Waiting for a task ends when one is sent this way.
#[tokio::test]
async fn a_waiting_worker_is_told() {
    let TestStore { store, directory: _directory, .. } = test_store();
    store.announce(&key("a"), &announcement("ours"), start(), &Limits::default()).await.unwrap();
    let told = store.sent().notified();
    tokio::time::timeout(Duration::from_secs(10), told).await.unwrap();
}
