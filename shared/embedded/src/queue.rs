//! The queue: tasks in the same file, hidden while somebody holds them.

use std::time::Duration;

use async_trait::async_trait;
use domain::limits::QUEUE_DELAY_MAX;
use domain::ports::{ErrorKind, HeldTask, PortError, Queue, TaskSource};
use domain::task::Task;
use domain::time::{Timestamp, after, between};
use rusqlite::{Connection, params};

use crate::limits::{TAKE_MAX, TASKS_COUNTED_MAX};
use crate::row::{Text, micros};
use crate::store::SqliteStore;

/// The port's name in errors.
const QUEUE: &str = "queue";

/// A delay that the queue does not offer.
#[derive(Debug, thiserror::Error)]
#[error("the delay is {seconds} s, at most {} s are allowed", QUEUE_DELAY_MAX.as_secs())]
struct DelayTooLong {
    seconds: u64,
}

#[async_trait]
impl Queue for SqliteStore {
    async fn send(&self, task: &Task, delay: Duration) -> Result<(), PortError> {
        if delay > QUEUE_DELAY_MAX {
            let error = DelayTooLong { seconds: delay.as_secs() };
            return Err(PortError::new(QUEUE, "send", ErrorKind::Invalid).with_source(error));
        }
        let visible_at = micros(after(self.clock().now(), delay));
        let body = task.encode();
        self.write(QUEUE, "send", move |connection| insert(connection, visible_at, &body)).await?;
        self.sent().notify_one();
        Ok(())
    }
}

/// Sends a task; whoever waits for one is told when it is committed.
pub(crate) fn insert(connection: &Connection, visible_at: i64, body: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO tasks (visible_at, takes, body) VALUES (?1, 0, ?2)")?
        .execute(params![visible_at, body])
        .map(|_| ())
}

#[async_trait]
impl TaskSource for SqliteStore {
    async fn receive(&self, limit: u32, hold: Duration) -> Result<Vec<HeldTask>, PortError> {
        let limit = limit.min(TAKE_MAX);
        let now = self.clock().now();
        let until = micros(after(now, hold));
        let taken = self
            .write(QUEUE, "receive", move |connection| take(connection, micros(now), until, limit))
            .await?;
        self.count_dropped_tasks(taken.dropped);
        Ok(taken.held)
    }

    async fn acknowledge(&self, held: &HeldTask) -> Result<(), PortError> {
        // A receipt that this queue never gave holds nothing.
        let Some((id, takes)) = read_receipt(&held.receipt) else { return Ok(()) };
        self.write(QUEUE, "acknowledge", move |connection| {
            connection
                .prepare_cached("DELETE FROM tasks WHERE id = ?1 AND takes = ?2")?
                .execute([id, takes])
        })
        .await?;
        Ok(())
    }
}

impl SqliteStore {
    /// When the next task becomes visible, one that is held counted by the end of its hold;
    /// `None` while there is none.
    ///
    /// # Errors
    /// Transient or `Denied`.
    pub async fn next_visible_at(&self) -> Result<Option<Timestamp>, PortError> {
        let at: Option<i64> = self
            .read(QUEUE, "next_visible_at", |connection| {
                connection
                    .prepare_cached("SELECT min(visible_at) FROM tasks")?
                    .query_row([], |row| row.get(0))
            })
            .await?;
        Ok(at.and_then(|at| Timestamp::from_microsecond(at).ok()))
    }

    /// How many tasks are visible and wait for a worker, counted to 100,000 and no further.
    ///
    /// # Errors
    /// Transient or `Denied`.
    pub async fn count_waiting(&self) -> Result<u64, PortError> {
        let now = micros(self.clock().now());
        let count: i64 = self
            .read(QUEUE, "count_waiting", move |connection| {
                connection
                    .prepare_cached(
                        "SELECT count(*) FROM \
                         (SELECT 1 FROM tasks WHERE visible_at <= ?1 LIMIT ?2)",
                    )?
                    .query_row(params![now, TASKS_COUNTED_MAX], |row| row.get(0))
            })
            .await?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// Waits until a task may be visible, for at most `at_most`.
    ///
    /// Returns at once if one is visible, when this process sends one, and when a delay or hold
    /// that was known at the call ends. A task sent by another process is noticed after `at_most`.
    /// Each task that is sent ends the wait of one waiter.
    ///
    /// # Errors
    /// Transient or `Denied`.
    pub async fn wait_for_task(&self, at_most: Duration) -> Result<(), PortError> {
        let sent = self.sent().notified();
        let next = self.next_visible_at().await?;
        let now = self.clock().now();
        let wait = next.map_or(at_most, |at| between(now, at).min(at_most));
        if !wait.is_zero() {
            tokio::select! {
                biased;
                () = sent => {}
                () = self.clock().sleep(wait) => {}
            }
        }
        Ok(())
    }
}

struct Taken {
    held: Vec<HeldTask>,
    dropped: u64,
}

fn take(connection: &Connection, now: i64, until: i64, limit: u32) -> rusqlite::Result<Taken> {
    let visible = connection
        .prepare_cached(
            "SELECT id, takes, body FROM tasks WHERE visible_at <= ?1 \
             ORDER BY visible_at, id LIMIT ?2",
        )?
        .query_map(params![now, limit], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<Vec<(i64, i64, Text)>>>()?;
    let mut taken = Taken { held: Vec::with_capacity(visible.len()), dropped: 0 };
    let mut hide =
        connection.prepare_cached("UPDATE tasks SET visible_at = ?2, takes = ?3 WHERE id = ?1")?;
    let mut drop_one = connection.prepare_cached("DELETE FROM tasks WHERE id = ?1")?;
    for (id, takes, body) in visible {
        if let Some(Ok(task)) = body.as_str().map(Task::decode) {
            let take = takes.wrapping_add(1);
            hide.execute([id, until, take])?;
            taken.held.push(HeldTask { task, receipt: write_receipt(id, take) });
        } else {
            drop_one.execute([id])?;
            taken.dropped += 1;
        }
    }
    Ok(taken)
}

/// A receipt names the task and how often it was taken, so that only the last one fits.
fn write_receipt(id: i64, takes: i64) -> String {
    format!("{id}:{takes}")
}

fn read_receipt(receipt: &str) -> Option<(i64, i64)> {
    let (id, takes) = receipt.split_once(':')?;
    Some((id.parse().ok()?, takes.parse().ok()?))
}

#[cfg(test)]
mod tests;
