//! `gleaner completions` and `gleaner exit-codes`.

use std::fmt;

use clap::{Args, Command};
use clap_complete::Shell;
use serde::Serialize;

use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, write};

/// Print a script that completes the command line.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, mut command: Command) -> Result<Exit, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "gleaner", &mut script);
        write(&script)?;
        Ok(Exit::Ok)
    }
}

/// Print the exit codes and what they say.
#[derive(Debug, Args)]
pub(crate) struct ExitCodes {}

/// One line of the table.
#[derive(Serialize)]
struct Line {
    version: u32,
    r#type: &'static str,
    code: u8,
    meaning: &'static str,
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:>3}  {}", self.code, self.meaning)
    }
}

impl ExitCodes {
    #[expect(clippy::unused_self, reason = "every verb is run alike")]
    pub(crate) fn run(self, output: Output) -> Result<Exit, CliError> {
        for exit in Exit::ALL {
            let (code, meaning) = (exit.code(), exit.meaning());
            output.print(&Line { version: 1, r#type: "exit_code", code, meaning })?;
        }
        Ok(Exit::Ok)
    }
}
