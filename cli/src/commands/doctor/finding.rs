//! What a check found, and what is printed of it.

use std::fmt;

use serde::Serialize;

use crate::error::{CliError, blotted};
use crate::exit::Exit;
use crate::output::Output;

/// How a check ended. Only [`Outcome::Failed`] makes the process fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// It is as it must be.
    Ok,
    /// It works, and somebody should look at it.
    Warning,
    /// It does not work.
    Failed,
    /// It was not looked at, or there is nothing to look at.
    Skipped,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// One thing that a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    version: u32,
    r#type: &'static str,
    /// The check's name.
    pub(super) check: &'static str,
    pub(super) outcome: Outcome,
    /// What was found, in a sentence.
    pub(super) found: String,
    /// What to do about it.
    pub(super) advice: Option<String>,
}

impl Finding {
    fn new(check: &'static str, outcome: Outcome, found: String, advice: Option<String>) -> Self {
        Self { version: 1, r#type: "check", check, outcome, found, advice }
    }

    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Outcome::Ok, found.into(), None)
    }

    pub(super) fn warning(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(check, Outcome::Warning, found.into(), Some(advice.into()))
    }

    pub(super) fn failed(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(check, Outcome::Failed, found.into(), Some(advice.into()))
    }

    pub(super) fn skipped(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Outcome::Skipped, found.into(), None)
    }

    /// The check could not be made, or what it needs is broken. The advice is the error's own, if
    /// it has one.
    pub(super) fn trouble(check: &'static str, error: &CliError, otherwise: &str) -> Self {
        let advice = error.advice().unwrap_or(otherwise).to_owned();
        Self::new(check, Outcome::Failed, error.told(), Some(advice))
    }

    /// The finding without these secrets, which somebody else may have repeated.
    fn without(mut self, secrets: &[String]) -> Self {
        for secret in secrets {
            self.found = blotted(&self.found, secret);
            self.advice = self.advice.map(|advice| blotted(&advice, secret));
        }
        self
    }
}

/// What to do where nothing better is known.
pub(super) const AGAIN: &str = "run it again; if it stays so, please report it";
/// Columns of outcome and check.
const OUTCOME_WIDTH: usize = 8;
const CHECK_WIDTH: usize = 12;

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (outcome, check) = (self.outcome.as_str(), self.check);
        write!(out, "{outcome:<OUTCOME_WIDTH$} {check:<CHECK_WIDTH$} {}", plain(&self.found))?;
        match &self.advice {
            Some(advice) => {
                write!(out, "\n{:OUTCOME_WIDTH$} {:CHECK_WIDTH$} do: {}", "", "", plain(advice))
            }
            None => Ok(()),
        }
    }
}

/// What comes from elsewhere keeps to its line.
fn plain(text: &str) -> String {
    let words: Vec<_> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Prints findings as they come, and counts them.
pub(super) struct Report {
    output: Output,
    /// What must not be printed, whoever says it.
    secrets: Vec<String>,
    summary: Summary,
}

/// How the checks ended.
#[derive(Debug, Serialize)]
struct Summary {
    version: u32,
    r#type: &'static str,
    ok: u32,
    warnings: u32,
    failed: u32,
    skipped: u32,
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ok, warnings, failed, skipped, .. } = self;
        write!(out, "failed {failed}, warnings {warnings}, ok {ok}, skipped {skipped}")
    }
}

impl Report {
    pub(super) const fn new(output: Output) -> Self {
        let summary =
            Summary { version: 1, r#type: "doctor", ok: 0, warnings: 0, failed: 0, skipped: 0 };
        Self { output, secrets: Vec::new(), summary }
    }

    /// Texts that are blotted out from now on.
    pub(super) fn conceal(&mut self, secrets: impl IntoIterator<Item = String>) {
        self.secrets.extend(secrets);
    }

    /// Prints findings.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub(super) fn add(
        &mut self,
        findings: impl IntoIterator<Item = Finding>,
    ) -> Result<(), CliError> {
        for finding in findings {
            let count = match finding.outcome {
                Outcome::Ok => &mut self.summary.ok,
                Outcome::Warning => &mut self.summary.warnings,
                Outcome::Failed => &mut self.summary.failed,
                Outcome::Skipped => &mut self.summary.skipped,
            };
            *count = count.saturating_add(1);
            self.output.print(&finding.without(&self.secrets))?;
        }
        Ok(())
    }

    /// Prints how all of it ended, and says how the process ends.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub(super) fn end(self) -> Result<Exit, CliError> {
        self.output.print(&self.summary)?;
        Ok(if self.summary.failed == 0 { Exit::Ok } else { Exit::CheckFailed })
    }
}
