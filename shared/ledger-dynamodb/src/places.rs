//! Where items lie in the indexes: pure functions from rows to keys.

use domain::entry::Entry;
use domain::intent::Intent;
use domain::job::{JobKey, Kind};
use domain::time::Timestamp;
use sha2::{Digest, Sha256};

use crate::limits::{DUE_SHARDS, RUN_SHARDS};

/// Sorts behind every place that begins with the same text: the next character after the `#` with
/// which all of them go on.
const BEHIND: char = '$';
/// The year 0, where instants before it are put: none of ours lies there.
const FIRST: &str = "0000-01-01T00:00:00.000000000Z";

/// A place in an index: partition and sort key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) partition: String,
    pub(crate) sort: String,
}

/// Where an open entry is due; `None` for a terminal one.
pub(crate) fn due_of(entry: &Entry) -> Option<Place> {
    let due_at = entry.due_at.filter(|_| !entry.state.is_terminal())?;
    let partition = match entry.state.open_post() {
        Some(_) => post_partition(entry.key.kind),
        None => open_partition(shard(entry.key.job_id.as_str(), DUE_SHARDS)),
    };
    let sort = format!("entry#{}#{}", instant(due_at), key_text(&entry.key));
    Some(Place { partition, sort })
}

/// Where an open intent is due; `None` for any other.
pub(crate) fn due_of_intent(intent: &Intent) -> Option<Place> {
    let due_at = intent.due_at.filter(|_| intent.state.is_open())?;
    Some(Place {
        partition: post_partition(intent.request.kind()),
        sort: format!("intent#{}#{}", instant(due_at), intent.id),
    })
}

/// The partitions that hold open entries.
pub(crate) fn entry_partitions() -> Vec<String> {
    let open = (0..DUE_SHARDS).map(open_partition);
    open.chain(Kind::ALL.into_iter().map(post_partition)).collect()
}

/// The partitions that hold open intents.
pub(crate) fn intent_partitions() -> Vec<String> {
    Kind::ALL.into_iter().map(post_partition).collect()
}

/// The partition of everything of a kind whose POST is unresolved.
pub(crate) fn post_partition(kind: Kind) -> String {
    format!("post#{kind}")
}

fn open_partition(shard: u8) -> String {
    format!("open#{shard}")
}

/// The bounds of the entries that are due up to `now`, both inclusive.
pub(crate) fn entries_until(now: Timestamp) -> (String, String) {
    ("entry#".to_owned(), format!("entry#{}{BEHIND}", instant(now)))
}

/// The bounds of the intents that are due up to `now`, both inclusive.
pub(crate) fn intents_until(now: Timestamp) -> (String, String) {
    ("intent#".to_owned(), format!("intent#{}{BEHIND}", instant(now)))
}

/// Where an entry with a ref is looked up.
pub(crate) fn listed(entry: &Entry) -> Option<Place> {
    let reference = entry.link.as_ref()?.reference.as_deref()?;
    Some(Place { partition: reference_partition(reference), sort: key_text(&entry.key) })
}

/// The partition of a ref. Hashed, since a ref may be empty or longer than a key.
pub(crate) fn reference_partition(reference: &str) -> String {
    format!("ref#{}", hex::encode(Sha256::digest(reference)))
}

/// The bounds of every entry of a ref.
pub(crate) fn all_listed() -> (String, String) {
    (" ".to_owned(), "~".to_owned())
}

/// Where an intent is looked up: its run in hex, which sorts as the run does and holds no
/// separator, then its position, which sorts as a number.
pub(crate) fn listed_intent(intent: &Intent) -> Place {
    Place {
        partition: run_partition(&intent.run),
        sort: format!("{}#{:020}#{}", hex::encode(&intent.run), intent.position, intent.id),
    }
}

/// The partition of a run.
pub(crate) fn run_partition(run: &str) -> String {
    format!("run#{}", shard(run, RUN_SHARDS))
}

/// The partitions of all runs.
pub(crate) fn run_partitions() -> Vec<String> {
    (0..RUN_SHARDS).map(|shard| format!("run#{shard}")).collect()
}

/// The bounds of the intents of a run, or of all.
pub(crate) fn intents_of(run: Option<&str>) -> (String, String) {
    match run {
        Some(run) => {
            let run = hex::encode(run);
            (format!("{run}#"), format!("{run}{BEHIND}"))
        }
        None => ("#".to_owned(), "~".to_owned()),
    }
}

fn key_text(key: &JobKey) -> String {
    format!("{}#{}", key.kind, key.job_id)
}

/// An instant as text of one length, which sorts as time.
fn instant(at: Timestamp) -> String {
    let text = format!("{at:.9}");
    if text.starts_with('-') { FIRST.to_owned() } else { text }
}

/// The same text is always in the same shard.
fn shard(text: &str, shards: u8) -> u8 {
    Sha256::digest(text).first().map_or(0, |byte| byte % shards)
}

#[cfg(test)]
mod tests;
