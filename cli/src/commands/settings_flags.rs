//! The settings' flags, and the one place that reads the environment and the settings file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Arg, Args, Command, Id};
use settings::{Backend, FileText, Given, Settings, Sources};

use crate::error::CliError;
use crate::exit::Exit;

/// Largest settings file, in bytes.
const FILE_BYTES_MAX: u64 = 1_024 * 1_024;
/// Read when no file is named and it is there.
const DEFAULT_FILE: &str = "gleaner.toml";
/// What the names of our environment variables begin with.
const PREFIX: &str = "GLEANER_";
/// Names the settings file.
const FILE_VARIABLE: &str = "GLEANER_CONFIG";

/// Settings on the command line; they go before the environment, and that before the file.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingsFlags {
    /// Settings file in TOML; else `GLEANER_CONFIG` names it, else ./gleaner.toml is read if it is
    /// there.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where ledger, queue, results and secrets are: `embedded`, in the data folder, or `aws`, in a
    /// deployed stack [default: embedded].
    #[arg(long, global = true, value_name = "BACKEND")]
    backend: Option<String>,
    /// CloudFormation stack, whose outputs name all that is used of AWS.
    #[arg(long, global = true, value_name = "NAME")]
    stack: Option<String>,
    /// AWS region of the stack; else as AWS's own variables and profiles say.
    #[arg(long, global = true, value_name = "REGION")]
    region: Option<String>,
    /// Folder of ledger, results and secrets [default: gleaner-data].
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<String>,
    // Not as a comment: there the address would need marks that the help text shows.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help = "Base URL of the platform's API [default: https://scraper.geonode.io]"
    )]
    api_url: Option<String>,
    /// File with the account's API key, which nobody else may read.
    #[arg(long, global = true, value_name = "FILE")]
    api_key_file: Option<String>,
    /// Any other setting, see `gleaner settings`; may be given several times.
    #[arg(long, global = true, value_name = "NAME=VALUE", value_parser = parse_pair)]
    set: Vec<(String, String)>,
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// The verbs that read no settings.
const WITHOUT_SETTINGS: [&str; 4] = ["demo", "simulate", "completions", "exit-codes"];

/// Hides the settings' flags in the help of the verbs that read none: a verb's own argument of the
/// same name stands in the place of the global one.
pub(crate) fn hide_unread(mut command: Command) -> Command {
    let flags: Vec<Arg> = command
        .get_arguments()
        .filter(|flag| SettingsFlags::is_flag(flag.get_id().as_str()))
        .map(|flag| flag.clone().global(false).hide(true))
        .collect();
    for verb in WITHOUT_SETTINGS {
        command = command.mut_subcommand(verb, |verb| {
            let own: Vec<Id> = verb.get_arguments().map(|arg| arg.get_id().clone()).collect();
            let hidden = flags.iter().filter(|flag| !own.contains(flag.get_id()));
            verb.args(hidden.cloned().collect::<Vec<_>>())
        });
    }
    command
}

impl SettingsFlags {
    fn is_flag(id: &str) -> bool {
        Self::augment_args(Command::new("")).get_arguments().any(|flag| flag.get_id() == id)
    }

    /// Refuses the flags that the user gave to a verb that reads none.
    ///
    /// # Errors
    /// When there is any.
    pub(crate) fn deny(&self, verb: &str) -> Result<(), CliError> {
        // A verb's own `--config` comes in this place, too.
        let config = self.config.iter().filter(|_| verb != "simulate").map(|_| "--config");
        let given: Vec<&str> = config.chain(self.given().map(|given| given.flag)).collect();
        match given.first() {
            None => Ok(()),
            Some(flag) => Err(CliError::new(
                Exit::Usage,
                format!("`gleaner {verb}` reads no settings: leave {flag} out"),
            )),
        }
    }

    /// The settings of all sources.
    ///
    /// # Errors
    /// All problems together.
    pub(crate) fn load(&self) -> Result<Settings, CliError> {
        self.load_with(Vec::new())
    }

    /// The settings of all sources, with flags that a verb has of its own.
    ///
    /// # Errors
    /// All problems together.
    pub(crate) fn load_with(&self, own: Vec<Given>) -> Result<Settings, CliError> {
        let environment = environment()?;
        let read_variable = |name: &str| environment.get(name).cloned();
        let named = self.config.clone().or_else(|| read_variable(FILE_VARIABLE).map(PathBuf::from));
        let file = match named {
            Some(path) => Some(read(&path)?),
            None if Path::new(DEFAULT_FILE).exists() => Some(read(Path::new(DEFAULT_FILE))?),
            None => None,
        };
        let sources = Sources {
            flags: self.given().chain(own).collect(),
            environment: &read_variable,
            variables: environment.keys().cloned().collect(),
            file,
        };
        let settings = settings::resolve(&sources).map_err(|problems| {
            CliError::new(Exit::Configuration, problems.to_string())
                .hint("docs/configuration.md, which `gleaner settings --markdown` prints, tells all of them")
        })?;
        self.check_backend(&settings)?;
        Ok(settings)
    }

    /// Refuses flags of AWS that the backend does not read: whoever gives them means another
    /// ledger, in which jobs may be paid for that this one knows nothing of.
    fn check_backend(&self, settings: &Settings) -> Result<(), CliError> {
        let flags = [("--stack", &self.stack), ("--region", &self.region)];
        let given = flags.into_iter().find(|(_, value)| value.is_some());
        match (given, &settings.backend) {
            (Some((flag, _)), Backend::Embedded) => {
                let text = format!("{flag} is for a backend on AWS, and this is the embedded one");
                Err(CliError::new(Exit::Usage, text)
                    .hint("add --backend aws, or leave the flag out"))
            }
            _ => Ok(()),
        }
    }

    fn given(&self) -> impl Iterator<Item = Given> {
        let flags = [
            ("--backend", "backend", &self.backend),
            ("--stack", "stack", &self.stack),
            ("--region", "region", &self.region),
            ("--data-dir", "data_dir", &self.data_dir),
            ("--api-url", "api_url", &self.api_url),
            ("--api-key-file", "api_key_file", &self.api_key_file),
        ];
        let by_name = flags.into_iter().filter_map(|(flag, name, value)| {
            let value = value.clone()?;
            Some(Given { flag, name: name.to_owned(), value })
        });
        let by_set = self.set.iter().map(|(name, value)| Given {
            flag: "--set",
            name: name.clone(),
            value: value.clone(),
        });
        by_set.chain(by_name)
    }
}

/// Our variables. This is the one place that reads the environment.
fn environment() -> Result<BTreeMap<String, String>, CliError> {
    let ours = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with(PREFIX));
    ours.map(|(name, value)| match value.into_string() {
        Ok(value) => Ok((name, value)),
        Err(_) => Err(CliError::new(
            Exit::Configuration,
            format!("the environment variable {name} is not UTF-8"),
        )),
    })
    .collect()
}

fn read(path: &Path) -> Result<FileText, CliError> {
    let named = |what: &str| format!("{what} the settings file `{}`", path.display());
    let cannot = |error: std::io::Error| {
        CliError::new(Exit::Configuration, named("cannot read"))
            .because(error)
            .hint("name it with --config or GLEANER_CONFIG")
    };
    let mut text = String::new();
    let file = File::open(path).map_err(cannot)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(CliError::new(Exit::Configuration, named("too large:"))
            .hint("a settings file has at most 1 MiB"));
    }
    Ok(FileText { path: path.to_owned(), text })
}
