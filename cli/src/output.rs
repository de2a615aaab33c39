//! Standard output is data, standard error is talk.

use std::fmt::Display;
use std::io::{self, Write as _};

use serde::Serialize;

use crate::error::CliError;
use crate::exit::Exit;

/// What standard output carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// Lines for a person.
    Text,
    /// JSON, one document per line.
    Json,
}

impl Output {
    /// Prints a value: its `Display` form for a person, its JSON for a machine.
    ///
    /// # Errors
    /// When standard output cannot be written; a reader that has gone away is no error.
    pub(crate) fn print<T: Display + Serialize>(self, value: &T) -> Result<(), CliError> {
        match self {
            Self::Text => self.line(&value.to_string()),
            Self::Json => {
                let json = serde_json::to_string(value)
                    .map_err(|error| CliError::new(Exit::Bug, "cannot print").because(error))?;
                self.line(&json)
            }
        }
    }

    /// Prints one line of data.
    ///
    /// # Errors
    /// As [`Output::print`].
    pub(crate) fn line(self, line: &str) -> Result<(), CliError> {
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        match written {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => {
                Err(CliError::new(Exit::System, "cannot write to standard output").because(error))
            }
        }
    }
}

/// Prints an error for a person.
#[expect(clippy::print_stderr, reason = "this is where errors are printed")]
pub(crate) fn print_error(error: &CliError) {
    eprintln!("{}", error.render());
}
