//! The command line: global options and verbs.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use settings::Settings;

use crate::backend;
use crate::commands;
use crate::commands::settings_flags::{SettingsFlags, hide_unread};
use crate::error::CliError;
use crate::exit::Exit;
use crate::logging;
use crate::output::{Output, print_error};

/// Stores the results of asynchronous scraping jobs once, and loses none.
#[derive(Debug, Parser)]
#[command(name = "gleaner", version, propagate_version = true, max_term_width = 100)]
struct Arguments {
    /// Print machine-readable JSON on standard output.
    #[arg(long, global = true)]
    json: bool,
    /// How much to log on standard error: error, warn, info, debug or trace [default: warn; error
    /// for the demo, whose view says the rest].
    #[arg(long, global = true, env = "GLEANER_LOG", value_name = "LEVEL")]
    log: Option<String>,
    #[command(flatten)]
    settings: SettingsFlags,
    #[command(subcommand)]
    verb: Verb,
}

// The arguments of a verb carry its help text; a comment on the variant would hide the long form.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Run simulator and pipeline together, and balance the books at the end.
    Demo(commands::demo::Demo),
    /// Run the platform's simulator.
    Simulate(commands::simulate::Simulate),
    Submit(commands::submit::Submit),
    Extract(commands::extract::Extract),
    Poll(commands::poll::Poll),
    Results(commands::results::Results),
    Jobs(commands::jobs::Jobs),
    Dead(commands::dead::Dead),
    Explain(commands::explain::Explain),
    Audit(commands::audit::Audit),
    Serve(commands::serve::Serve),
    Sweep(commands::sweep::Sweep),
    Replay(commands::replay::Replay),
    Reconcile(commands::reconcile::Reconcile),
    Webhooks(commands::webhooks::Webhooks),
    Rotate(commands::rotate::Rotate),
    Doctor(commands::doctor::Doctor),
    Settings(commands::settings::ShowSettings),
    Completions(commands::completions::Completions),
    ExitCodes(commands::completions::ExitCodes),
}

/// Runs the command line and returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match parse(arguments) {
        Ok(arguments) => arguments,
        Err(mut error) => {
            conceal(&mut error);
            // Help and version are no errors and go to standard output.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            drop(error.print());
            return ExitCode::from(exit.code());
        }
    };
    let output = if arguments.json { Output::Json } else { Output::Text };
    let exit = match execute(arguments, output) {
        Ok(exit) => exit,
        Err(error) => {
            print_error(&error);
            error.exit
        }
    };
    ExitCode::from(exit.code())
}

/// The command line as it is documented.
fn command() -> Command {
    hide_unread(Arguments::command())
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(arguments)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Blots out a refused value that may be a secret: an address with a password or a token, and what
/// was to be set.
fn conceal(error: &mut clap::Error) {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let is_setting = text(ContextKind::InvalidArg).starts_with("--set ");
    if is_setting || text(ContextKind::InvalidValue).contains(['@', '?']) {
        let blotted = ContextValue::String("[redacted]".to_owned());
        error.insert(ContextKind::InvalidValue, blotted);
    }
}

fn execute(arguments: Arguments, output: Output) -> Result<Exit, CliError> {
    let quiet = if matches!(arguments.verb, Verb::Demo(_)) { "error" } else { "warn" };
    logging::start(arguments.log.as_deref().unwrap_or(quiet), output)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::new(Exit::System, "cannot start").because(error))?;
    let flags = &arguments.settings;
    runtime.block_on(async {
        match arguments.verb {
            Verb::Demo(demo) => {
                flags.deny("demo")?;
                demo.run(output).await
            }
            Verb::Simulate(simulate) => {
                flags.deny("simulate")?;
                simulate.run(output).await
            }
            Verb::Submit(submit) => on(flags, async |it| submit.run(output, it).await).await,
            Verb::Extract(extract) => on(flags, async |it| extract.run(output, it).await).await,
            Verb::Poll(poll) => on(flags, async |it| poll.run(output, it).await).await,
            Verb::Results(results) => on(flags, async |it| results.run(output, it).await).await,
            Verb::Jobs(jobs) => on(flags, async |it| jobs.run(output, it).await).await,
            Verb::Dead(dead) => on(flags, async |it| Box::pin(dead.run(output, it)).await).await,
            Verb::Explain(explain) => {
                on(flags, async |it| Box::pin(explain.run(output, it)).await).await
            }
            Verb::Audit(audit) => on(flags, async |it| audit.run(output, it).await).await,
            Verb::Serve(serve) => serve.run(output, flags).await,
            Verb::Sweep(sweep) => on(flags, async |it| sweep.run(output, it).await).await,
            Verb::Replay(replay) => on(flags, async |it| replay.run(output, it).await).await,
            Verb::Reconcile(verb) => on(flags, async |it| verb.run(output, it).await).await,
            Verb::Rotate(rotate) => on(flags, async |it| rotate.run(output, it).await).await,
            Verb::Webhooks(webhooks) => on(flags, async |it| webhooks.run(output, it).await).await,
            Verb::Doctor(doctor) => Box::pin(doctor.run(output, flags)).await,
            Verb::Settings(show) => show.run(output, flags).await,
            Verb::Completions(completions) => {
                flags.deny("completions")?;
                completions.run(command())
            }
            Verb::ExitCodes(exit_codes) => {
                flags.deny("exit-codes")?;
                exit_codes.run(output)
            }
        }
    })
}

/// Runs a verb with the settings in force.
async fn on(
    flags: &SettingsFlags,
    verb: impl AsyncFnOnce(&Settings) -> Result<Exit, CliError>,
) -> Result<Exit, CliError> {
    let settings = flags.load()?;
    Box::pin(verb(&settings)).await.map_err(|error| backend::advised(error, &settings))
}
