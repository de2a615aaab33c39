//! What `poll` prints: a row per job, and a summary of rounds.

use std::fmt;

use domain::entry::{DeadReason, Entry, State};
use domain::job::{JobError, JobId, JobKey, JobStatus, Kind};
use domain::poll::Polled;
use domain::ports::{ApiError, ApiErrorKind};
use domain::work::PutOff;
use serde::Serialize;

use crate::commands::jobs::result_key;
use crate::exit::Exit;

/// What is said when somebody ends the call.
pub(super) const STOPPING: &str = "stopping; what was begun is finished first";
/// What to do about a call that somebody ended.
pub(super) const INTERRUPTED: &str =
    "hint: the call was interrupted, and the jobs are still owed; run `gleaner poll` again";

/// How waiting for a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// Its result is stored.
    Stored,
    /// It failed, was cancelled, or was given up.
    Dead,
    /// It failed and another job was submitted in its place.
    Superseded,
    /// The deadline passed.
    Timeout,
    /// Somebody ended the call.
    Interrupted,
    /// Nobody knows it.
    UnknownId,
    /// The platform names a status that this version does not know.
    UnknownStatus,
    /// The platform will not answer.
    Refused,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Dead => "dead",
            Self::Superseded => "superseded",
            Self::Timeout => "timeout",
            Self::Interrupted => "interrupted",
            Self::UnknownId => "unknown_id",
            Self::UnknownStatus => "unknown_status",
            Self::Refused => "refused",
        }
    }
}

/// One row.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    version: u32,
    r#type: &'static str,
    kind: Kind,
    job_id: JobId,
    pub(super) outcome: Outcome,
    /// The last thing that was learned of the job.
    status: String,
    /// Key of the result, relative to the results folder.
    result: Option<String>,
    /// The job that was submitted in its place.
    superseded_by: Option<JobId>,
    error: Option<JobError>,
    #[serde(skip)]
    pub(super) exit: Exit,
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.outcome.as_str();
        write!(out, "{}\t{}\t{outcome}\t{}", self.job_id, self.kind, self.status)?;
        if let Some(by) = &self.superseded_by {
            write!(out, "\t{by}")?;
        }
        if let Some(error) = &self.error {
            write!(out, "\t{}: {}", error.code, error.message)?;
        }
        Ok(())
    }
}

impl Row {
    fn new(key: &JobKey, outcome: Outcome, status: &str, exit: Exit) -> Self {
        Self {
            version: 1,
            r#type: "poll",
            kind: key.kind,
            job_id: key.job_id.clone(),
            outcome,
            status: status.to_owned(),
            result: None,
            superseded_by: None,
            error: None,
            exit,
        }
    }

    /// The row of one wait.
    pub(super) fn of(key: &JobKey, polled: &Polled) -> Self {
        match polled {
            Polled::Settled(entry) => Self::of_entry(entry),
            Polled::Timeout(last) => {
                Self::open(key, Outcome::Timeout, Exit::Timeout, last.as_ref())
            }
            Polled::Stopped(last) => {
                Self::open(key, Outcome::Interrupted, Exit::TryAgain, last.as_ref())
            }
            Polled::Unknown(error) => {
                Self::new(key, Outcome::UnknownId, "missing", Exit::NotFound).with(error)
            }
            Polled::Failed(error) => {
                let exit = crate::error::CliError::from(error.clone()).exit;
                Self::new(key, Outcome::Refused, error.kind.as_str(), exit).with(error)
            }
            Polled::UnknownStatus(status) => {
                Self::new(key, Outcome::UnknownStatus, &shown(status), Exit::Data)
            }
        }
    }

    /// The row of an entry as the ledger has it.
    pub(super) fn of_entry(entry: &Entry) -> Self {
        let key = &entry.key;
        let state = entry.state.name().as_str();
        let row = match &entry.state {
            State::Stored { .. } => Self::new(key, Outcome::Stored, state, Exit::Ok),
            State::Superseded { by } => Self {
                superseded_by: Some(by.clone()),
                ..Self::new(key, Outcome::Superseded, state, Exit::JobFailed)
            },
            State::Dead { reason, error, .. } => {
                let (outcome, exit) = match reason {
                    DeadReason::Gone => (Outcome::UnknownId, Exit::NotFound),
                    DeadReason::Denied => (Outcome::Dead, Exit::Denied),
                    _ => (Outcome::Dead, Exit::JobFailed),
                };
                Self { error: error.clone(), ..Self::new(key, outcome, reason.as_str(), exit) }
            }
            State::Expected | State::Received | State::Resubmitting { .. } => {
                Self::new(key, Outcome::Timeout, state, Exit::Timeout)
            }
        };
        Self { result: result_key(&entry.state).map(str::to_owned), ..row }
    }

