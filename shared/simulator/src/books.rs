//! The platform's books: what really happened, for whoever judges a client.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::answer::{Answer, Problem};
use crate::children::Children;
use crate::content::result_text;
use crate::fate::Failure;
use crate::job::{Format, Job, Progress, Work};
use crate::moment::Moment;
use crate::platform::Platform;
use crate::query::Query;

/// Version of the books' format.
const BOOKS_VERSION: u32 = 1;

/// Jobs on one page of the books, at most and by default.
const BOOKS_PAGE_MAX: u64 = 1_000;

/// How much the books tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Jobs, with their failed parts.
    Jobs,
    /// Every finished part as well, with the digests of its texts.
    Parts,
}

impl Detail {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "jobs" => Some(Self::Jobs),
            "parts" => Some(Self::Parts),
            _ => None,
        }
    }
}

impl Platform {
    /// Returns the book of every accepted job, in the order of acceptance.
    pub fn books(&self, detail: Detail) -> Value {
        let take = self.jobs.len();
        self.books_from(0, take, detail)
    }

    /// Answers GET /sim/books: jobs from ordinal `after` on, and where the next page begins.
    pub(crate) fn books_page(&self, query: &Query) -> Result<Answer, Vec<Problem>> {
        let after = query.number("after", 0, 0, u64::from(u32::MAX))?;
        let limit = query.number("limit", BOOKS_PAGE_MAX, 1, BOOKS_PAGE_MAX)?;
        let detail = query.choice("detail", Detail::parse)?.unwrap_or(Detail::Jobs);
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        let take = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(Answer::json(200, self.books_from(skip, take, detail)))
    }

    fn books_from(&self, skip: usize, take: usize, detail: Detail) -> Value {
        let jobs = self.jobs.iter().skip(skip).take(take);
        let page: Vec<Value> = jobs.map(|job| self.job_book(job, detail)).collect();
        let end = skip.saturating_add(page.len());
        let next = (end < self.jobs.len()).then_some(end);
        json!({ "version": BOOKS_VERSION, "now": self.now, "jobs": page, "next": next,
                "total": self.jobs.len() })
    }

    /// Returns the counters, with what is under way.
    pub(crate) fn counters_json(&self) -> Value {
        json!({
            "version": BOOKS_VERSION,
            "now": self.now,
            "jobs": self.jobs.len(),
            "unfinished_jobs": self.jobs.iter().filter(|job| job.progress < Progress::Ended).count(),
            "unsettled_jobs": self.jobs.iter().filter(|job| job.progress < Progress::Settled).count(),
            "pending_attempts": self.pending.len(),
            "work_concurrency_in_use": self.slots_in_use,
            "counters": self.counters,
        })
    }

    fn job_book(&self, job: &Job, detail: Detail) -> Value {
        let now = self.now;
        let tally = job.tally(now);
        let status = job.status(now);
        let urls: Vec<&str> = match &job.work {
            Work::Extract { url, .. } | Work::Crawl { url, .. } => vec![url],
            Work::Batch { urls, .. } => urls.iter().map(|(_, url)| url.as_ref()).collect(),
        };
        let invalid = match &job.work {
            Work::Batch { invalid, .. } => invalid.len(),
            Work::Extract { .. } | Work::Crawl { .. } => 0,
        };
        json!({
            "ordinal": job.ordinal,
            "kind": job.kind(),
            "job_id": job.id,
            "urls": urls,
            "invalid_urls": invalid,
            "formats": job.options.formats,
            "submitted_at": job.created_at,
            "finished_at": job.completed_at(now),
            "settled": job.settled_at() <= now,
            "status": status,
            "failure_code": job.failure(now).map(|failure| failure.code),
            "retryable": job.failure(now).map(|failure| failure.retryable),
            "charged_tokens": tally.completed,
            "items": tally,
            "failed_items": failed_items(job, now),
            "parts": (detail == Detail::Parts).then(|| self.parts(job)),
            "deliveries": job.deliveries,
            "gets": job.gets,
            "gets_unlisted": job.gets_unlisted,
            "answer_lost": job.answer_lost,
            "vanished": job.has_vanished(),
        })
    }

    /// Describes every finished part: status, failure, and of a result the file that it comes
    /// from and the SHA-256 of its texts.
    fn parts(&self, job: &Job) -> Vec<Value> {
        let part = |index: u32, url: &str, status: &str, failure: Option<&'static Failure>| {
            let mut part = json!({
                "index": index, "url": url, "status": status,
                "code": failure.map(|failure| failure.code),
                "retryable": failure.map(|failure| failure.retryable),
            });
            for (format, name) in [(Format::Html, "html"), (Format::Markdown, "markdown")] {
                let is_there = status == "completed" && job.options.formats.contains(&format);
                let content = is_there.then(|| self.content(job, index, url, format));
                if let Some(fields) = part.as_object_mut() {
                    fields.insert(name.to_owned(), json!(content));
                }
            }
            part
        };
        match &job.work {
            Work::Extract { url, .. } => {
                let status = job.status(self.now);
                let done = status.is_terminal();
                let failure = job.failure(self.now);
                done.then(|| part(0, url, status.name(), failure)).into_iter().collect()
            }
            Work::Batch { children, .. } | Work::Crawl { children, .. } => {
                finished(job, children, self.now)
                    .map(|(index, status, failure)| {
                        let (place, url) = job.part(index);
                        part(place, &url, status, failure)
                    })
                    .collect()
            }
        }
    }

    fn content(&self, job: &Job, index: u32, url: &str, format: Format) -> Value {
        let key = match job.work {
            Work::Extract { .. } => job.key,
            Work::Batch { .. } | Work::Crawl { .. } => job.key.child(u64::from(index)),
        };
        let text = result_text(&self.corpus, &job.rules, key, url, format);
        json!({
            "file": self.corpus.file_name(format, url),
            "bytes": text.len(),
            "sha256": hex::encode(Sha256::digest(text.as_bytes())),
        })
    }
}

/// Walks the finished parts of a batch or crawl.
fn finished(
    job: &Job,
    children: &Children,
    now: Moment,
) -> impl Iterator<Item = (u32, &'static str, Option<&'static Failure>)> {
    (0..children.count).filter_map(move |index| {
        let child = children.look(job.key, &job.rules, index, job.cancelled_at, now);
        child.state.finished().map(|(status, failure)| (index, status, failure))
    })
}

fn failed_items(job: &Job, now: Moment) -> Vec<Value> {
    let (Work::Batch { children, .. } | Work::Crawl { children, .. }) = &job.work else {
        return Vec::new();
    };
    finished(job, children, now)
        .filter_map(|(index, _, failure)| {
            let (failure, (place, url)) = (failure?, job.part(index));
            Some(json!({ "index": place, "url": url, "code": failure.code,
                         "retryable": failure.retryable }))
        })
        .collect()
}
