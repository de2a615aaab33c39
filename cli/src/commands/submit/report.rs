//! What `submit` prints: a row per submission, and a summary.

use std::fmt;

use domain::intent::{Intent, IntentState, Submission};
use domain::job::{JobError, JobId, Kind};
use domain::ports::{ApiError, PortError};
use domain::submit::{Deferral, Submitted, Submitter};
use serde::Serialize;

use super::earlier::Earlier;
use super::plan::Plan;
use crate::submitting::Ended;

/// What stands for nothing in a column.
const NOTHING: &str = "-";

/// What became of a submission in this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// Accepted by the platform in this call.
    Submitted,
    /// Accepted earlier; nothing was paid now.
    Known,
    /// Accepted in this call, which lost the answer and found the job again.
    Found,
    /// Refused by the platform for good.
    Refused,
    /// Nobody can tell whether it was accepted; nobody pays again.
    Ambiguous,
    /// Its answer was lost; the same command finds out.
    Unanswered,
    /// Put off; the same command tries again.
    Waiting,
    /// The account is in the way.
    Blocked,
    /// The ledger failed.
    Failed,
    /// Not submitted yet; a dry run's word.
    New,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Known => "known",
            Self::Found => "found",
            Self::Refused => "refused",
            Self::Ambiguous => "ambiguous",
            Self::Unanswered => "unanswered",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::New => "new",
        }
    }
}

/// One row.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    version: u32,
    r#type: &'static str,
    run: &'a str,
    position: u64,
    #[serde(rename = "ref")]
    reference: Option<&'a str>,
    kind: Kind,
    /// The page or seed; a batch has none.
    url: Option<&'a str>,
    /// The most that it costs, in tokens.
    tokens_max: u64,
    job_id: Option<JobId>,
    pub(super) outcome: Outcome,
    error: Option<Trouble>,
}

/// Why.
#[derive(Debug, Serialize)]
struct Trouble {
    code: String,
    message: String,
}

impl Trouble {
    fn new(code: &str, message: &str) -> Self {
        Self { code: code.to_owned(), message: message.to_owned() }
    }

    fn of_job(error: &JobError) -> Self {
        Self::new(&error.code, &error.message)
    }

    fn of_api(error: &ApiError) -> Self {
        Self::of_job(&error.as_job_error())
    }

    fn of_port(error: &PortError) -> Self {
        Self::new(error.kind.as_str(), &error.to_string())
    }

    fn of_deferral(deferral: &Deferral) -> Self {
        match deferral {
            Deferral::Api(error) => Self::of_api(error),
            Deferral::Paused(why) => Self::new(why, "the account is paused"),
            Deferral::Spent => Self::new("spent", "the spend of the day is used up"),
            Deferral::Contended => Self::new("contended", "another process submits the same"),
        }
    }
}

impl<'a> Row<'a> {
    fn new(submission: &'a Submission, outcome: Outcome) -> Self {
        Self {
            version: 1,
            r#type: "submission",
            run: &submission.run,
            position: submission.position,
            reference: submission.reference.as_deref(),
            kind: submission.request.kind(),
            url: submission.request.url(),
            tokens_max: submission.request.tokens_max(),
            job_id: None,
            outcome,
            error: None,
        }
    }

    /// The row of a submission that ended, whose answer may have been lost in this call.
    pub(super) fn of(submission: &'a Submission, ended: &Ended, was_lost: bool) -> Self {
        let row = |outcome| Self::new(submission, outcome);
        let with = |outcome, error| Self { error: Some(error), ..row(outcome) };
        match ended {
            Ended::Known(submitted) | Ended::GivenUp(submitted) => match submitted {
                Submitted::Accepted { job_id, by } => {
                    let outcome = match by {
                        Submitter::ThisCall => Outcome::Submitted,
                        Submitter::Earlier if was_lost => Outcome::Found,
                        Submitter::Earlier => Outcome::Known,
                    };
                    Self { job_id: Some(job_id.clone()), ..row(outcome) }
                }
                Submitted::Refused(error) => with(Outcome::Refused, Trouble::of_job(error)),
                Submitted::Ambiguous => row(Outcome::Ambiguous),
                Submitted::Unanswered { .. } => row(Outcome::Unanswered),
                Submitted::Deferred { because, .. } => {
                    with(Outcome::Waiting, Trouble::of_deferral(because))
                }
            },
            Ended::Blocked(error) => with(Outcome::Blocked, Trouble::of_api(error)),
            Ended::Failed(error) => with(Outcome::Failed, Trouble::of_port(error)),
        }
    }

