//! [`domain::ports::Jobs`]: what is submitted, and how it reads.

use std::time::Duration;

use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::ports::{
    ApiError, ApiErrorKind, ExtractJob, ListQuery, Listed, PageRequest, ParentPage, RawJson,
};
use domain::request::{FetchOptions, Format, JobRequest};
use serde_json::Value;

use super::jobs_subject::{Fate, JobsSubject};
use super::samples::{ODD_IDS, extract_request};

/// Long enough for any answer.
pub(super) const WITHIN: Duration = Duration::from_secs(20);
/// Most pages that any list or result of a suite has.
pub(super) const PAGES_MAX: u32 = 200;

pub(super) fn batch_request(parts: u32) -> JobRequest {
    let urls: Vec<_> = (0..parts).map(|part| format!("https://example.com/{part}")).collect();
    JobRequest::batch(urls.iter().map(String::as_str), FetchOptions::default()).unwrap()
}

/// A crawl of a site with so many pages; its seed says how many.
pub(super) fn crawl_request(parts: u32) -> JobRequest {
    let seed = format!("https://example.com/?pages={parts}");
    JobRequest::crawl(&seed, FetchOptions::default(), 5, 1_000).unwrap()
}

pub(super) fn one_of_each_kind() -> [JobRequest; 3] {
    [extract_request("https://example.com/page?a=b&c=d%20e"), batch_request(3), crawl_request(3)]
}

/// Submits a job without letting it end.
pub(super) async fn submit(subject: &JobsSubject, request: &JobRequest) -> JobKey {
    let job_id = subject.jobs().submit(request, WITHIN).await.unwrap();
    JobKey::new(request.kind(), job_id)
}

/// Submits a job and lets it come to its end.
pub(super) async fn accept(subject: &JobsSubject, request: &JobRequest, fate: Fate) -> JobKey {
    subject.platform.decide(fate);
    let key = submit(subject, request).await;
    subject.platform.finish(&key, request, fate);
    key
}

pub(super) async fn extract(subject: &JobsSubject, key: &JobKey) -> Result<ExtractJob, ApiError> {
    subject.jobs().extract(&key.job_id, WITHIN).await
}

pub(super) async fn page(
    subject: &JobsSubject,
    key: &JobKey,
    page: u32,
    page_size: u32,
) -> Result<ParentPage, ApiError> {
    subject.jobs().parent(key, PageRequest { page, page_size }, WITHIN).await
}

/// All of a list that a query names, page by page, until one is empty.
pub(super) async fn list(subject: &JobsSubject, kind: Kind, query: &ListQuery) -> Vec<Listed> {
    let mut jobs = Vec::new();
    for page in 1..=PAGES_MAX {
        let query = ListQuery { page, ..query.clone() };
        let found = subject.jobs().list(kind, &query, WITHIN).await.unwrap();
        assert_eq!(found.unreadable, 0);
        assert!(found.jobs.len() <= usize::try_from(query.page_size).unwrap());
        if found.is_empty() {
            return jobs;
        }
        jobs.extend(found.jobs);
    }
    panic!("the list of {kind} jobs has no end")
}

pub(super) async fn list_all(subject: &JobsSubject, kind: Kind) -> Vec<Listed> {
    list(subject, kind, &query(100)).await
}

pub(super) const fn query(page_size: u32) -> ListQuery {
    ListQuery { page: 1, page_size, created_from: None, created_to: None }
}

/// A job's status and the raw answer, whatever its kind.
async fn read(subject: &JobsSubject, key: &JobKey) -> Result<(JobStatus, RawJson), ApiError> {
    match key.kind {
        Kind::Extract => extract(subject, key).await.map(|job| (job.status, job.raw)),
        Kind::Batch | Kind::Crawl => {
            page(subject, key, 1, 50).await.map(|page| (page.status, page.summary))
        }
    }
}

