//! What is wrong with settings, all of it at once.

use std::fmt;

use crate::source::Origin;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting, variable or key.
    pub name: String,
    /// Where it came from; `None` for a relation between settings.
    pub origin: Option<Origin>,
    /// What is wrong and what is expected. Holds no secret.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(out, "`{}` from {origin}: {}", self.name, self.text),
            None => write!(out, "`{}`: {}", self.name, self.text),
        }
    }
}

/// Everything that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub(crate) Vec<Problem>);

impl Problems {
    /// Each problem.
    pub fn all(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => out.write_str("a setting is wrong")?,
            count => write!(out, "{count} settings are wrong")?,
        }
        self.0.iter().try_for_each(|problem| write!(out, "\n  {problem}"))
    }
}

impl std::error::Error for Problems {}

/// The closest of the known names, if one is close.
pub(crate) fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Below this similarity a suggestion is noise; 1 is the same text.
    const SIMILARITY_MIN: f64 = 0.8;
    known
        .map(|candidate| (candidate, strsim::jaro_winkler(name, candidate)))
        .filter(|(_, similarity)| *similarity >= SIMILARITY_MIN)
        .max_by(|one, other| one.1.total_cmp(&other.1))
        .map(|(candidate, _)| candidate)
}
