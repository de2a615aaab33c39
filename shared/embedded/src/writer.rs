//! The one thread that writes: concurrent operations share a transaction and its fsync.
//!
//! When an operation fails, its own changes are undone and its siblings go on. When the
//! transaction fails, nobody is told that anything was done. Either way the connection is left
//! outside any transaction, so that no lock outlives a group.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::checkpointer::Checkpointer;
use crate::connection::{self, OpenError, Purpose};
use crate::counts::Group;
use crate::failure::Failure;
use crate::limits::{CHECKPOINT_OPERATIONS, GROUP_OPERATIONS_MAX, WAITING_WRITES_MAX};

/// Hands operations to the writing thread. Dropping it lets the thread finish and waits for it.
pub(crate) struct Writer {
    sender: Option<mpsc::Sender<Box<dyn Operation>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread with a connection that is open already.
    pub(crate) fn start(
        connection: Connection,
        path: &Path,
        busy_timeout: Duration,
    ) -> Result<Self, OpenError> {
        let (sender, receiver) = mpsc::channel(WAITING_WRITES_MAX);
        let file = WriteFile { path: path.to_owned(), busy_timeout, connection: Some(connection) };
        let checkpointer = Checkpointer::start(path, busy_timeout)?;
        let thread = std::thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(move || run(file, &checkpointer, receiver))
            .map_err(OpenError::Thread)?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    /// Runs an operation; `Ok` means that it is committed and synced to disk.
    ///
    /// An operation whose caller stops waiting before its turn is not run. It may be run twice,
    /// with what the first time did undone; the outcome is that of the last time.
    pub(crate) async fn write<T, F>(&self, operation: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: FnMut(&Group) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let queued = Queued { operation, outcome: None, reply };
        let sender = self.sender.as_ref().ok_or(Failure::Closed)?;
        sender.send(Box::new(queued)).await.map_err(|_| Failure::Closed)?;
        answer.await.unwrap_or(Err(Failure::Closed))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to finish.
            let _ = thread.join();
        }
    }
}

/// One operation on its way through the thread.
trait Operation: Send {
    /// Whether somebody still waits for the answer.
    fn is_wanted(&self) -> bool;

    /// Runs it and keeps the outcome; `Err` when it failed.
    fn run(&mut self, group: &Group) -> Result<(), Arc<rusqlite::Error>>;

    /// Gives the kept outcome if the group was committed, the failure otherwise.
    fn answer(self: Box<Self>, committed: Result<(), Failure>);
}

struct Queued<T, F> {
    operation: F,
    outcome: Option<Result<T, Failure>>,
    reply: oneshot::Sender<Result<T, Failure>>,
}

impl<T, F> Operation for Queued<T, F>
where
    T: Send,
    F: FnMut(&Group) -> rusqlite::Result<T> + Send,
{
    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run(&mut self, group: &Group) -> Result<(), Arc<rusqlite::Error>> {
        match (self.operation)(group) {
            Ok(value) => {
                self.outcome = Some(Ok(value));
                Ok(())
            }
            Err(error) => {
                let error = Arc::new(error);
                self.outcome = Some(Err(Failure::Operation(Arc::clone(&error))));
                Err(error)
            }
        }
    }

    fn answer(self: Box<Self>, committed: Result<(), Failure>) {
        let outcome = match committed {
            Ok(()) => self.outcome.unwrap_or(Err(Failure::Closed)),
            Err(failure) => Err(failure),
        };
        // The caller may have stopped waiting; the effect stands all the same.
        let _ = self.reply.send(outcome);
    }
}

/// The file and, unless the last group broke it, the connection.
struct WriteFile {
    path: PathBuf,
    busy_timeout: Duration,
    connection: Option<Connection>,
}

impl WriteFile {
    fn connection(&mut self) -> Result<&Connection, Failure> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => connection::open(&self.path, self.busy_timeout, Purpose::Write)
                .map_err(|error| Failure::Reopen(Arc::new(error)))?,
        };
        Ok(self.connection.insert(connection))
    }
}

