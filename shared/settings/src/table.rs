//! The table of all settings: what is read is documented here, and nowhere else.

mod aws;
mod general;
mod limits;
mod policies;
mod receiver;
mod upkeep;

use std::time::Duration;

use crate::form::Form;
use crate::role::ReadBy;

/// One setting. Its name is its key in the settings file, where the part before the full stop is
/// a table.
#[derive(Debug)]
pub struct Setting {
    /// The name, such as `limits.max_age`.
    pub name: &'static str,
    /// What values look like, unit and range included.
    pub form: Form,
    /// What holds when nothing is set.
    pub default: Default,
    /// What it decides.
    pub meaning: &'static str,
    /// What a wrong value leads to.
    pub if_wrong: &'static str,
    /// Who reads it.
    pub read_by: ReadBy,
}

/// What holds when nothing is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// This value.
    Value(&'static str),
    /// No value; the text says what that means.
    None(&'static str),
}

impl Setting {
    /// The environment variable.
    pub fn variable(&self) -> String {
        format!("GLEANER_{}", self.name.replace('.', "_").to_ascii_uppercase())
    }

    /// Whether its value is never shown, and taken from the environment alone.
    pub fn is_secret(&self) -> bool {
        matches!(self.form, Form::Secret)
    }

    /// The part of the name before the full stop; empty for settings that stand alone.
    pub fn group(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(group, _)| group)
    }

    /// Whether it says what is used of AWS.
    pub fn is_of_aws(&self) -> bool {
        aws::AWS.iter().any(|setting| setting.name == self.name)
    }
}

/// How much is logged.
pub(crate) const LOG_VARIABLE: &str = "GLEANER_LOG";

/// Variables that are no settings: they are read before the settings are.
pub const OTHER_VARIABLES: [(&str, &str); 2] = [
    ("GLEANER_CONFIG", "settings file, as `--config` names it; no function reads one"),
    (
        LOG_VARIABLE,
        "how much is logged, as `--log` says it; a function reads it before \
         `AWS_LAMBDA_LOG_LEVEL`, and takes `info` without either",
    ),
];

/// All settings, in the order in which they are documented.
pub fn table() -> impl Iterator<Item = &'static Setting> {
    let before_limits = general::GENERAL.iter().chain(upkeep::UPKEEP).chain(receiver::RECEIVER);
    before_limits.chain(limits::LIMITS).chain(policies::POLICIES).chain(aws::AWS)
}

/// The setting of that name.
pub(crate) fn find(name: &str) -> Option<&'static Setting> {
    table().find(|setting| setting.name == name)
}

const EVERY: ReadBy = ReadBy::verbs("every verb but `demo` and `simulate`");
const API: ReadBy = ReadBy::verbs("every verb that asks the platform");
const SERVE: ReadBy = ReadBy::verbs("`serve`");
const SWEEP: ReadBy = ReadBy::verbs("`serve`, `sweep`");
const RECEIVE: ReadBy = ReadBy::verbs("`serve`, `doctor`");
const RECOVER: ReadBy = ReadBy::verbs("`submit`, `poll`, `extract`, `serve`, `sweep`");
const SUBMIT: ReadBy = ReadBy::verbs("`submit`, `poll`, `extract`, `serve`");
const WORK: ReadBy = ReadBy::verbs("`serve`, `poll`, `extract`");

const fn duration(min: Duration, max: Duration) -> Form {
    Form::Duration { min, max }
}

const fn count(min: u64, max: u64) -> Form {
    Form::Count { min, max }
}

const fn bytes(min: u64, max: u64) -> Form {
    Form::Bytes { min, max }
}

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
const YEAR: Duration = Duration::from_hours(24 * 365);
const KIB: u64 = 1_024;
const MIB: u64 = 1_024 * KIB;
const GIB: u64 = 1_024 * MIB;
