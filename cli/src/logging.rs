//! Logs on standard error: lines for people, or JSON for machines.

use tracing_subscriber::EnvFilter;

use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;

/// Our own crates log at the given level; the libraries below them, whose traces may show
/// headers and bodies, never below `warn`.
pub(crate) fn start(level: &str, output: Output) -> Result<(), CliError> {
    let known = ["error", "warn", "info", "debug", "trace", "off"];
    if !known.contains(&level) {
        return Err(CliError::new(Exit::Usage, "the log level is not known")
            .hint("use one of error, warn, info, debug, trace and off"));
    }
    let quiet = if level == "off" || level == "error" { level } else { "warn" };
    let filter = EnvFilter::new(format!("{quiet},gleaner={level}"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    let started = match output {
        Output::Json => builder.json().try_init(),
        Output::Text => builder.with_target(false).try_init(),
    };
    started.map_err(|error| CliError::new(Exit::Bug, "cannot start the log").because(error))
}
