//! Redriving: an operator's decision to try one dead job again.

use std::fmt;
use std::time::Duration;

use domain::entry::{Entry, StateName};
use domain::job::{JobId, Kind};
use domain::ports::Clock as _;
use domain::task::Task;
use domain::update::{Changed, change};
use serde::Serialize;

use crate::backend::Store;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note};
use system::SystemClock;

/// What a redrive did.
#[derive(Serialize)]
struct Redriven {
    version: u32,
    r#type: &'static str,
    kind: Kind,
    job_id: JobId,
    state: StateName,
    /// Counts how often the entry was opened again.
    generation: u32,
}

impl fmt::Display for Redriven {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, job_id, state, generation, .. } = self;
        write!(out, "{kind}\t{job_id}\t{state}\tgeneration {generation}")
    }
}

/// Opens a dead entry again and sends its task. The transition is in the entry's history, with
/// the operator as its cause.
///
/// # Errors
/// When the entry is not dead, and those of the ledger.
pub(super) async fn redrive(store: &Store, entry: Entry, output: Output) -> Result<Exit, CliError> {
    let now = SystemClock.now();
    let key = entry.key.clone();
    let changed = change(&*store.ledger, Some(entry), now, |row| {
        row.filter(|row| !row.is_expired(now))?.redriven(None, now, &store.settings.limits)
    })
    .await?;
    let row = match changed {
        Changed::Written(row) => row,
        Changed::Left(row) => {
            let state = row.map_or("gone", |row| row.state.name().as_str());
            return Err(CliError::new(
                Exit::Usage,
                format!("the job `{}` is {state}, and only a dead one can be redriven", key.job_id),
            )
            .hint("`gleaner jobs show` tells how it got there"));
        }
    };
    // Only speed rests on the task: the row is due, and the sweep would send one.
    if store.queue.send(&Task { key: key.clone() }, Duration::ZERO).await.is_err() {
        note("note: the task could not be sent; the sweep sends one later");
        let seen = row.seen();
        let unsent = |now: Option<&Entry>| now.filter(|now| now.seen() == seen).map(Entry::unsent);
        drop(change(&*store.ledger, Some((*row).clone()), now, unsent).await);
    }
    output.print(&Redriven {
        version: 1,
        r#type: "redriven",
        kind: key.kind,
        job_id: key.job_id,
        state: row.state.name(),
        generation: row.generation,
    })?;
    note(
        "note: a running server, or the worker on AWS, works it now; without one, `gleaner poll` does",
    );
    Ok(Exit::Ok)
}
