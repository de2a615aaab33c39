//! What stored objects hold: the extract object, the lines of a part, the manifest.
//!
//! Each names its format and version in its first field; docs/results.md describes them.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::entry::{Entry, Link};
use crate::job::{JobError, JobId, JobKey, Kind};
use crate::ports::{Item, RawJson};
use crate::run::{Part, Run};
use crate::time::{Date, Timestamp};

/// Format of an extract object.
pub const EXTRACT_FORMAT: &str = "gleaner-extract/1";
/// Format of a manifest.
pub const MANIFEST_FORMAT: &str = "gleaner-manifest/1";

/// The place in a lineage, as stored objects tell it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Lineage {
    root: JobId,
    attempt: u32,
}

impl Lineage {
    fn of(link: Option<&Link>) -> Option<Self> {
        link.map(|link| Self { root: link.lineage.clone(), attempt: link.attempt })
    }
}

#[derive(Serialize)]
struct ExtractObject<'a> {
    format: &'a str,
    kind: Kind,
    job_id: &'a JobId,
    #[serde(rename = "ref")]
    reference: Option<&'a str>,
    lineage: Option<Lineage>,
    stored_at: Timestamp,
    job: &'a RawValue,
}

/// The content of an extract job's result: the API's answer, verbatim, with where it belongs.
///
/// # Errors
/// When the answer is not JSON.
pub fn extract_object(
    entry: &Entry,
    raw: &RawJson,
    stored_at: Timestamp,
) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&ExtractObject {
        format: EXTRACT_FORMAT,
        kind: entry.key.kind,
        job_id: &entry.key.job_id,
        reference: reference(entry),
        lineage: Lineage::of(entry.link.as_ref()),
        stored_at,
        job: serde_json::from_str(&raw.0)?,
    })
}

fn reference(entry: &Entry) -> Option<&str> {
    entry.link.as_ref().and_then(|link| link.reference.as_deref())
}

/// The head of any stored object: enough to know whose it is.
#[derive(Deserialize)]
struct Head {
    format: String,
    kind: Kind,
    job_id: JobId,
}

/// Whether the content is a whole object of this format and job.
pub fn belongs_to(content: &[u8], format: &str, key: &JobKey) -> bool {
    serde_json::from_slice::<Head>(content).is_ok_and(|head| {
        head.format == format && head.kind == key.kind && head.job_id == key.job_id
    })
}

#[derive(Deserialize)]
struct StoredExtract {
    job: StoredJob,
}

#[derive(Deserialize)]
struct StoredJob {
    #[serde(default)]
    data: Option<StoredData>,
}

#[derive(Deserialize)]
struct StoredData {
    #[serde(default, deserialize_with = "text_or_nothing")]
    html: String,
    #[serde(default, deserialize_with = "text_or_nothing")]
    markdown: String,
}

/// Whether an extract object holds any `html` or `markdown`.
pub fn has_data(content: &[u8]) -> bool {
    let data = serde_json::from_slice::<StoredExtract>(content).ok().and_then(|it| it.job.data);
    data.is_some_and(|data| !(data.html.is_empty() && data.markdown.is_empty()))
}

#[derive(Serialize)]
struct LineOut<'a> {
    job_id: &'a JobId,
    kind: Kind,
    item_key: &'a str,
    item: &'a RawValue,
}

/// The content of one part: one line per item, each item verbatim but for line breaks between
/// its values.
///
/// # Errors
/// When an item is not JSON.
pub fn part_lines(key: &JobKey, items: &[Item]) -> Result<Vec<u8>, serde_json::Error> {
    let mut lines = Vec::new();
    for item in items {
        // JSON strings hold no bare line breaks, so these stand between values only.
        let raw = &*item.raw.0;
        let one_line = if raw.contains(['\n', '\r']) {
            Cow::Owned(raw.replace(['\n', '\r'], " "))
        } else {
            Cow::Borrowed(raw)
        };
        let item_json = serde_json::from_str(&one_line)?;
        let line =
            LineOut { job_id: &key.job_id, kind: key.kind, item_key: &item.key, item: item_json };
        serde_json::to_writer(&mut lines, &line)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// What the manifest and the completeness check need to know of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemHead {
    /// What makes it unique in its job.
    pub key: String,
    /// Why it failed, if it did.
    pub failure: Option<FailedItem>,
}

/// A failed item, as the manifest lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedItem {
    /// What makes it unique in its job.
    pub key: String,
    /// Its address.
    pub url: String,
    /// The platform's code.
    pub code: String,
    /// The platform's message.
    pub message: String,
}