type Receiver = mpsc::Receiver<Box<dyn Operation>>;

fn run(mut file: WriteFile, checkpointer: &Checkpointer, mut receiver: Receiver) {
    let mut since_checkpoint = 0;
    while let Some(first) = receiver.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP_OPERATIONS_MAX {
            let Ok(next) = receiver.try_recv() else { break };
            group.push(next);
        }
        let committed = match file.connection() {
            Ok(connection) => commit(connection, &mut group, &mut receiver),
            Err(failure) => Err(failure),
        };
        if committed.is_err() {
            // A fresh connection has no transaction, no lock and no half-known state.
            file.connection = None;
        }
        since_checkpoint += group.len();
        if since_checkpoint >= CHECKPOINT_OPERATIONS {
            since_checkpoint = 0;
            checkpointer.ring();
        }
        for operation in group {
            operation.answer(committed.clone());
        }
    }
}

/// Runs the group, and whatever arrives meanwhile, in one transaction.
///
/// Operations hardly ever fail. So they do not get a savepoint each, for which `SQLite` would copy
/// every page that they touch; when one has failed, all are undone and run again with savepoints.
fn commit(
    connection: &Connection,
    group: &mut Vec<Box<dyn Operation>>,
    receiver: &mut Receiver,
) -> Result<(), Failure> {
    match transact(connection, group, receiver, run_bare)? {
        Ran::On => Ok(()),
        Ran::Spoilt => {
            execute(connection, "ROLLBACK")?;
            transact(connection, group, receiver, run_alone).map(|_| ())
        }
    }
}

/// Whether a transaction may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ran {
    On,
    /// It holds changes of an operation that failed.
    Spoilt,
}

/// Runs one operation; `Err` when the transaction is gone.
type Run = fn(&Group, &mut dyn Operation) -> Result<Ran, Failure>;

fn transact(
    connection: &Connection,
    group: &mut Vec<Box<dyn Operation>>,
    receiver: &mut Receiver,
    run: Run,
) -> Result<Ran, Failure> {
    execute(connection, "BEGIN IMMEDIATE")?;
    let transaction = Group::new(connection);
    let mut index = 0;
    loop {
        let Some(operation) = group.get_mut(index) else {
            if group.len() >= GROUP_OPERATIONS_MAX {
                break;
            }
            let Ok(next) = receiver.try_recv() else { break };
            group.push(next);
            continue;
        };
        index += 1;
        if operation.is_wanted() && run(&transaction, operation.as_mut())? == Ran::Spoilt {
            return Ok(Ran::Spoilt);
        }
    }
    transaction.write_counts().map_err(|error| Failure::Commit(Arc::new(error)))?;
    execute(connection, "COMMIT")?;
    Ok(Ran::On)
}

fn run_bare(group: &Group, operation: &mut dyn Operation) -> Result<Ran, Failure> {
    match operation.run(group) {
        Ok(()) => {
            group.keep();
            Ok(Ran::On)
        }
        // SQLite itself ends the transaction on a full disk and on some I/O errors.
        Err(error) if group.is_autocommit() => Err(Failure::Commit(error)),
        Err(_) => Ok(Ran::Spoilt),
    }
}

/// Undoes what the operation did when it fails.
fn run_alone(group: &Group, operation: &mut dyn Operation) -> Result<Ran, Failure> {
    execute(group, "SAVEPOINT operation")?;
    if run_bare(group, operation)? == Ran::Spoilt {
        group.forget();
        execute(group, "ROLLBACK TO operation")?;
    }
    execute(group, "RELEASE operation")?;
    Ok(Ran::On)
}

fn execute(connection: &Connection, sql: &'static str) -> Result<(), Failure> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute([]))
        .map(|_| ())
        .map_err(|error| Failure::Commit(Arc::new(error)))
}

#[cfg(test)]
mod tests;
