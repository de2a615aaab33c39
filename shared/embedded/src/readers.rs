//! Threads that read, each over its own connection, beside the one that writes.
//!
//! In WAL a reader sees every commit that ended before the read began, and never waits for the
//! writer.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::connection::{self, OpenError, Purpose};
use crate::failure::Failure;
use crate::limits::{READERS, WAITING_READS_MAX};

type Read = Box<dyn FnOnce(&Connection) + Send>;

/// Hands reads to the threads. Dropping it lets them finish and waits for them.
pub(crate) struct Readers {
    sender: Option<mpsc::Sender<Read>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Opens the connections and starts the threads.
    pub(crate) fn start(path: &Path, busy_timeout: Duration) -> Result<Self, OpenError> {
        let (sender, receiver) = mpsc::channel::<Read>(WAITING_READS_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut threads = Vec::with_capacity(READERS);
        for _ in 0..READERS {
            let connection = connection::open(path, busy_timeout, Purpose::Read)?;
            let receiver = Arc::clone(&receiver);
            let thread = std::thread::Builder::new()
                .name("ledger-reader".to_owned())
                .spawn(move || run(&connection, &receiver))
                .map_err(OpenError::Thread)?;
            threads.push(thread);
        }
        Ok(Self { sender: Some(sender), threads })
    }

    /// Runs a read on one of the threads.
    pub(crate) async fn read<T, F>(&self, read: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job: Read = Box::new(move |connection| {
            if !reply.is_closed() {
                let outcome = read(connection).map_err(|error| Failure::Operation(Arc::new(error)));
                // The caller may have stopped waiting; a read has no effect.
                let _ = reply.send(outcome);
            }
        });
        let sender = self.sender.as_ref().ok_or(Failure::Closed)?;
        sender.send(job).await.map_err(|_| Failure::Closed)?;
        answer.await.unwrap_or(Err(Failure::Closed))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        drop(self.sender.take());
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to finish.
            let _ = thread.join();
        }
    }
}

fn run(connection: &Connection, receiver: &Mutex<mpsc::Receiver<Read>>) {
    loop {
        // One thread waits for the next read; the others wait for that thread.
        let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(read) = next else { return };
        read(connection);
    }
}