#[derive(Deserialize)]
struct LineIn {
    item_key: String,
    item: StoredItem,
}

/// The fields of an item that the manifest repeats. The API leaves their types open, so anything
/// but a text counts as absent.
#[derive(Deserialize)]
struct StoredItem {
    #[serde(default, deserialize_with = "text_or_nothing")]
    url: String,
    #[serde(default, deserialize_with = "text_or_nothing")]
    status: String,
    #[serde(default, deserialize_with = "text_or_nothing")]
    error_code: String,
    #[serde(default, deserialize_with = "text_or_nothing")]
    error_message: String,
}

fn text_or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// Reads the heads of a part's items from its lines: the same ones when the part was just made
/// and when a run is taken up again.
///
/// # Errors
/// When a line is not one of ours.
pub fn part_heads(content: &[u8]) -> Result<Vec<ItemHead>, serde_json::Error> {
    content
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            let LineIn { item_key, item } = serde_json::from_slice(line)?;
            let has_error = !(item.error_code.is_empty() && item.error_message.is_empty());
            let failure = (item.status == "failed" || has_error).then(|| {
                let error = JobError::new(&item.error_code, &item.error_message, false);
                FailedItem {
                    key: item_key.clone(),
                    url: item.url,
                    code: error.code,
                    message: error.message,
                }
            });
            Ok(ItemHead { key: item_key, failure })
        })
        .collect()
}

/// What a manifest says beside the parts.
pub struct ManifestFacts<'a> {
    /// The parent's status.
    pub status: &'a str,
    /// Whether tokens were still reserved.
    pub unsettled: bool,
    /// The date in the keys.
    pub dt: Date,
    /// The parent's answer without its results.
    pub summary: &'a RawJson,
    /// The items that failed.
    pub failed: &'a [FailedItem],
    /// When it is written.
    pub stored_at: Timestamp,
}

#[derive(Serialize)]
struct Manifest<'a> {
    format: &'a str,
    kind: Kind,
    job_id: &'a JobId,
    #[serde(rename = "ref")]
    reference: Option<&'a str>,
    lineage: Option<Lineage>,
    stored_at: Timestamp,
    status: &'a str,
    unsettled: bool,
    dt: Date,
    run: &'a str,
    items: u64,
    parts: &'a [Part],
    failed: &'a [FailedItem],
    job: &'a RawValue,
}

/// The content of a manifest: the object that makes the parts of one run count.
///
/// # Errors
/// When the parent's answer is not JSON.
pub fn manifest(
    entry: &Entry,
    run: &Run,
    facts: &ManifestFacts<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Manifest {
        format: MANIFEST_FORMAT,
        kind: entry.key.kind,
        job_id: &entry.key.job_id,
        reference: reference(entry),
        lineage: Lineage::of(entry.link.as_ref()),
        stored_at: facts.stored_at,
        status: facts.status,
        unsettled: facts.unsettled,
        dt: facts.dt,
        run: &run.id,
        items: run.parts.iter().map(|part| part.items).sum(),
        parts: &run.parts,
        failed: facts.failed,
        job: serde_json::from_str(&facts.summary.0)?,
    })
}

/// What finishing the ledger from a manifest needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ManifestHead {
    /// The parent's status when it was written.
    pub status: String,
    /// Whether tokens were still reserved.
    pub unsettled: bool,
    /// How many items its parts hold.
    pub items: u64,
}

/// Reads what finishing the ledger from a manifest needs.
///
/// # Errors
/// When it is no manifest.
pub fn manifest_head(content: &[u8]) -> Result<ManifestHead, serde_json::Error> {
    serde_json::from_slice(content)
}

/// What a manifest says of the items that failed.
#[derive(Debug, Deserialize)]
pub struct ManifestFailures {
    /// Those items.
    pub failed: Vec<FailedItem>,
    /// The parent's answer without its results.
    pub job: Box<RawValue>,
}

/// Reads what a follow-up needs.
///
/// # Errors
/// When it is no manifest.
pub fn manifest_failures(content: &[u8]) -> Result<ManifestFailures, serde_json::Error> {
    serde_json::from_slice(content)
}

#[cfg(test)]
mod tests;
