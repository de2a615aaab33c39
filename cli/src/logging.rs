//! Logs on standard error: lines for people, or JSON for machines.

use settings::LogLevel;
use telemetry::{Form, Sink};

use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;

/// Starts the log at a level that a person named.
pub(crate) fn start(level: &str, output: Output) -> Result<(), CliError> {
    let level: LogLevel = level.parse().map_err(|_| {
        CliError::new(Exit::Usage, "the log level is not known")
            .hint("use one of error, warn, info, debug, trace and off")
    })?;
    let form = match output {
        Output::Json => Form::Json,
        Output::Text => Form::Text,
    };
    telemetry::start(level, form, Sink::Stderr)
        .map_err(|error| CliError::new(Exit::Bug, "cannot start the log").because(error))
}
