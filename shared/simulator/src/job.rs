//! An accepted job, and what can be seen of it at a given moment.
//!
//! A job's whole course is fixed when it is accepted (and once more when it is cancelled), so
//! its state is a pure function of the moment of asking and costs no storage.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::children::{Children, Tally};
use crate::dice::Key;
use crate::fate::{CANCELLED, Failure, Fate, Rules, Span};
use crate::moment::Moment;

/// Kind of a job; each has endpoints, a list and an event type of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One page.
    Extract,
    /// A list of pages.
    Batch,
    /// A site, followed from a seed.
    Crawl,
}

impl Kind {
    pub(crate) fn event_type(self) -> &'static str {
        match self {
            Self::Extract => "extract_completed",
            Self::Batch => "batch_completed",
            Self::Crawl => "crawl_completed",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Extract => "extract",
            Self::Batch => "batch",
            Self::Crawl => "crawl",
        }
    }
}

/// Status of a job as the platform reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted, not begun.
    Queued,
    /// Under way.
    Processing,
    /// Ended with a result; a batch or crawl may contain failed parts.
    Completed,
    /// Ended without any result.
    Failed,
    /// Ended by a cancellation.
    Cancelled,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Queued, Self::Processing, Self::Completed, Self::Failed, Self::Cancelled]
            .into_iter()
            .find(|status| status.name() == text)
    }

    /// Says whether the status is final.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Queued | Self::Processing)
    }
}

/// Output format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    Markdown,
    Html,
}

impl Format {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "markdown" => Some(Self::Markdown),
            "html" => Some(Self::Html),
            _ => None,
        }
    }
}

/// The options of a request that come back in answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) formats: Vec<Format>,
    pub(crate) render_js: bool,
    pub(crate) headers: Value,
    pub(crate) proxy: Value,
    pub(crate) wait_config: Value,
    pub(crate) same_domain_only: bool,
    pub(crate) include_subdomains: bool,
}

/// What a job has to do.
#[derive(Debug)]
pub(crate) enum Work {
    Extract { url: Box<str>, span: Span },
    Batch { urls: Box<[(u32, Box<str>)]>, invalid: Box<[Box<str>]>, children: Children },
    Crawl { url: Box<str>, limit: u32, children: Children },
}

/// What happened to the deliveries of a job, in attempts unless said otherwise.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct DeliveryBook {
    /// Deliveries that an active webhook should have had.
    pub(crate) planned: u32,
    /// Deliveries that were never sent.
    pub(crate) dropped: u32,
    /// Deliveries sent a second time.
    pub(crate) repeated: u32,
    pub(crate) sent: u32,
    pub(crate) missigned: u32,
    /// Attempts answered with 2xx.
    pub(crate) accepted: u32,
    /// Attempts answered with anything else.
    pub(crate) refused: u32,
    /// Attempts without an answer.
    pub(crate) unanswered: u32,
    /// Deliveries given up after the last attempt.
    pub(crate) abandoned: u32,
    /// Whether the first delivery of which anything became was accepted at its first attempt;
    /// `None` while nothing is known of any.
    pub(crate) first_accepted: Option<bool>,
}

/// How far the platform has followed a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    Open,
    /// The end was announced.
    Ended,
    /// Nothing changes any more; the job is in the statistics.
    Settled,
}

/// An accepted job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) ordinal: u32,
    pub(crate) id: Box<str>,
    pub(crate) key: Key,
    pub(crate) created_at: Moment,
    pub(crate) options: Arc<Options>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) work: Work,
    /// When the job is or will be cancelled, by the client or by the platform itself.
    pub(crate) cancelled_at: Option<Moment>,
    pub(crate) answer_lost: bool,
    pub(crate) progress: Progress,
    pub(crate) holds_slot: bool,
    pub(crate) deliveries: DeliveryBook,
    pub(crate) gets: Vec<Moment>,
    pub(crate) gets_unlisted: u32,
    /// The counts once nothing changes any more.
    pub(crate) final_tally: Option<Tally>,
}

impl Job {
    pub(crate) fn kind(&self) -> Kind {
        match self.work {
            Work::Extract { .. } => Kind::Extract,
            Work::Batch { .. } => Kind::Batch,
            Work::Crawl { .. } => Kind::Crawl,
        }
    }

    /// The submitted URL; the first one of a batch.
    pub(crate) fn url(&self) -> &str {
        match &self.work {
            Work::Extract { url, .. } | Work::Crawl { url, .. } => url,
            Work::Batch { urls, .. } => urls.first().map_or("", |(_, url)| url),
        }
    }

    /// The place in the request and the URL of a batch item.
    pub(crate) fn batch_url(&self, index: u32) -> (u32, &str) {
        let Work::Batch { urls, .. } = &self.work else { return (index, "") };
        let item = usize::try_from(index).ok().and_then(|index| urls.get(index));
        item.map_or((index, ""), |(place, url)| (*place, url))
    }

