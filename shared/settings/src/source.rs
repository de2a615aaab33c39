//! Where settings come from.

use std::fmt;
use std::path::PathBuf;

/// The text of a settings file.
#[derive(Clone, PartialEq, Eq)]
pub struct FileText {
    /// The file, for messages.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
}

/// One setting given on the command line.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    /// What was written, such as `--data-dir` or `--set`.
    pub flag: &'static str,
    /// The setting's name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// All sources. The command line goes before the environment, and that before the file.
pub struct Sources<'a> {
    /// What the command line gives; of two for one setting, the last counts.
    pub flags: Vec<Given>,
    /// The environment: the value of a variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The names of all variables that begin with `GLEANER_`.
    pub variables: Vec<String>,
    /// The settings file, if there is one.
    pub file: Option<FileText>,
}

/// Where one value came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The command line.
    Flag(&'static str),
    /// An environment variable.
    Variable(String),
    /// The settings file.
    File(PathBuf),
    /// The table's default.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => out.write_str(flag),
            Self::Variable(name) => out.write_str(name),
            Self::File(path) => write!(out, "{}", path.display()),
            Self::Default => out.write_str("the default"),
        }
    }
}