    /// The row of a job that was open when the wait for it ended.
    fn open(key: &JobKey, outcome: Outcome, exit: Exit, last: Option<&PutOff>) -> Self {
        let open = |status: &str| Self::new(key, outcome, status, exit);
        match last {
            Some(PutOff::Trouble(error)) if error.kind == ApiErrorKind::Missing => {
                Self::new(key, Outcome::UnknownId, "missing", Exit::NotFound).with(error)
            }
            Some(PutOff::Trouble(error)) => open(error.kind.as_str()).with(error),
            Some(PutOff::Unfinished(status)) => open(&shown(status)),
            Some(PutOff::Settling) => open("settling"),
            Some(PutOff::Paused(why)) => {
                // The pause is the account's, and its reason says what is in the way.
                let exit = paused_exit(why).unwrap_or(exit);
                Self { exit, ..open(&format!("paused ({why})")) }
            }
            Some(PutOff::Unlinked) => open("unlinked"),
            Some(PutOff::Recovering) => open("recovering"),
            Some(PutOff::Inconsistent) => open("inconsistent"),
            Some(PutOff::Spent) => open("spent"),
            Some(PutOff::OutOfTime) => open("out_of_time"),
            None => open("not_looked_at"),
        }
    }

    fn with(self, error: &ApiError) -> Self {
        Self { error: Some(error.as_job_error()), ..self }
    }
}

/// A status as it may be shown: one that is not known comes from outside.
fn shown(status: &JobStatus) -> String {
    status.as_str().escape_debug().to_string()
}

/// The exit code that a pause's reason stands for, if it is the account's trouble.
pub(super) fn paused_exit(why: &str) -> Option<Exit> {
    match why {
        "denied" => Some(Exit::Denied),
        "payment_required" => Some(Exit::PaymentRequired),
        _ => None,
    }
}

/// Of several exit codes the one that matters most: the account's trouble, then what is unknown,
/// broken, failed or late.
pub(super) fn worst(exits: impl IntoIterator<Item = Exit>) -> Exit {
    const ORDER: [Exit; 9] = [
        Exit::Denied,
        Exit::PaymentRequired,
        Exit::TryAgain,
        Exit::NotFound,
        Exit::Data,
        Exit::Unavailable,
        Exit::JobFailed,
        Exit::Timeout,
        Exit::Ok,
    ];
    let rank = |exit: &Exit| ORDER.iter().position(|known| known == exit).unwrap_or(0);
    exits.into_iter().min_by_key(rank).unwrap_or(Exit::Ok)
}

/// The sums of a call that works everything open.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    version: u32,
    r#type: &'static str,
    /// Rounds begun.
    pub(super) rounds: u32,
    /// Results stored here.
    pub(super) stored: u64,
    /// Jobs given up here.
    pub(super) dead: u64,
    /// Jobs replaced by another one here.
    pub(super) superseded: u64,
    /// Jobs that are still owed.
    pub(super) open: u64,
    /// Submissions whose answer was lost and is being looked for.
    pub(super) unanswered: u64,
}

impl Summary {
    /// Nothing yet.
    pub(super) const fn new() -> Self {
        Self {
            version: 1,
            r#type: "summary",
            rounds: 0,
            stored: 0,
            dead: 0,
            superseded: 0,
            open: 0,
            unanswered: 0,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, stored, dead, superseded, open, unanswered, .. } = self;
        write!(out, "{stored} stored, {dead} given up, {superseded} resubmitted, {open} open")?;
        if *unanswered > 0 {
            write!(out, ", {unanswered} submissions without an answer yet")?;
        }
        write!(out, " (rounds: {rounds})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_codes_the_one_that_matters_most_is_taken() {
        assert_eq!(worst([]), Exit::Ok);
        assert_eq!(worst([Exit::Ok, Exit::Timeout]), Exit::Timeout);
        assert_eq!(worst([Exit::Timeout, Exit::JobFailed]), Exit::JobFailed);
        assert_eq!(worst([Exit::JobFailed, Exit::NotFound]), Exit::NotFound);
        assert_eq!(worst([Exit::NotFound, Exit::PaymentRequired]), Exit::PaymentRequired);
        assert_eq!(worst([Exit::TryAgain, Exit::Denied]), Exit::Denied);
    }
}