    /// The row of a submission that a dry run looked up.
    pub(super) fn planned(submission: &'a Submission, intent: Option<&Intent>) -> Self {
        let row = |outcome| Self::new(submission, outcome);
        match intent.map(|intent| &intent.state) {
            None | Some(IntentState::Deferred { .. }) => row(Outcome::New),
            Some(IntentState::Open { .. }) => row(Outcome::Unanswered),
            Some(IntentState::Accepted { job_id }) => {
                Self { job_id: Some(job_id.clone()), ..row(Outcome::Known) }
            }
            Some(IntentState::Refused { error }) => {
                Self { error: Some(Trouble::of_job(error)), ..row(Outcome::Refused) }
            }
            Some(IntentState::Ambiguous) => row(Outcome::Ambiguous),
        }
    }
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reference = self.reference.unwrap_or(NOTHING);
        let job_id = self.job_id.as_ref().map_or(NOTHING, JobId::as_str);
        write!(out, "{}\t{reference}\t{job_id}\t{}", self.position, self.outcome.as_str())?;
        match &self.error {
            Some(error) => write!(out, "\t{}: {}", error.code, error.message),
            None => Ok(()),
        }
    }
}

/// The sums of one call.
#[derive(Debug, Default, Clone, Serialize)]
pub(super) struct Summary {
    version: u32,
    r#type: &'static str,
    /// The run's name, under which the same list goes on.
    pub(super) run: String,
    /// Whether the ledger holds other runs, and nothing of this one.
    new_run: bool,
    /// Submissions to be paid for whose URLs were submitted before, elsewhere.
    submitted_before: u64,
    /// Whether nothing was sent.
    dry_run: bool,
    total: u64,
    submitted: u64,
    /// Submitted as well, with an answer that was lost and a job that was found again.
    found: u64,
    known: u64,
    refused: u64,
    ambiguous: u64,
    /// Those that the same command goes on with.
    pub(super) left: u64,
    /// The most that was, or would be, spent, in tokens.
    tokens_max: u64,
}

impl Summary {
    /// Nothing has happened yet: all are left.
    pub(super) fn new(plan: &Plan, earlier: &Earlier, dry_run: bool) -> Self {
        let total = u64::try_from(plan.submissions.len()).unwrap_or(u64::MAX);
        Self {
            version: 1,
            r#type: "summary",
            run: plan.run.clone(),
            new_run: earlier.is_new_run,
            submitted_before: earlier.submitted_before,
            dry_run,
            total,
            left: total,
            ..Self::default()
        }
    }

    /// Counts a row.
    pub(super) fn count(&mut self, row: &Row<'_>) {
        let sum = match row.outcome {
            Outcome::Submitted => &mut self.submitted,
            Outcome::Found => &mut self.found,
            Outcome::Known => &mut self.known,
            Outcome::Refused => &mut self.refused,
            Outcome::Ambiguous => &mut self.ambiguous,
            // These stay left.
            Outcome::New | Outcome::Unanswered => {
                self.tokens_max += if self.dry_run { new_tokens(row) } else { 0 };
                return;
            }
            Outcome::Waiting | Outcome::Blocked | Outcome::Failed => return,
        };
        *sum += 1;
        self.left = self.left.saturating_sub(1);
        if matches!(row.outcome, Outcome::Submitted | Outcome::Found) {
            self.tokens_max = self.tokens_max.saturating_add(row.tokens_max);
        }
    }

    /// Whether some ended for good without a job.
    pub(super) const fn has_losses(&self) -> bool {
        self.refused > 0 || self.ambiguous > 0
    }
}

/// What a dry run expects to be spent for a row; a lost answer was spent for already.
const fn new_tokens(row: &Row<'_>) -> u64 {
    match row.outcome {
        Outcome::New => row.tokens_max,
        _ => 0,
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            run, total, submitted, found, known, refused, ambiguous, left, tokens_max, ..
        } = self;
        let new = if self.new_run { " (a new run)" } else { "" };
        write!(out, "run {run}{new}: ")?;
        if self.dry_run {
            write!(out, "{left} of {total} would be submitted for at most {tokens_max} tokens")?;
        } else {
            let done = submitted.saturating_add(*found);
            write!(out, "{done} of {total} submitted for at most {tokens_max} tokens")?;
        }
        for (count, name) in [
            (found, "of them found again after a lost answer"),
            (known, "known already"),
            (refused, "refused"),
            (ambiguous, "ambiguous"),
        ] {
            if *count > 0 {
                write!(out, ", {count} {name}")?;
            }
        }
        if *left > 0 && !self.dry_run {
            write!(out, ", {left} left")?;
        }
        Ok(())
    }
}
