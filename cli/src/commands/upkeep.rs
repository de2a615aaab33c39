//! What `sweep`, `replay` and `reconcile` share: one line a job, one for the whole, and when they
//! end.

use std::fmt;

use domain::entry::StateName;
use domain::job::{JobId, JobKey, Kind};
use domain::pause::Scope;
use domain::ports::ApiError;
use domain::time::Timestamp;
use serde::Serialize;

use crate::backend::Adapters;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note};

/// A job, and what is done about it.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    version: u32,
    r#type: &'static str,
    kind: Kind,
    job_id: JobId,
    /// What is done: `announce`, `expect`, `send`, `give_up`, `forgotten` or `wait`.
    step: &'static str,
    /// How the ledger's row stands; null where the ledger does not know the job.
    state: Option<StateName>,
    /// When the job was created, or its delivery logged, as far as is known.
    created_at: Option<Timestamp>,
    /// What the receiver answered to its last delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<u16>,
}

impl Line {
    pub(crate) fn new(
        key: &JobKey,
        step: &'static str,
        state: Option<StateName>,
        created_at: Option<Timestamp>,
    ) -> Self {
        let (kind, job_id) = (key.kind, key.job_id.clone());
        Self { version: 1, r#type: "step", kind, job_id, step, state, created_at, answered: None }
    }

    pub(crate) fn answered(self, answered: Option<u16>) -> Self {
        Self { answered, ..self }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, job_id, step, .. } = self;
        let state = self.state.map_or("unknown", StateName::as_str);
        write!(out, "{step}\t{kind}\t{job_id}\t{state}")?;
        match self.created_at {
            Some(at) => write!(out, "\t{at:.0}")?,
            None => out.write_str("\t-")?,
        }
        self.answered.map_or(Ok(()), |answered| write!(out, "\tanswered {answered}"))
    }
}

/// Prints lines as they come. What cannot be printed is told at the end.
pub(crate) struct Lines {
    output: Output,
    failed: Option<CliError>,
}

impl Lines {
    pub(crate) const fn new(output: Output) -> Self {
        Self { output, failed: None }
    }

    pub(crate) fn print(&mut self, line: &Line) {
        if self.failed.is_none() {
            self.failed = self.output.print(line).err();
        }
    }

    /// # Errors
    /// The first line that could not be printed.
    pub(crate) fn end(self) -> Result<(), CliError> {
        self.failed.map_or(Ok(()), Err)
    }
}

/// When the account's pause ends, told to a person: nobody calls the platform before.
///
/// # Errors
/// Those of the ledger.
pub(crate) async fn is_paused(backend: &Adapters) -> Result<bool, CliError> {
    let pipeline = &backend.pipeline;
    let now = pipeline.clock.now();
    let pause = pipeline.pauses.active(&*pipeline.ledger, Scope::All, now).await?;
    if let Some(pause) = &pause {
        let (until, why) = (pause.until, &pause.why);
        note(&format!("note: the account is left alone until {until:.0} ({why})"));
    }
    Ok(pause.is_some())
}

/// How a verb ends that may not have come to its end.
///
/// # Errors
/// What kept `what` from being read whole.
pub(crate) fn end(what: &str, partial: bool, trouble: Option<&ApiError>) -> Result<Exit, CliError> {
    match trouble {
        _ if !partial => Ok(Exit::Ok),
        Some(error) => {
            Err(CliError::from(error.clone()).about(&format!("{what} could not be read whole")))
        }
        None => {
            note("note: not all was compared; the same command goes on where this one stopped");
            Ok(Exit::TryAgain)
        }
    }
}
