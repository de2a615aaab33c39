//! The platform's books: what really happened, for whoever judges a client.

use serde_json::{Value, json};

use crate::answer::{Answer, Problem};
use crate::children::Children;
use crate::job::{Format, Job, Progress, Work};
use crate::platform::Platform;
use crate::query::Query;

/// Version of the books' format.
const BOOKS_VERSION: u32 = 1;

/// Jobs on one page of the books, at most and by default.
const BOOKS_PAGE_MAX: u64 = 1_000;

impl Platform {
    /// Returns the book of every accepted job, in the order of acceptance.
    pub fn books(&self) -> Value {
        let jobs: Vec<Value> = self.jobs.iter().map(|job| self.job_book(job)).collect();
        json!({ "version": BOOKS_VERSION, "now": self.now, "jobs": jobs, "next": null,
                "total": self.jobs.len() })
    }

    /// Answers GET /sim/books: jobs from ordinal `after` on, and where the next page begins.
    pub(crate) fn books_page(&self, query: &Query) -> Result<Answer, Vec<Problem>> {
        let after = query.number("after", 0, 0, u64::from(u32::MAX))?;
        let limit = query.number("limit", BOOKS_PAGE_MAX, 1, BOOKS_PAGE_MAX)?;
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        let take = usize::try_from(limit).unwrap_or(usize::MAX);
        let page: Vec<Value> =
            self.jobs.iter().skip(skip).take(take).map(|job| self.job_book(job)).collect();
        let end = skip.saturating_add(page.len());
        let next = (end < self.jobs.len()).then_some(end);
        Ok(Answer::json(
            200,
            json!({ "version": BOOKS_VERSION, "now": self.now, "jobs": page, "next": next,
                    "total": self.jobs.len() }),
        ))
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

    fn job_book(&self, job: &Job) -> Value {
        let now = self.now;
        let tally = job.tally(now);
        let status = job.status(now);
        let (failed_items, files) = match &job.work {
            Work::Extract { .. } => (Vec::new(), self.file_names(job.url())),
            Work::Batch { children, .. } | Work::Crawl { children, .. } => {
                (self.failed_items(job, children), Value::Null)
            }
        };
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
            "failed_items": failed_items,
            "corpus_files": files,
            "deliveries": job.deliveries,
            "gets": job.gets,
            "gets_unlisted": job.gets_unlisted,
            "answer_lost": job.answer_lost,
        })
    }

    fn file_names(&self, url: &str) -> Value {
        let name = |format| self.corpus.file_name(format, url);
        json!({ "html": name(Format::Html), "markdown": name(Format::Markdown) })
    }

    fn failed_items(&self, job: &Job, children: &Children) -> Vec<Value> {
        let looks = (0..children.count).filter_map(|index| {
            let child = children.look(job.key, &job.rules, index, job.cancelled_at, self.now);
            let (_, failure) = child.state.finished()?;
            failure.map(|failure| (index, failure))
        });
        looks
            .map(|(index, failure)| {
                let (place, url) = match &job.work {
                    Work::Batch { .. } => {
                        let (place, url) = job.batch_url(index);
                        (place, url.to_owned())
                    }
                    Work::Extract { .. } | Work::Crawl { .. } => (index, job.page_url(index)),
                };
                json!({ "index": place, "url": url, "code": failure.code,
                        "retryable": failure.retryable })
            })
            .collect()
    }
}
