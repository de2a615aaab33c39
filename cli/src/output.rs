//! Standard output is data, standard error is talk.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::time::Duration;

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
    #[expect(clippy::unused_self, reason = "a line is the same for people and machines")]
    pub(crate) fn line(self, line: &str) -> Result<(), CliError> {
        write(format!("{line}\n").as_bytes()).map(drop)
    }
}

/// A duration as a person says it.
pub(crate) fn told(duration: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = duration.as_secs();
    let (count, unit) = match seconds {
        0..MINUTE => (seconds, "second"),
        MINUTE..HOUR => (seconds / MINUTE, "minute"),
        HOUR..DAY => (seconds / HOUR, "hour"),
        _ => (seconds / DAY, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

/// Whether somebody still reads standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// As far as is known.
    Listening,
    /// The other end of the pipe is closed: more data would be in vain.
    Gone,
}

/// Writes data as it is, and says whether more of it is wanted.
///
/// # Errors
/// When standard output cannot be written; a reader that has gone away is no error.
pub(crate) fn write(bytes: &[u8]) -> Result<Reader, CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::Listening),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => {
            Err(CliError::new(Exit::System, "cannot write to standard output").because(error))
        }
    }
}

/// Says something to a person, beside the data. A closed standard error is nobody's trouble.
pub(crate) fn note(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Rows that a listing tells of one by one.
const UNREADABLE_TOLD_MAX: usize = 10;

/// Says which rows of the ledger a listing had to leave out.
pub(crate) fn note_unreadable(rows: &[String]) {
    for row in rows.iter().take(UNREADABLE_TOLD_MAX) {
        note(&format!("note: left out: {row}"));
    }
    if let Some(more) = rows.len().checked_sub(UNREADABLE_TOLD_MAX).filter(|more| *more > 0) {
        note(&format!("note: left out: {more} more rows of the ledger that do not decode"));
    }
}

/// Prints an error for a person.
pub(crate) fn print_error(error: &CliError) {
    note(&error.render());
}
