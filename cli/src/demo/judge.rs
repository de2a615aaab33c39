//! The judge: compares what the platform's books say with what lies in the results folder. It
//! knows nothing of the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use domain::entry::DeadReason;
use domain::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::books::{Content, Job, Part};
use super::healing::written_at;
use super::watch::objects;

/// Findings listed in a report; all are counted.
const FINDINGS_MAX: usize = 20;
/// Resubmissions per lineage, as the product documents them.
const RESUBMITS_MAX: usize = 3;

/// What the judge found.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// Jobs whose result lies in the folder.
    pub stored: u64,
    /// Jobs that the platform finished and that nobody stored, or URLs that were given up while
    /// another try was due.
    pub lost: u64,
    /// Jobs with more than one object, or objects that changed after they appeared.
    pub stored_twice: u64,
    /// URLs that were paid for again without need.
    pub paid_twice: u64,
    /// Objects that are not what the platform served, or belong to no job.
    pub wrong: u64,
    /// Jobs whose POST answer was lost.
    pub answers_lost: u64,
    /// The first findings, for a person.
    pub findings: Vec<String>,
    /// Jobs that count as lost.
    #[serde(skip)]
    lost_jobs: BTreeSet<String>,
    /// When each job's object was written.
    #[serde(skip)]
    pub(super) stored_at: BTreeMap<String, Timestamp>,
}

impl Judgement {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.stored_twice == 0 && self.paid_twice == 0 && self.wrong == 0
    }

    fn find(&mut self, finding: String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }

    fn lost(&mut self, finding: String) {
        self.lost += 1;
        self.find(finding);
    }

    /// Counts a job as lost that was given up for a reason that is not so, unless it counts already.
    pub(super) fn given_up(&mut self, job: &Job, reason: DeadReason) {
        if self.lost_jobs.insert(job.id.clone()) {
            self.lost(format!(
                "{} {} was given up as {reason}, and is {}",
                job.kind, job.id, job.status
            ));
        }
    }

    fn wrong(&mut self, finding: String) {
        self.wrong += 1;
        self.find(finding);
    }
}

/// Judges.
pub(super) fn judge(jobs: &[Job], root: &Path, changed: Vec<PathBuf>) -> Judgement {
    let mut judgement = Judgement::default();
    for path in changed {
        judgement.stored_twice += 1;
        judgement.find(format!("changed after it appeared: {}", path.display()));
    }
    let found = Found::read(root, &mut judgement);
    for job in jobs {
        if job.answer_lost {
            judgement.answers_lost += 1;
        }
        judge_job(job, &found, root, &mut judgement);
    }
    let known: BTreeSet<_> = jobs.iter().map(|job| job.id.as_str()).collect();
    for id in found.by_job.keys().filter(|id| !known.contains(id.as_str())) {
        judgement.wrong(format!("an object for job {id}, which the platform does not know"));
    }
    judge_payments(jobs, &mut judgement);
    judgement
}

/// The objects of the folder by the job that they name. What they hold is read again when their
/// job is judged, so that memory does not grow with the results.
struct Found {
    by_job: BTreeMap<String, Vec<PathBuf>>,
}

/// Of which job an object is.
#[derive(Deserialize)]
struct Named {
    job_id: String,
}

/// One extract object or manifest.
#[derive(Deserialize)]
struct Object {
    kind: String,
    /// The API's answer.
    job: Option<Box<RawValue>>,
    #[serde(default)]
    parts: Vec<PartObject>,
}

/// A part that a manifest names.
#[derive(Deserialize)]
struct PartObject {
    key: String,
    items: u64,
    sha256: String,
}

/// The texts of a result.
#[derive(Default, Deserialize)]
struct Data {
    html: Option<String>,
    markdown: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    data: Option<Data>,
}

/// One line of a part.
#[derive(Deserialize)]
struct Line {
    item_key: String,
    item: Item,
}

#[derive(Deserialize)]
struct Item {
    url: String,
    status: String,
    #[serde(default)]
    data: Option<Data>,
}

impl Found {
    fn read(root: &Path, judgement: &mut Judgement) -> Self {
        let mut by_job: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for path in objects(root) {
            let name = path.to_string_lossy();
            if name.ends_with(".ndjson.gz") {
                continue;
            }
            match read::<Named>(&path) {
                Some(Named { job_id }) => by_job.entry(job_id).or_default().push(path),
                None => judgement.wrong(format!("not a whole object: {}", path.display())),
            }
        }
        Self { by_job }
    }
}

/// What a file holds; `None` if that cannot be read whole, or is none.
fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&plain(path)?).ok()
}

/// The plain content of a file; `None` if it cannot be read whole.
fn plain(path: &Path) -> Option<Vec<u8>> {
    let bytes = std::fs::read(path).ok()?;
    if path.extension().is_none_or(|extension| extension != "gz") {
        return Some(bytes);
    }
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut content).ok()?;
    Some(content)
}

