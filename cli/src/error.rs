//! What goes wrong in a verb: an exit code, a message, and what to do.

use std::error::Error;
use std::fmt;

use domain::ports::{ApiError, ApiErrorKind, ErrorKind, PortError, SubmitError};

use crate::exit::Exit;

/// Shortest beginning of a secret that is blotted out, in bytes; a shorter one gives nothing away.
const BLOTTED_BYTES_MIN: usize = 8;

/// An error that a person reads. Its message goes to standard error, each cause on a line below,
/// and the hint last.
pub struct CliError {
    /// How the process ends.
    pub exit: Exit,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl CliError {
    /// An error with its exit code.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None, source: None }
    }

    /// The same error with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error, told of this part of what was to be done.
    #[must_use]
    pub(crate) fn about(mut self, part: &str) -> Self {
        self.message = format!("{part}: {}", self.message);
        self
    }

    /// The same error with its cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error without these secrets in its message, in which the platform may have
    /// repeated them. Texts of the platform are cut, so that the beginning of a secret counts too.
    #[must_use]
    pub(crate) fn without<'a>(mut self, secrets: impl IntoIterator<Item = &'a str>) -> Self {
        for secret in secrets {
            self.message = blotted(&self.message, secret);
        }
        self
    }

    /// Message and causes in one line, without the hint.
    pub(crate) fn told(&self) -> String {
        let mut text = self.message.clone();
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }

    /// What to do about it, if anything is known.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The whole text as a person sees it.
    pub fn render(&self) -> String {
        let mut text = format!("error: {}", self.message);
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(&format_cause(error));
            cause = error.source();
        }
        if let Some(hint) = &self.hint {
            text.push_str("\nhint: ");
            text.push_str(hint);
        }
        text
    }
}

/// A text without a secret and its beginnings.
pub(crate) fn blotted(text: &str, secret: &str) -> String {
    let ends = (BLOTTED_BYTES_MIN..=secret.len()).rev();
    let beginnings = ends.filter_map(|end| secret.get(..end));
    beginnings.fold(text.to_owned(), |text, beginning| text.replace(beginning, "[redacted]"))
}

fn format_cause(error: &dyn Error) -> String {
    format!("\n  caused by: {error}")
}

impl fmt::Display for CliError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl fmt::Debug for CliError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (exit code {})", self.render(), self.exit.code())
    }
}

impl Error for CliError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| -> &(dyn Error + 'static) { source })
    }
}

impl From<PortError> for CliError {
    fn from(error: PortError) -> Self {
        let (exit, hint) = match error.kind {
            ErrorKind::Throttled => (Exit::TryAgain, "wait a little and try again"),
            ErrorKind::Unavailable => (
                Exit::TryAgain,
                "another process may hold the file, or the disk is full; try again",
            ),
            ErrorKind::Denied => (Exit::System, "check who owns the data folder and its files"),
            ErrorKind::Corrupt => (Exit::Data, "the row or object named above does not decode"),
            ErrorKind::Invalid => (Exit::Bug, "this is a bug in gleaner; please report it"),
        };
        Self::new(exit, format!("{} failed", error.operation)).because(error).hint(hint)
    }
}

impl From<ApiError> for CliError {
    fn from(error: ApiError) -> Self {
        let (exit, hint) = match error.kind {
            ApiErrorKind::Throttled => {
                (Exit::TryAgain, "the account is throttled; try again later")
            }
            ApiErrorKind::PaymentRequired => (
                Exit::PaymentRequired,
                "add tokens to the account, then run the same command again",
            ),
            ApiErrorKind::Denied => (Exit::Denied, "check the API key (GLEANER_API_KEY)"),
            ApiErrorKind::Missing => {
                (Exit::NotFound, "check the id, and that the key's account owns it")
            }
            ApiErrorKind::Refused => (Exit::Usage, "the platform will not accept this request"),
            ApiErrorKind::Unavailable => {
                (Exit::Unavailable, "the platform did not answer; run the same command again")
            }
            ApiErrorKind::Unreadable => {
                (Exit::Data, "check the API's address (GLEANER_API_URL); is a proxy in between?")
            }
            ApiErrorKind::TooLarge => (Exit::Data, "the answer is larger than gleaner reads"),
        };
        Self::new(exit, error.to_string()).hint(hint)
    }
}

impl From<SubmitError> for CliError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Refused(error) => error.into(),
            SubmitError::Unanswered(error) => {
                Self::new(Exit::Unavailable, error.to_string()).hint(
                    "the answer was lost, and the call may have taken effect: look before you repeat it",
                )
            }
        }
    }
}
