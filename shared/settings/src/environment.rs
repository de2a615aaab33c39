//! The variables that a function on AWS Lambda sees.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::str::FromStr;

use crate::table::LOG_VARIABLE;

/// What the names of our variables begin with.
pub(crate) const PREFIX: &str = "GLEANER_";
/// How much Lambda is set to keep of a function's log.
const LAMBDA_LOG_VARIABLE: &str = "AWS_LAMBDA_LOG_LEVEL";

/// Our own variables, and Lambda's word on the log. Has no `Debug`: values may be secrets.
#[derive(Clone, Default)]
pub struct Environment {
    values: BTreeMap<String, String>,
    /// Names of ours whose values are no text.
    not_text: Vec<String>,
}

impl Environment {
    /// Takes what concerns us from all variables, such as `std::env::vars_os()`.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut environment = Self::default();
        for (name, value) in variables {
            let Ok(name) = name.into_string() else { continue };
            if !name.starts_with(PREFIX) && name != LAMBDA_LOG_VARIABLE {
                continue;
            }
            match value.into_string() {
                Ok(value) => drop(environment.values.insert(name, value)),
                Err(_) => environment.not_text.push(name),
            }
        }
        environment
    }

    /// How much a function logs: as `GLEANER_LOG` says, else as Lambda says, else `info`. A word
    /// that is none counts as not set here, and is a problem of the settings.
    pub fn log_level(&self) -> LogLevel {
        let own = self.value(LOG_VARIABLE).and_then(|word| word.parse().ok());
        let lambdas = || self.value(LAMBDA_LOG_VARIABLE).and_then(LogLevel::of_lambda);
        own.or_else(lambdas).unwrap_or_default()
    }

    /// Whether our own word on the log is one.
    pub(crate) fn has_log_problem(&self) -> bool {
        self.value(LOG_VARIABLE).is_some_and(|word| word.parse::<LogLevel>().is_err())
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The names of our own variables.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str).filter(|name| name.starts_with(PREFIX))
    }

    /// Names of our own variables whose values are no text.
    pub(crate) fn not_text(&self) -> impl Iterator<Item = &str> {
        self.not_text.iter().map(String::as_str).filter(|name| name.starts_with(PREFIX))
    }
}

/// How much is logged by our own crates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What somebody must act on.
    Error,
    /// What is degraded and handled as well.
    Warn,
    /// A line for each delivery, task and sweep as well.
    #[default]
    Info,
    /// What is put off as well.
    Debug,
    /// Everything.
    Trace,
}

/// A word that is no level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not one of error, warn, info, debug, trace and off")]
pub struct NoLevel;

impl LogLevel {
    /// Lambda's words, in capitals and with one more.
    fn of_lambda(word: &str) -> Option<Self> {
        if word == "FATAL" { Some(Self::Error) } else { word.to_ascii_lowercase().parse().ok() }
    }
}

impl FromStr for LogLevel {
    type Err = NoLevel;

    fn from_str(word: &str) -> Result<Self, NoLevel> {
        Ok(match word {
            "off" => Self::Off,
            "error" => Self::Error,
            "warn" => Self::Warn,
            "info" => Self::Info,
            "debug" => Self::Debug,
            "trace" => Self::Trace,
            _ => return Err(NoLevel),
        })
    }
}