fn judge_job(job: &Job, found: &Found, root: &Path, judgement: &mut Judgement) {
    let objects = found.by_job.get(&job.id).map_or(&[][..], Vec::as_slice);
    let is_extract = job.kind == "extract";
    let owed = if is_extract { job.status == "completed" } else { job.is_terminal() };
    // Of a job that nobody of ours submitted we know only by an accepted delivery.
    let told = !is_foreign(job) || job.deliveries.accepted > 0;
    match objects {
        [] if owed && told => {
            judgement.lost_jobs.insert(job.id.clone());
            judgement.lost(format!("{} {} has no object", job.kind, job.id));
        }
        [] => {}
        [path] => {
            judgement.stored += 1;
            judgement.stored_at.extend(written_at(path).map(|at| (job.id.clone(), at)));
            let Some(object) = read::<Object>(path) else {
                judgement.wrong(format!("not a whole object: {}", path.display()));
                return;
            };
            let object = &object;
            if !owed {
                judgement.wrong(format!("{} is stored, and is {}", job.id, job.status));
            } else if object.kind != job.kind {
                judgement.wrong(format!("{} is stored as {}", job.id, object.kind));
            } else if is_extract {
                judge_extract(job, object, judgement);
            } else {
                judge_parent(job, object, root, judgement);
            }
        }
        [first, ..] => {
            judgement.stored += 1;
            judgement.stored_twice += 1;
            let count = objects.len();
            judgement.find(format!("{count} objects for one job, such as {}", first.display()));
        }
    }
}

fn is_foreign(job: &Job) -> bool {
    job.urls.first().is_some_and(|url| url.starts_with("https://elsewhere.example/"))
}

fn judge_extract(job: &Job, object: &Object, judgement: &mut Judgement) {
    let answer = object.job.as_ref().and_then(|raw| serde_json::from_str::<Answer>(raw.get()).ok());
    let data = answer.and_then(|answer| answer.data).unwrap_or_default();
    let part = job.parts.as_deref().and_then(<[Part]>::first);
    let Some(part) = part else {
        judgement.wrong(format!("the books hold no text of {}", job.id));
        return;
    };
    if !same_texts(part, &data) {
        judgement.wrong(format!("{} is stored with other text than was served", job.id));
    }
}

fn same_texts(part: &Part, data: &Data) -> bool {
    same(part.html.as_ref(), data.html.as_deref())
        && same(part.markdown.as_ref(), data.markdown.as_deref())
}

fn same(served: Option<&Content>, stored: Option<&str>) -> bool {
    match (served, stored) {
        (None, None) => true,
        (Some(served), Some(stored)) => {
            served.sha256 == hex::encode(Sha256::digest(stored.as_bytes()))
        }
        _ => false,
    }
}

fn judge_parent(job: &Job, manifest: &Object, root: &Path, judgement: &mut Judgement) {
    let mut keys = BTreeSet::new();
    let mut texts: BTreeMap<String, Vec<(String, Data)>> = BTreeMap::new();
    let mut lines = 0_u64;
    for part in &manifest.parts {
        let path = root.join(&part.key);
        let intact = std::fs::read(&path)
            .is_ok_and(|bytes| hex::encode(Sha256::digest(&bytes)) == part.sha256);
        let read = plain(&path).filter(|_| intact).and_then(|content| read_lines(&content));
        let Some(read) = read.filter(|read| u64::try_from(read.len()) == Ok(part.items)) else {
            judgement.wrong(format!("the part {} is not as its manifest says", part.key));
            return;
        };
        for line in read {
            lines += 1;
            keys.insert(line.item_key);
            let data = line.item.data.unwrap_or_default();
            texts.entry(line.item.url).or_default().push((line.item.status, data));
        }
    }
    let finished = job.items.completed + job.items.failed + job.items.cancelled;
    let unique = u64::try_from(keys.len()).unwrap_or(u64::MAX);
    if unique != lines {
        judgement.stored_twice += 1;
        judgement.find(format!("{} {} holds an item twice", job.kind, job.id));
    }
    if lines < finished {
        judgement.lost(format!("{} {} holds {lines} of {finished} items", job.kind, job.id));
        return;
    }
    for part in job.parts.as_deref().unwrap_or_default() {
        let stored = texts.get(&part.url).and_then(|stored| {
            stored.iter().find(|(status, data)| *status == part.status && same_texts(part, data))
        });
        if stored.is_none() {
            judgement.wrong(format!("{} has other text than was served for {}", job.id, part.url));
            return;
        }
    }
}

fn read_lines(content: &[u8]) -> Option<Vec<Line>> {
    content
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).ok())
        .collect()
}

/// For each extract URL: one job beyond those that failed retryably, and no giving up while
/// another try was due. A batch or crawl is submitted once, whatever became of it.
fn judge_payments(jobs: &[Job], judgement: &mut Judgement) {
    let mut by_url: BTreeMap<(&str, &str), Vec<&Job>> = BTreeMap::new();
    for job in jobs.iter().filter(|job| !is_foreign(job)) {
        if let Some(url) = job.urls.first() {
            by_url.entry((&job.kind, url)).or_default().push(job);
        }
    }
    for ((kind, url), jobs) in by_url {
        let retryable = |job: &&&Job| job.status == "failed" && job.retryable == Some(true);
        let failed = if kind == "extract" { jobs.iter().filter(retryable).count() } else { 0 };
        let charged: u64 = jobs.iter().map(|job| job.charged_tokens).sum();
        let kept = jobs.len() - failed;
        if kept > 1 || (kind == "extract" && charged > 1) {
            judgement.paid_twice += 1;
            let all = jobs.len();
            judgement
                .find(format!("{url}: {all} jobs, {failed} failed retryably, {charged} tokens"));
        }
        if kept == 0 && failed <= RESUBMITS_MAX {
            judgement.lost_jobs.extend(jobs.iter().map(|job| job.id.clone()));
            judgement.lost(format!("{url}: given up after {failed} jobs that failed retryably"));
        }
    }
}
