//! Names of the table's attributes and indexes, see docs/table.md.

pub(crate) const PK: &str = "pk";
pub(crate) const SK: &str = "sk";
pub(crate) const FORMAT: &str = "format";
pub(crate) const JSON: &str = "json";
pub(crate) const VERSION: &str = "version";
pub(crate) const STATE: &str = "state";
pub(crate) const GENERATION: &str = "generation";
pub(crate) const REASON: &str = "reason";
pub(crate) const EXPIRES_AT: &str = "expires_at";
pub(crate) const DUE_SHARD: &str = "due_shard";
pub(crate) const DUE_SORT: &str = "due_sort";
pub(crate) const POSTED_AT: &str = "posted_at";
pub(crate) const LIST_KEY: &str = "list_key";
pub(crate) const LIST_SORT: &str = "list_sort";

/// What somebody must look at.
pub(crate) const DUE: Index = Index { name: "due", partition: DUE_SHARD, sort: DUE_SORT };
/// What a person looks up.
pub(crate) const LISTING: Index = Index { name: "listing", partition: LIST_KEY, sort: LIST_SORT };

/// A global secondary index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Index {
    pub(crate) name: &'static str,
    pub(crate) partition: &'static str,
    pub(crate) sort: &'static str,
}

/// How the partition keys of entries begin.
pub(crate) const JOB: &str = "job#";
/// How the partition keys of intents begin.
pub(crate) const INTENT: &str = "intent#";
/// How the partition keys of control rows begin.
pub(crate) const CONTROL: &str = "control#";
/// The sort key of an intent.
pub(crate) const INTENT_SORT: &str = "intent";
/// The sort key of a control row.
pub(crate) const CONTROL_SORT: &str = "control";
