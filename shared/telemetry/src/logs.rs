//! The log of a process: JSON for machines, lines for people.

use std::io;

use settings::LogLevel;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata, Span};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::panics;

/// Our own crates as they name themselves in lines. The simulator and what tests use count as
/// libraries.
const OURS: [&str; 16] = [
    "aws_client",
    "domain",
    "embedded",
    "gleaner",
    "host",
    "ledger_dynamodb",
    "queue_sqs",
    "receiver",
    "results",
    "rotator",
    "scheduler",
    "scraper_api",
    "secrets_aws",
    "system",
    "telemetry",
    "worker",
];

/// What a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For a person.
    Text,
    /// One JSON object.
    Json,
}

/// Where lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sink {
    /// For functions, whose every output Lambda keeps.
    Stdout,
    /// For the command line, whose standard output is data.
    Stderr,
}

/// The process has a log already.
#[derive(Debug, thiserror::Error)]
#[error("the log was started already")]
pub struct AlreadyStarted;

/// Starts the log of this process, and has panics told there: where, and not what they say, which
/// may hold anything.
///
/// Our own crates log at `level`. The libraries below them, whose traces may show headers and
/// bodies, log at `warn` and `error` alone.
///
/// # Errors
/// The second time in one process.
pub fn start(level: LogLevel, form: Form, sink: Sink) -> Result<(), AlreadyStarted> {
    match sink {
        Sink::Stdout => start_into(level, form, io::stdout),
        Sink::Stderr => start_into(level, form, io::stderr),
    }
}

/// As [`start`], into any writer.
///
/// # Errors
/// The second time in one process.
pub fn start_into<W>(level: LogLevel, form: Form, writer: W) -> Result<(), AlreadyStarted>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(BoxMakeWriter::new(writer)).with_ansi(false);
    let lines = match form {
        Form::Json => lines.json().with_current_span(true).with_span_list(false).boxed(),
        Form::Text => lines.with_target(false).boxed(),
    };
    let wanted = filter_fn(move |line: &Metadata<'_>| wants(level, line.target(), *line.level()));
    let wanted = wanted.with_max_level_hint(filter_of(level));
    let started = tracing_subscriber::registry().with(wanted).with(lines).try_init();
    started.map_err(|_| AlreadyStarted)?;
    panics::tell_from_now_on();
    Ok(())
}

/// The span of one invocation of a function; each line within it has the id.
pub fn invocation(request_id: &str) -> Span {
    // At this level, so that every line that is logged has it.
    tracing::error_span!("invocation", request_id)
}

/// Whether a line is logged: one of ours up to the level, one of a library up to `warn` as well.
fn wants(level: LogLevel, target: &str, of: Level) -> bool {
    let most = filter_of(level);
    of <= if is_ours(target) { most } else { most.min(LevelFilter::WARN) }
}

fn filter_of(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// Whether a line is of one of our crates: by its whole name, since other crates' names may begin
/// as ours do.
fn is_ours(target: &str) -> bool {
    let name = target.split("::").next().unwrap_or_default();
    OURS.contains(&name)
}

#[cfg(test)]
mod tests;