/// What is submitted can be read at once, and is listed as it was asked for.
pub async fn a_submitted_job_reads_back(subject: &JobsSubject) {
    let options =
        FetchOptions { formats: vec![Format::Html, Format::Markdown], ..FetchOptions::default() };
    let with_options = JobRequest::extract("https://example.com/options", options).unwrap();
    for request in one_of_each_kind().into_iter().chain([with_options]) {
        subject.platform.decide(Fate::Completed);
        let key = submit(subject, &request).await;
        let (status, _) = read(subject, &key).await.unwrap();
        assert!(!status.is_terminal(), "{key}: {status:?}");
        subject.platform.finish(&key, &request, Fate::Completed);
        let listed = list_all(subject, key.kind).await;
        let same: Vec<_> = listed.iter().filter(|job| job.job_id == key.job_id).collect();
        assert_eq!(same.len(), 1, "{key}");
        let job = same[0];
        assert_eq!(job.url.as_deref(), request.url(), "{key}");
        if let JobRequest::Batch { urls, .. } = &request {
            assert_eq!(job.accepted_urls, u64::try_from(urls.len()).ok(), "{key}");
        }
        let asked = &request.options().formats;
        if let Some(formats) = job.formats.as_ref().filter(|_| !asked.is_empty()) {
            assert_eq!(formats, asked, "{key}");
        }
        assert!(job.render_js != Some(true), "{key}");
        let created_at = match key.kind {
            Kind::Extract => extract(subject, &key).await.unwrap().created_at,
            Kind::Batch | Kind::Crawl => page(subject, &key, 1, 1).await.unwrap().created_at,
        };
        assert!(created_at.is_none() || created_at == job.created_at, "{key}");
    }
}

/// Each paid call makes one job: a second identical one makes a second job.
pub async fn each_submission_is_one_job(subject: &JobsSubject) {
    for request in one_of_each_kind() {
        let before = list_all(subject, request.kind()).await.len();
        let mut keys = Vec::new();
        for _ in 0..3 {
            keys.push(accept(subject, &request, Fate::Completed).await);
        }
        let mut listed: Vec<_> =
            list_all(subject, request.kind()).await.into_iter().map(|job| job.job_id).collect();
        assert_eq!(listed.len(), before + keys.len(), "{}", request.kind());
        listed.sort();
        listed.dedup();
        assert_eq!(listed.len(), before + keys.len(), "{}: an id twice", request.kind());
        for key in keys {
            assert!(listed.contains(&key.job_id), "{key}");
        }
    }
}

/// Every end of an extract job is told as it is.
pub async fn every_end_is_told_as_it_is(subject: &JobsSubject) {
    for fate in subject.caps.fates.clone() {
        let key = accept(subject, &extract_request("https://example.com/"), fate).await;
        let read = extract(subject, &key).await;
        if fate == Fate::Vanished {
            assert_eq!(read.unwrap_err().kind, ApiErrorKind::Missing);
            let listed = list_all(subject, Kind::Extract).await;
            assert!(listed.iter().any(|job| job.job_id == key.job_id), "listed all the same");
            continue;
        }
        let job = read.unwrap();
        assert_eq!(job.has_data, fate == Fate::Completed, "{fate:?}");
        match fate {
            Fate::Completed => assert_eq!((job.status, job.error), (JobStatus::Completed, None)),
            Fate::FailedRetryable | Fate::FailedFinal => {
                assert_eq!(job.status, JobStatus::Failed);
                let error = job.error.unwrap();
                assert!(!error.code.is_empty());
                assert_eq!(error.retryable, fate == Fate::FailedRetryable);
            }
            Fate::Cancelled => assert_eq!(job.status, JobStatus::Cancelled),
            Fate::Unfinished | Fate::Vanished => assert!(!job.status.is_terminal(), "{fate:?}"),
        }
    }
}

/// Reading is free and changes nothing.
pub async fn repeated_reads_are_alike(subject: &JobsSubject) {
    for request in one_of_each_kind() {
        let key = accept(subject, &request, Fate::Completed).await;
        let first = read(subject, &key).await.unwrap();
        for _ in 0..5 {
            assert_eq!(read(subject, &key).await.unwrap(), first, "{key}");
        }
    }
}

