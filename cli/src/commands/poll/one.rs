//! Waiting for jobs by their ids.

use domain::entry::State;
use domain::job::{JobKey, Kind};
use domain::poll::{Patience, Polled, poll_until};
use futures_util::StreamExt as _;

use super::report::{INTERRUPTED, Row, STOPPING, worst};
use crate::backend::Adapters;
use crate::commands::Interrupt;
use crate::commands::jobs::{Name, find_all, only, unknown};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note};
use crate::submitting::Stop;

/// Jobs waited for at once.
const AT_ONCE: usize = 16;
/// Longest chain of resubmissions that is followed; a lineage has far fewer.
const CHAIN_MAX: u32 = 32;

/// Waits for each job and prints its row as soon as it is known.
///
/// # Errors
/// Those of the ledger and the result store.
pub(super) async fn run(
    backend: &Adapters,
    names: &[Name],
    kind: Option<Kind>,
    patience: Patience,
    output: Output,
) -> Result<Exit, CliError> {
    let mut keys = Vec::new();
    for name in names {
        let key = key_of(backend, name, kind).await?;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let stop = Stop::default();
    let waits = keys.into_iter().map(|key| wait(backend, key, patience, &stop, output));
    let mut waits = futures_util::stream::iter(waits).buffer_unordered(AT_ONCE);
    let interrupt = Interrupt::listen().wait();
    tokio::pin!(interrupt);
    let mut exits = Vec::new();
    loop {
        tokio::select! {
            exit = waits.next() => match exit {
                Some(exit) => exits.push(exit?),
                None => break,
            },
            () = &mut interrupt, if !stop.is_set() => {
                note(STOPPING);
                stop.stop();
            }
        }
    }
    let exit = worst(exits);
    if exit == Exit::TryAgain && stop.is_set() {
        note(INTERRUPTED);
    } else if let Some(hint) = hint(exit) {
        note(hint);
    }
    Ok(exit)
}

/// The job that the ledger knows by the name; if it knows none, the id is for the platform to know,
/// as that of an extract job unless the kind is named.
async fn key_of(backend: &Adapters, name: &Name, kind: Option<Kind>) -> Result<JobKey, CliError> {
    if let Some(entry) = only(name, find_all(&*backend.pipeline.ledger, name, kind).await?)? {
        return Ok(entry.key);
    }
    let id = name.id.clone().ok_or_else(|| unknown(name))?;
    Ok(JobKey::new(kind.unwrap_or(Kind::Extract), id))
}

/// Waits for a job, and for those that were submitted in its place.
async fn wait(
    backend: &Adapters,
    first: JobKey,
    patience: Patience,
    stop: &Stop,
    output: Output,
) -> Result<Exit, CliError> {
    let mut key = first;
    for _ in 0..CHAIN_MAX {
        let polled = if stop.is_set() {
            Polled::Stopped(None)
        } else {
            poll_until(backend.pipeline.ports(), &key, patience, stop.asked()).await?
        };
        let row = Row::of(&key, &polled);
        output.print(&row)?;
        let Polled::Settled(entry) = polled else { return Ok(row.exit) };
        let State::Superseded { by } = entry.state else { return Ok(row.exit) };
        key = JobKey::new(key.kind, by);
    }
    Ok(Exit::JobFailed)
}

/// What to do about an exit code.
const fn hint(exit: Exit) -> Option<&'static str> {
    match exit {
        Exit::Timeout => Some(
            "hint: the jobs are still owed; wait longer with --max-wait, or run `gleaner poll` later",
        ),
        Exit::NotFound => {
            Some("hint: check the id and its --kind, and that the key's account owns the job")
        }
        Exit::Denied => Some("hint: check the API key (GLEANER_API_KEY)"),
        Exit::PaymentRequired => {
            Some("hint: add tokens to the account, then run the same command again")
        }
        Exit::TryAgain => Some("hint: the account's quota is used up; run the same command later"),
        Exit::Unavailable => Some("hint: the platform did not answer; run the same command again"),
        Exit::Data => {
            Some("hint: this version does not understand the answer; is there a newer one?")
        }
        _ => None,
    }
}