    /// The place and the URL of a part.
    pub(crate) fn part(&self, index: u32) -> (u32, String) {
        match &self.work {
            Work::Batch { .. } => {
                let (place, url) = self.batch_url(index);
                (place, url.to_owned())
            }
            Work::Extract { .. } | Work::Crawl { .. } => (index, self.page_url(index)),
        }
    }

    /// The URL of a crawl page; the seed keeps its own.
    pub(crate) fn page_url(&self, index: u32) -> String {
        let seed = self.url();
        if index == 0 {
            return seed.to_owned();
        }
        let address = seed.split(['?', '#']).next().unwrap_or(seed).trim_end_matches('/');
        format!("{address}/page-{index}")
    }

    /// The answer to the call that created the job.
    pub(crate) fn accepted_json(&self) -> Value {
        let (id, status, status_url) = (&self.id, Status::Queued, self.status_url());
        match &self.work {
            Work::Extract { .. } => json!({ "job_id": id, "status": status,
                "status_url": status_url, "estimated_tokens": 1 }),
            Work::Batch { urls, invalid, .. } => json!({ "job_id": id, "status": status,
                "status_url": status_url, "accepted_urls": urls.len(), "invalid_urls": invalid }),
            Work::Crawl { url, limit, .. } => json!({ "job_id": id, "status": status,
                "status_url": status_url, "url": url, "estimated_pages": limit }),
        }
    }

    pub(crate) fn status_url(&self) -> String {
        format!("/v1/{}/{}", self.kind().name(), self.id)
    }

    /// When the job reaches a terminal status; [`Moment::NEVER`] if it does not.
    pub(crate) fn ends_at(&self) -> Moment {
        let undisturbed = match &self.work {
            Work::Extract { span, .. } => span.ends,
            Work::Batch { children, .. } | Work::Crawl { children, .. } => children.ends,
        };
        self.cancelled_at.map_or(undisturbed, |at| at.min(undisturbed))
    }

    /// When nothing of the job can change any more.
    pub(crate) fn settled_at(&self) -> Moment {
        match &self.work {
            Work::Extract { .. } => self.ends_at(),
            Work::Batch { children, .. } | Work::Crawl { children, .. } => {
                children.drained.plus(self.rules.settle)
            }
        }
    }

    fn starts_at(&self) -> Moment {
        match &self.work {
            Work::Extract { span, .. } => span.starts,
            Work::Batch { children, .. } | Work::Crawl { children, .. } => children.starts,
        }
    }

    pub(crate) fn status(&self, now: Moment) -> Status {
        if now < self.ends_at() {
            return if now < self.starts_at() { Status::Queued } else { Status::Processing };
        }
        if self.cancelled_at.is_some_and(|at| at <= now) {
            return Status::Cancelled;
        }
        match &self.work {
            Work::Extract { span, .. } => match span.fate {
                Fate::Failed(_) => Status::Failed,
                Fate::Cancelled => Status::Cancelled,
                Fate::Completed | Fate::NeverSettles => Status::Completed,
            },
            Work::Batch { children, .. } | Work::Crawl { children, .. } => {
                if children.any_completes { Status::Completed } else { Status::Failed }
            }
        }
    }

    pub(crate) fn completed_at(&self, now: Moment) -> Option<Moment> {
        let ends = self.ends_at();
        (ends <= now).then_some(ends)
    }

    /// Says whether the job cannot be read although it exists.
    pub(crate) fn has_vanished(&self) -> bool {
        self.rules.dice.happens("vanished", self.key, self.rules.faults.vanished)
    }

    /// Why the job as a whole failed, once it did.
    pub(crate) fn failure(&self, now: Moment) -> Option<&'static Failure> {
        match (self.status(now), &self.work) {
            (Status::Cancelled, Work::Extract { .. }) => Some(&CANCELLED),
            (
                Status::Failed,
                Work::Extract { span: Span { fate: Fate::Failed(failure), .. }, .. },
            ) => Some(failure),
            _ => None,
        }
    }

    /// Counts the parts of the job; an extraction is its own only part.
    pub(crate) fn tally(&self, now: Moment) -> Tally {
        if let Some(tally) = self.final_tally {
            return tally;
        }
        match &self.work {
            Work::Batch { children, .. } | Work::Crawl { children, .. } => {
                children.tally(self.key, &self.rules, self.cancelled_at, now)
            }
            Work::Extract { .. } => {
                let mut tally = Tally { total: 1, ..Tally::default() };
                match self.status(now) {
                    Status::Completed => tally.completed = 1,
                    Status::Failed => tally.failed = 1,
                    Status::Cancelled => tally.cancelled = 1,
                    Status::Queued | Status::Processing => {
                        tally.pending = 1;
                        tally.reserved = 1;
                    }
                }
                tally
            }
        }
    }
}
