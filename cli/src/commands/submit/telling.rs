//! What `submit` says while it goes on, and how it ends.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::intent::Submission;
use domain::ports::{ApiError, ApiErrorKind, Clock, PortError};
use domain::submit::{Deferral, Submitted, Submitter};
use domain::time::{Timestamp, between};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::finish;
use super::plan::Plan;
use super::report::{Row, Summary};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note};
use crate::submitting::{Audience, Ended, Stop};

/// Shortest time between two notes about a wait.
const NOTE_SPACING: Duration = Duration::from_secs(30);

/// Prints outcomes as they become known, and remembers what the exit code follows from.
pub(super) struct Telling<'a> {
    output: Output,
    clock: &'a dyn Clock,
    /// When the call stops waiting.
    deadline: Timestamp,
    /// Stopped when nothing more can be printed.
    stop: &'a Stop,
    bar: ProgressBar,
    told: Mutex<Told>,
}

struct Told {
    summary: Summary,
    trouble: Option<CliError>,
    /// Positions whose answer was lost in this call.
    lost: BTreeSet<u64>,
    /// Whether the platform answered anything.
    is_answered: bool,
    /// The last call that got no answer.
    silence: Option<ApiError>,
    noted_at: Option<Timestamp>,
}

impl<'a> Telling<'a> {
    /// Nothing was told yet.
    pub(super) fn new(
        plan: &Plan,
        summary: Summary,
        output: Output,
        (clock, deadline): (&'a dyn Clock, Timestamp),
        stop: &'a Stop,
    ) -> Self {
        let total = plan.submissions.len();
        let target = if std::io::stderr().is_terminal() && total > 1 {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let length = u64::try_from(total).unwrap_or(u64::MAX);
        let bar = ProgressBar::with_draw_target(Some(length), target);
        if let Ok(style) = ProgressStyle::with_template("{elapsed:>5} {bar:30} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        let told = Told {
            summary,
            trouble: None,
            lost: BTreeSet::new(),
            is_answered: false,
            silence: None,
            noted_at: None,
        };
        Self { output, clock, deadline, stop, bar, told: Mutex::new(told) }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints the summary; the exit code, or what is in the way.
    pub(super) fn finish(self) -> Result<Exit, CliError> {
        self.bar.finish_and_clear();
        let told = self.told.into_inner().unwrap_or_else(PoisonError::into_inner);
        finish(&told.summary, self.output)?;
        if let Some(trouble) = told.trouble {
            return Err(trouble);
        }
        if told.summary.left == 0 {
            return Ok(if told.summary.has_losses() { Exit::JobFailed } else { Exit::Ok });
        }
        match told.silence {
            Some(silence) if !told.is_answered => Err(silence.into()),
            _ => {
                note("hint: run the same command again to go on");
                Ok(Exit::TryAgain)
            }
        }
    }
}

impl Audience for Telling<'_> {
    fn ended(&self, submission: &Submission, ended: &Ended) {
        let mut told = self.told();
        let row = Row::of(submission, ended, told.lost.contains(&submission.position));
        told.summary.count(&row);
        told.is_answered |= is_answer(ended);
        if let Some(trouble) = trouble_of(ended) {
            told.trouble.get_or_insert(trouble);
        }
        self.bar.set_message("");
        self.bar.inc(1);
        if let Err(error) = self.bar.suspend(|| self.output.print(&row)) {
            told.trouble = Some(error);
            self.stop.stop();
        }
    }

    fn waits(&self, submission: &Submission, tried: &Submitted) {
        let mut told = self.told();
        match tried {
            Submitted::Unanswered { .. } => {
                told.lost.insert(submission.position);
            }
            Submitted::Deferred { because: Deferral::Api(error), .. } => match error.status {
                Some(_) => told.is_answered = true,
                None if error.kind == ApiErrorKind::Unavailable => {
                    told.silence = Some(error.clone());
                }
                None => {}
            },
            _ => {}
        }
        let Some(reason) = reason(tried) else { return };
        let now = self.clock.now();
        if told.noted_at.is_some_and(|at| between(at, now) < NOTE_SPACING) {
            return;
        }
        told.noted_at = Some(now);
        let until = self.deadline.strftime("%H:%M");
        let text = format!("{reason}; trying until {until} UTC, interrupt to go on later");
        if self.bar.is_hidden() {
            note(&text);
        } else {
            self.bar.set_message(text);
        }
    }
}

/// What a submission waits for, if a person should know.
fn reason(tried: &Submitted) -> Option<String> {
    let because = match tried {
        Submitted::Deferred { because, .. } => because,
        Submitted::Unanswered { .. } => {
            return Some("an answer was lost; what became of it is being found out".to_owned());
        }
        Submitted::Accepted { .. } | Submitted::Refused(_) | Submitted::Ambiguous => return None,
    };
    Some(match because {
        Deferral::Api(error) => match (error.kind, error.status) {
            (ApiErrorKind::Unavailable, None) => {
                // The innermost cause is the one that says what is wrong.
                let cause = error.message.rsplit(": ").next().unwrap_or_default();
                format!("the platform does not answer ({cause})")
            }
            (ApiErrorKind::Throttled, _) => "the platform makes us wait (throttled)".to_owned(),
            _ => error.to_string(),
        },
        Deferral::Paused(why) if why == ApiErrorKind::Denied.as_str() => {
            "the account is paused since the API key was refused (GLEANER_API_KEY)".to_owned()
        }
        Deferral::Paused(why) => format!("the account is paused ({why})"),
        Deferral::Spent => "the spend of the day is used up".to_owned(),
        Deferral::Contended => return None,
    })
}

/// Whether an end shows that the platform answers.
const fn is_answer(ended: &Ended) -> bool {
    match ended {
        Ended::Known(
            Submitted::Accepted { by: Submitter::ThisCall, .. } | Submitted::Refused(_),
        )
        | Ended::Blocked(_) => true,
        Ended::GivenUp(Submitted::Deferred { because: Deferral::Api(error), .. }) => {
            error.status.is_some()
        }
        Ended::Known(_) | Ended::GivenUp(_) | Ended::Failed(_) => false,
    }
}

/// The error that an end stands for, if the account or the ledger is in the way.
fn trouble_of(ended: &Ended) -> Option<CliError> {
    match ended {
        Ended::Blocked(error) => Some(error.clone().into()),
        Ended::Failed(error) => Some(failed(error)),
        Ended::GivenUp(Submitted::Deferred { because: Deferral::Paused(why), .. }) => {
            let kind = [ApiErrorKind::PaymentRequired, ApiErrorKind::Denied]
                .into_iter()
                .find(|kind| kind.as_str() == why)?;
            Some(ApiError::new(kind, "the account is paused since an earlier answer").into())
        }
        Ended::GivenUp(_) | Ended::Known(_) => None,
    }
}

/// The same error as an owned one; its cause goes with it as text.
fn failed(error: &PortError) -> CliError {
    let copy = PortError::new(error.port, error.operation, error.kind);
    match std::error::Error::source(error) {
        Some(source) => copy.with_source(source.to_string()).into(),
        None => copy.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn because(because: Deferral) -> Option<String> {
        reason(&Submitted::Deferred { wait: Duration::ZERO, because })
    }

    #[test]
    fn the_reason_of_a_wait_is_named() {
        let refused = "error sending request: tcp connect error: Connection refused (os error 111)";
        let api = |kind| Deferral::Api(ApiError::new(kind, refused));
        assert_eq!(
            because(api(ApiErrorKind::Unavailable)).as_deref(),
            Some("the platform does not answer (Connection refused (os error 111))")
        );
        assert_eq!(
            because(api(ApiErrorKind::Throttled)).as_deref(),
            Some("the platform makes us wait (throttled)")
        );
        assert_eq!(
            because(Deferral::Paused("throttled".to_owned())).as_deref(),
            Some("the account is paused (throttled)")
        );
        assert_eq!(because(Deferral::Contended), None);
        assert_eq!(reason(&Submitted::Ambiguous), None);
    }
}
