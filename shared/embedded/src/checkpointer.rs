//! The thread that moves committed pages from the log into the file.
//!
//! `SQLite` would do so inside a commit, and whoever waits for that commit would wait for megabytes
//! to be written and synced. Beside the writer it delays nobody. It never empties the log while
//! the writer goes on appending; that is done by the writer itself once the log has
//! [`CHECKPOINT_PAGES`](crate::limits::CHECKPOINT_PAGES), when hardly anything is left to be moved.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use crate::connection::{self, OpenError, Purpose};

/// Wakes the thread. Dropping it lets the thread finish and waits for it.
pub(crate) struct Checkpointer {
    bell: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Opens a connection and starts the thread.
    pub(crate) fn start(path: &Path, busy_timeout: Duration) -> Result<Self, OpenError> {
        let connection = connection::open(path, busy_timeout, Purpose::Write)?;
        let (bell, rung) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("ledger-checkpointer".to_owned())
            .spawn(move || run(&connection, &rung))
            .map_err(OpenError::Thread)?;
        Ok(Self { bell: Some(bell), thread: Some(thread) })
    }

    /// Has the log moved, now or after the move that is being made.
    pub(crate) fn ring(&self) {
        if let Some(bell) = &self.bell {
            // A bell that is ringing already is enough.
            let _ = bell.try_send(());
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        drop(self.bell.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to finish.
            let _ = thread.join();
        }
    }
}

fn run(connection: &Connection, rung: &Receiver<()>) {
    while rung.recv().is_ok() {
        // What fails here is tried again by the writer, which reports it.
        let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_alone_holds_what_was_moved() {
        const BUSY: Duration = Duration::from_secs(10);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gleaner.db");
        let writing = connection::prepare(&path, BUSY).unwrap();
        writing.execute("INSERT INTO control VALUES ('a', 1, '1')", []).unwrap();
        let checkpointer = Checkpointer::start(&path, BUSY).unwrap();
        checkpointer.ring();
        drop(checkpointer);
        let copy = directory.path().join("copy.db");
        std::fs::copy(&path, &copy).unwrap();
        let rows =
            Connection::open(&copy)
                .unwrap()
                .query_row("SELECT count(*) FROM control", [], |row| row.get::<_, i64>(0));
        assert_eq!(rows.unwrap(), 1);
    }
}
