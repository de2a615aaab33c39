//! Redriving: an operator's decision to try one dead job again.

use std::fmt;

use domain::entry::{Entry, StateName};
use domain::job::{JobId, Kind};
use domain::redrive::{Decided, Left, PayAgain};
use serde::Serialize;

use crate::backend::Store;
use crate::commands::dead::{Order, WORKED_BY, one};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note};

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
    let key = entry.key.clone();
    let row = match one(store, entry, Order::Redrive(PayAgain::Never), None).await? {
        Decided::Done(row) => row,
        Decided::Unsent(row) => {
            note("note: the task could not be sent; the sweep sends one later");
            row
        }
        Decided::Left(Left::MayPayAgain) => {
            let text = format!("nobody knows whether the last retry of `{}` was paid", key.job_id);
            let hint = "look for it at the platform; `gleaner dead redrive --pay-again` tries it \
                        again, and may pay twice";
            return Err(CliError::new(Exit::Usage, text).hint(hint));
        }
        Decided::Left(left) => {
            let state = match left {
                Left::Open(state) | Left::Settled(state) => state.as_str(),
                Left::Moved => "dead for another reason by now",
                Left::Absent | Left::Discarded | Left::MayPayAgain => "gone",
            };
            return Err(CliError::new(
                Exit::Usage,
                format!("the job `{}` is {state}, and only a dead one can be redriven", key.job_id),
            )
            .hint("`gleaner jobs show` tells how it got there"));
        }
    };
    output.print(&Redriven {
        version: 1,
        r#type: "redriven",
        kind: key.kind,
        job_id: key.job_id,
        state: row.state.name(),
        generation: row.generation,
    })?;
    note(WORKED_BY);
    Ok(Exit::Ok)
}
