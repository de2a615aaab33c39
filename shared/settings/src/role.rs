//! The functions on AWS Lambda, and who reads a setting.

use std::fmt;

use crate::table::{LOG_VARIABLE, table};

/// What a function on AWS Lambda is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Takes deliveries.
    Receiver,
    /// Works tasks.
    Worker,
    /// Looks after what is overdue.
    Scheduler,
    /// Rotates signing secrets.
    Rotator,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Receiver, Self::Worker, Self::Scheduler, Self::Rotator];

    /// The role in texts, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Receiver => "receiver",
            Self::Worker => "worker",
            Self::Scheduler => "scheduler",
            Self::Rotator => "rotator",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Who reads a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadBy {
    /// Verbs of the command line, as a person reads them.
    pub verbs: &'static str,
    /// Functions that do not start without it.
    pub required_by: &'static [Role],
    /// Functions that read it if it is set.
    pub optional_for: &'static [Role],
}

impl ReadBy {
    /// Verbs alone.
    pub(crate) const fn verbs(verbs: &'static str) -> Self {
        Self { verbs, required_by: &[], optional_for: &[] }
    }

    /// The same verbs, and functions that can do without it.
    pub(crate) const fn and(self, optional_for: &'static [Role]) -> Self {
        Self { optional_for, ..self }
    }

    /// The same verbs, and functions that need it.
    pub(crate) const fn and_required_by(self, required_by: &'static [Role]) -> Self {
        Self { required_by, ..self }
    }

    /// Whether a function does without it; `None` if it does not read it.
    pub fn need(&self, role: Role) -> Option<Need> {
        if self.required_by.contains(&role) {
            Some(Need::Required)
        } else {
            self.optional_for.contains(&role).then_some(Need::Optional)
        }
    }
}

impl fmt::Display for ReadBy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.verbs)?;
        let mut before = "; on AWS by ";
        for role in Role::ALL {
            let need = match self.need(role) {
                None => continue,
                Some(Need::Required) => ", which needs it",
                Some(Need::Optional) => "",
            };
            write!(out, "{before}the {role}{need}")?;
            before = ", ";
        }
        Ok(())
    }
}

/// Whether a function starts without a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It does not.
    Required,
    /// It does.
    Optional,
}

/// Each variable that a function reads, in the order of the table.
pub fn read_by_function(role: Role) -> impl Iterator<Item = (String, Need)> {
    let settings =
        table().filter_map(move |setting| Some((setting.variable(), setting.read_by.need(role)?)));
    settings.chain([(LOG_VARIABLE.to_owned(), Need::Optional)])
}
