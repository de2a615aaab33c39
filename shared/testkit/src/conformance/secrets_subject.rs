use std::any::Any;
use std::sync::Arc;

use domain::ports::{ErrorKind, SecretSource};
use domain::signature::secret::Secret;

/// What the place behind a source of secrets holds.
#[derive(Debug, Clone, Copy)]
pub enum Kept<'a> {
    /// These.
    Secrets(&'a [Secret]),
    /// A usable secret, and a text that is none.
    Unreadable {
        /// The usable one.
        beside: &'a Secret,
        /// The text.
        text: &'a str,
    },
    /// A secret that the source may not read.
    Locked(&'a Secret),
    /// Nothing, as before anybody kept anything.
    Nothing,
}

/// What a source makes of a place that holds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// No secrets.
    Empty,
    /// An error of this kind.
    Error(ErrorKind),
}

/// What sources of secrets may differ in.
#[derive(Debug, Clone, Copy)]
pub struct SecretsCaps {
    /// Whether a change reaches a source that is there already. What a process took from its
    /// settings when it began does not change.
    pub is_live: bool,
    /// Whether stages and labels are kept. A bare value is always the current one.
    pub keeps_stages: bool,
    /// What becomes of nothing.
    pub absence: Absence,
}

/// Puts something in the place of what is there, and gives the source that reads it.
type Keep = Box<dyn Fn(Kept<'_>) -> Option<Arc<dyn SecretSource>>>;

/// A source of secrets to be tried.
pub struct SecretsSubject {
    pub(super) caps: SecretsCaps,
    pub(super) keep: Keep,
    kept: Vec<Box<dyn Any>>,
}

impl SecretsSubject {
    /// A place that `keep` fills: it gives a source that reads it, always the same one if the
    /// source is live; `None` where the place cannot be in such a state.
    pub fn new(
        caps: SecretsCaps,
        keep: impl Fn(Kept<'_>) -> Option<Arc<dyn SecretSource>> + 'static,
    ) -> Self {
        Self { caps, keep: Box::new(keep), kept: Vec::new() }
    }

    /// Keeps something, such as a temporary folder, as long as the source is tried.
    #[must_use]
    pub fn keeping(mut self, keep: impl Any) -> Self {
        self.kept.push(Box::new(keep));
        self
    }
}
