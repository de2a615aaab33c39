//! The versions of one secret, and their stages.

use std::collections::{BTreeMap, BTreeSet};

use domain::time::Timestamp;

pub(super) const CURRENT: &str = "AWSCURRENT";
pub(super) const PENDING: &str = "AWSPENDING";
const PREVIOUS: &str = "AWSPREVIOUS";
/// Largest value, in bytes. Source: AWS Secrets Manager, quotas.
const VALUE_BYTES_MAX: usize = 65_536;
/// Most labels of all versions of a secret. Source: AWS Secrets Manager, quotas.
pub(super) const LABELS_MAX: usize = 20;

/// A value of either kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `SecretString`.
    Text(String),
    /// `SecretBinary`.
    Bytes(Vec<u8>),
    /// An answer with neither.
    Neither,
}

impl Value {
    pub(super) fn is_allowed(&self) -> bool {
        let length = match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Neither => 0,
        };
        (1..=VALUE_BYTES_MAX).contains(&length)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

/// One secret.
pub(super) struct Kept {
    pub(super) arn: String,
    pub(super) is_deleted: bool,
    /// Whether a function rotates it.
    pub(super) is_rotated: bool,
    pub(super) versions: BTreeMap<String, Version>,
}

/// One version of it.
pub(super) struct Version {
    pub(super) value: Option<Value>,
    pub(super) created: Timestamp,
    pub(super) stages: BTreeSet<String>,
    pub(super) is_undecryptable: bool,
}

impl Kept {
    pub(super) fn add(&mut self, token: &str, value: Value, stages: &[String], now: Timestamp) {
        self.versions.insert(token.to_owned(), Version::new(Some(value), now));
        for stage in stages {
            self.attach(stage, token);
        }
    }

    /// The versions that have labels, with these.
    pub(super) fn labelled(&self) -> BTreeMap<&String, &BTreeSet<String>> {
        let labels = self.versions.iter().map(|(id, version)| (id, &version.stages));
        labels.filter(|(_, stages)| !stages.is_empty()).collect()
    }

    pub(super) fn holder(&self, stage: &str) -> Option<String> {
        let holder = self.versions.iter().find(|(_, version)| version.stages.contains(stage));
        holder.map(|(id, _)| id.clone())
    }

    pub(super) fn remove(&mut self, stage: &str) {
        for version in self.versions.values_mut() {
            version.stages.remove(stage);
        }
    }

    /// Gives a stage to one version and takes it from the others. Who loses `AWSCURRENT` becomes
    /// `AWSPREVIOUS`.
    pub(super) fn attach(&mut self, stage: &str, to: &str) {
        let loser = self.holder(stage).filter(|holder| holder != to);
        self.remove(stage);
        if let Some(version) = self.versions.get_mut(to) {
            version.stages.insert(stage.to_owned());
        }
        if let Some(loser) = loser.filter(|_| stage == CURRENT) {
            self.attach(PREVIOUS, &loser);
        }
    }
}

impl Version {
    pub(super) fn new(value: Option<Value>, created: Timestamp) -> Self {
        Self { value, created, stages: BTreeSet::new(), is_undecryptable: false }
    }
}

/// Seconds of the Unix epoch, with milliseconds as Secrets Manager gives them.
pub(super) fn seconds(at: Timestamp) -> serde_json::Value {
    let number = format!("{}.{:03}", at.as_second(), at.as_millisecond().rem_euclid(1_000));
    serde_json::from_str(&number).unwrap_or_default()
}
