//! Holds of a server that is no more: its tasks need not wait for their end.

use domain::ports::{ErrorKind, PortError};
use domain::task::Task;
use rusqlite::params;

use crate::limits::{TAKES_RELEASED_MAX, TASKS_RELEASED_MAX};
use crate::row::micros;
use crate::store::SqliteStore;

/// The port's name in errors.
const QUEUE: &str = "queue";

impl SqliteStore {
    /// Tasks that are held, at most [`TASKS_RELEASED_MAX`]; without those that were taken more
    /// often than [`TAKES_RELEASED_MAX`] times.
    ///
    /// # Errors
    /// Transient or `Denied`.
    pub async fn held_tasks(&self) -> Result<Vec<Task>, PortError> {
        let now = micros(self.clock().now());
        let bodies = self
            .read(QUEUE, "held_tasks", move |connection| {
                connection
                    .prepare_cached(
                        "SELECT body FROM tasks WHERE visible_at > ?1 AND takes BETWEEN 1 AND ?2 \
                         ORDER BY visible_at, id LIMIT ?3",
                    )?
                    .query_map(params![now, TAKES_RELEASED_MAX, TASKS_RELEASED_MAX], |row| {
                        row.get::<_, String>(0)
                    })?
                    .collect::<rusqlite::Result<Vec<_>>>()
            })
            .await?;
        // What is no task is dropped when it is received.
        Ok(bodies.iter().filter_map(|body| Task::decode(body).ok()).collect())
    }

    /// Ends the holds of [`held_tasks`](Self::held_tasks), and says how many there were. For the
    /// only server of the file, before it takes its first task: whoever held them is no more.
    ///
    /// # Errors
    /// Transient or `Denied`.
    pub async fn release_held(&self) -> Result<u64, PortError> {
        let now = micros(self.clock().now());
        let released = self
            .write(QUEUE, "release_held", move |connection| {
                connection
                    .prepare_cached(
                        "UPDATE tasks SET visible_at = ?1 WHERE id IN (SELECT id FROM tasks \
                         WHERE visible_at > ?1 AND takes BETWEEN 1 AND ?2 \
                         ORDER BY visible_at, id LIMIT ?3)",
                    )?
                    .execute(params![now, TAKES_RELEASED_MAX, TASKS_RELEASED_MAX])
            })
            .await?;
        u64::try_from(released).map_err(|error| {
            PortError::new(QUEUE, "release_held", ErrorKind::Corrupt).with_source(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::limits::QUEUE_DELAY_MAX;
    use domain::ports::{HeldTask, Queue as _, TaskSource as _};

    use super::*;
    use crate::testing::{TestStore, key, test_store};

    const HOLD: Duration = Duration::from_mins(5);

    fn task(id: &str) -> Task {
        Task { key: key(id) }
    }

    fn tasks(held: Vec<HeldTask>) -> Vec<Task> {
        held.into_iter().map(|held| held.task).collect()
    }

    #[tokio::test]
    async fn what_was_held_is_visible_and_what_was_put_off_is_not() {
        let TestStore { store, directory: _directory, .. } = test_store();
        for id in ["a", "b"] {
            store.send(&task(id), Duration::ZERO).await.unwrap();
        }
        let held = store.receive(10, HOLD).await.unwrap();
        store.send(&task("later"), QUEUE_DELAY_MAX).await.unwrap();
        assert_eq!(store.held_tasks().await.unwrap(), [task("a"), task("b")]);
        assert_eq!(store.release_held().await.unwrap(), 2);
        assert_eq!(store.held_tasks().await.unwrap(), []);
        let again = store.receive(10, HOLD).await.unwrap();
        assert_eq!(tasks(again.clone()), [task("a"), task("b")]);
        // The former holder's receipts hold nothing any more.
        store.acknowledge(&held[0]).await.unwrap();
        assert_eq!(store.held_tasks().await.unwrap().len(), 2);
        store.acknowledge(&again[0]).await.unwrap();
        assert_eq!(store.held_tasks().await.unwrap(), [task("b")]);
    }

    /// A task that ends every server that takes it up may not do so without a pause.
    #[tokio::test]
    async fn a_task_that_was_taken_very_often_waits_for_the_end_of_its_hold() {
        let TestStore { store, clock, directory: _directory } = test_store();
        store.send(&task("a"), Duration::ZERO).await.unwrap();
        for _ in 0..TAKES_RELEASED_MAX {
            assert_eq!(store.receive(1, HOLD).await.unwrap().len(), 1);
            assert_eq!(store.release_held().await.unwrap(), 1);
        }
        assert_eq!(store.receive(1, HOLD).await.unwrap().len(), 1);
        assert_eq!(store.held_tasks().await.unwrap(), []);
        assert_eq!(store.release_held().await.unwrap(), 0);
        assert_eq!(store.receive(1, HOLD).await.unwrap(), []);
        clock.advance(HOLD);
        assert_eq!(store.receive(1, HOLD).await.unwrap().len(), 1);
    }
}