/// The raw answer is the platform's own, names the job, and is not shown.
pub async fn the_raw_answer_is_verbatim(subject: &JobsSubject) {
    for request in one_of_each_kind() {
        let key = accept(subject, &request, Fate::Completed).await;
        let (status, raw) = read(subject, &key).await.unwrap();
        let value: Value = serde_json::from_str(&raw.0).unwrap();
        assert_eq!(value["job_id"], key.job_id.as_str(), "{key}");
        assert_eq!(value["status"], status.as_str(), "{key}");
        assert!(!format!("{raw:?}").contains(key.job_id.as_str()), "{key}");
        if key.kind == Kind::Extract {
            assert!(value["data"].is_object(), "{value}");
            if let Some(answer) = subject.platform.answer_of(&key) {
                assert_eq!(*raw.0, *answer);
            }
            let job = extract(subject, &key).await.unwrap();
            assert!(!format!("{job:?}").contains("data\""), "{job:?}");
        } else {
            assert!(value.get("results").is_none(), "{key}");
        }
    }
}

/// An id is one segment of a path, whatever it looks like: it is nobody's, never another job's.
pub async fn odd_ids_are_missing(subject: &JobsSubject) {
    let mut real = Vec::new();
    for request in one_of_each_kind() {
        real.push(accept(subject, &request, Fate::Completed).await);
    }
    for key in &real {
        let (kind, id) = (key.kind, key.job_id.as_str());
        let mut odd: Vec<String> = ODD_IDS.iter().map(|&id| id.to_owned()).collect();
        odd.extend(
            ["?x", "..%2f", "%2e%2e", "...", "a?job_id=x", "&", "+", "%", "%00", "%zz", ";", "a#b"]
                .map(str::to_owned),
        );
        odd.extend([
            format!("{id}?x"),
            format!("{id}#x"),
            format!("{id}%20"),
            format!("{id}%00"),
            format!("{id}&page=2"),
            format!("{id}."),
            format!("..%2f{kind}%2f{id}"),
            format!("x%2F..%2F{id}"),
            "9".repeat(128),
            "00000000-0000-4000-8000-000000000000".to_owned(),
        ]);
        for id in odd {
            let key = JobKey::new(kind, JobId::parse(&id).unwrap());
            let error = read(subject, &key).await.unwrap_err();
            let is_refused = subject.caps.parent_ids_are_uuids
                && kind != Kind::Extract
                && error.kind == ApiErrorKind::Refused;
            assert!(is_refused || error.kind == ApiErrorKind::Missing, "{key}: {error:?}");
        }
        // Where the list is, the answer is no job's.
        let list = JobKey::new(kind, JobId::parse("jobs").unwrap());
        let kind = read(subject, &list).await.unwrap_err().kind;
        assert!(matches!(kind, ApiErrorKind::Missing | ApiErrorKind::Unreadable), "{list}");
        assert!(read(subject, key).await.is_ok(), "{key} is still there");
    }
}

/// A job is of one kind: asked for as another, it is missing.
pub async fn a_job_of_another_kind_is_missing(subject: &JobsSubject) {
    for request in one_of_each_kind() {
        let key = accept(subject, &request, Fate::Completed).await;
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != key.kind) {
            let other = JobKey::new(kind, key.job_id.clone());
            let error = read(subject, &other).await.unwrap_err();
            assert_eq!(error.kind, ApiErrorKind::Missing, "{other}");
        }
    }
    let key = accept(subject, &one_of_each_kind()[0], Fate::Completed).await;
    let error = page(subject, &key, 1, 50).await.unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Refused, "an extract job has no pages");
}

/// A key that is in order passes the probe, and the probe makes no job.
pub async fn a_probe_passes(subject: &JobsSubject) {
    subject.jobs().probe(WITHIN).await.unwrap();
    for kind in Kind::ALL {
        assert!(list_all(subject, kind).await.is_empty());
    }
}
