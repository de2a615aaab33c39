//! Where settings come from.

use std::path::PathBuf;

/// The text of a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    /// The file, for messages.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
}

/// One setting given on the command line.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    /// What was written, such as `--data-dir` or `--set tick`.
    pub flag: String,
    /// The setting's name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// All sources. The command line goes before the environment, that before the file.
pub struct Sources<'a> {
    /// What the command line gives, the last one counting.
    pub flags: Vec<Given>,
    /// The environment: the value of a variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The names of all variables that begin with `GLEANER_`.
    pub variables: Vec<String>,
    /// The settings file, if there is one.
    pub file: Option<FileText>,
}
