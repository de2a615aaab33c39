//! What people hand in: lists of URLs, durations, names.

mod duration;
#[cfg(test)]
mod foreign;
mod ids;
mod limit;
mod lines;
mod moment;
mod name;

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::PathBuf;

pub(crate) use duration::parse_duration;
pub(crate) use limit::{Limit, parse_limit};
pub(crate) use lines::{Line, from_arguments};
pub(crate) use moment::{Moment, parse_moment};
pub(crate) use name::{NameError, parse_name};

use crate::error::CliError;
use crate::exit::Exit;
use crate::output::note;

/// Largest list of URLs, in bytes: 64 MiB, a million URLs of common length.
const INPUT_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// Where a list of URLs is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl Source {
    /// `-` is standard input, as everywhere.
    pub(crate) fn of(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::File(path) }
    }

    fn name(&self) -> String {
        match self {
            Self::File(path) => format!("`{}`", path.display()),
            Self::Stdin => "standard input".to_owned(),
        }
    }

    /// Reads and checks the whole list.
    ///
    /// # Errors
    /// When it cannot be read, or names every line that cannot be used.
    pub(crate) fn read(&self) -> Result<Vec<Line>, CliError> {
        let bytes = self.bytes("URLs")?;
        lines::parse(&bytes).map_err(|problems| {
            let name = self.name();
            CliError::new(Exit::Data, format!("{name} cannot be used, nothing was submitted"))
                .because(problems)
                .hint("write one URL per line, optionally a tab and your own ref; `#` begins a comment")
        })
    }

    /// Reads a list of ids, each as `one` reads it.
    ///
    /// # Errors
    /// When the list cannot be read or used.
    pub(crate) fn read_ids<T>(
        &self,
        one: impl Fn(&str) -> Result<T, NameError>,
    ) -> Result<Vec<T>, CliError> {
        let bytes = self.bytes("ids")?;
        ids::parse(&bytes, one).map_err(|error| {
            CliError::new(Exit::Data, format!("{} cannot be used, nothing was done", self.name()))
                .because(error)
                .hint("write one id or ref per line; `#` begins a comment")
        })
    }

    fn bytes(&self, what: &str) -> Result<Vec<u8>, CliError> {
        match self {
            Self::File(path) => {
                // Before it is opened, because opening a pipe waits for its other end.
                let metadata = std::fs::metadata(path).map_err(|error| self.unreadable(error))?;
                if metadata.is_dir() {
                    return Err(CliError::new(
                        Exit::Usage,
                        format!("{} is a folder, not a list of {what}", self.name()),
                    ));
                }
                let file = File::open(path).map_err(|error| self.unreadable(error))?;
                self.bounded(file)
            }
            Self::Stdin => {
                let input = io::stdin().lock();
                if input.is_terminal() {
                    let how = "one per line; end with Ctrl-D";
                    note(&format!("reading {what} from the terminal, {how}"));
                }
                self.bounded(input)
            }
        }
    }

    fn bounded(&self, input: impl Read) -> Result<Vec<u8>, CliError> {
        let mut bytes = Vec::new();
        let limit = u64::try_from(INPUT_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
        input.take(limit).read_to_end(&mut bytes).map_err(|error| self.unreadable(error))?;
        if bytes.len() > INPUT_BYTES_MAX {
            return Err(CliError::new(Exit::Data, format!("{} is too large", self.name()))
                .hint(format!("a list has at most {INPUT_BYTES_MAX} bytes; split it")));
        }
        Ok(bytes)
    }

    fn unreadable(&self, error: io::Error) -> CliError {
        let exit = if error.kind() == io::ErrorKind::NotFound { Exit::Usage } else { Exit::System };
        CliError::new(exit, format!("cannot read {}", self.name())).because(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_standard_input() {
        assert_eq!(Source::of("-".into()), Source::Stdin);
        assert_eq!(Source::of("./-".into()), Source::File("./-".into()));
    }
}
