//! A document as it is written, with the names of its members in the order of the alphabet.

use serde::ser::{Serialize, SerializeMap as _, Serializer};

/// The whole: what CloudWatch is to make of it, and the members.
pub(super) struct Document<'a> {
    pub(super) metadata: Metadata,
    /// By name, in the order in which they are written.
    pub(super) members: Vec<(&'static str, Member<'a>)>,
}

/// A value of the root.
#[derive(serde::Serialize)]
#[serde(untagged)]
pub(super) enum Member<'a> {
    Count(u64),
    Millis(Vec<f64>),
    Text(&'a str),
}

/// The member `_aws`.
#[derive(serde::Serialize)]
pub(super) struct Metadata {
    #[serde(rename = "CloudWatchMetrics")]
    pub(super) directives: Vec<Directive>,
    #[serde(rename = "Timestamp")]
    pub(super) timestamp: i64,
}

/// Which members are metrics, and by what their series differ.
#[derive(serde::Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Directive {
    pub(super) dimensions: [&'static [&'static str]; 1],
    pub(super) metrics: Vec<Name>,
    pub(super) namespace: &'static str,
}

/// A metric's name and unit.
#[derive(serde::Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Name {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.members.len()))?;
        map.serialize_entry("_aws", &self.metadata)?;
        for (name, member) in &self.members {
            map.serialize_entry(name, member)?;
        }
        map.end()
    }
}
