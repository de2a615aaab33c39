//! The job-creating calls.

use std::time::Duration;

use crate::answer::{Answer, Problem, Transport};
use crate::dice::Key;
use crate::fate::{Fate, TIMED_OUT};
use crate::moment::Moment;
use crate::platform::Platform;
use crate::submission::{BatchRequest, CrawlRequest, ExtractRequest, is_fetchable};

/// Longest synchronous extraction, in seconds before the speed; longer ones answer 504. The
/// platform's own bound is not documented.
const SYNC_SECS_MAX: f64 = 120.0;

impl Platform {
    fn over_limit(&mut self) -> Option<Answer> {
        if self.slots_in_use < self.config.work_concurrency_limit {
            return None;
        }
        self.counters.count_refused("work_concurrency");
        let message = "All work-concurrency slots of the plan are in use";
        Some(Answer::flat(429, "WORK_CONCURRENCY_LIMITED", message, true))
    }

    pub(crate) fn submit_extract(
        &mut self,
        body: &[u8],
        request: Key,
    ) -> Result<Answer, Vec<Problem>> {
        let asked = ExtractRequest::read(body)?;
        if !is_fetchable(&asked.url) {
            return Ok(Answer::flat(400, "INVALID_URL", "The URL cannot be fetched", false));
        }
        if let Some(refusal) = self.over_limit() {
            return Ok(refusal);
        }
        if !asked.is_async {
            return Ok(self.extract_now(&asked, request));
        }
        let ordinal = self.accept_extract(asked.url, asked.options);
        Ok(self.accepted(ordinal))
    }

    /// Extracts synchronously: no job, no list entry, no event.
    fn extract_now(&mut self, asked: &ExtractRequest, request: Key) -> Answer {
        let key = request.with(Key::of(b"sync"));
        let mut span = self.rules.span(key, self.now, false);
        let budget = asked
            .timeout_ms
            .map_or(Moment::NEVER, |millis| self.now.plus(Duration::from_millis(millis)));
        let patience = self.now.plus(self.config.scaled(SYNC_SECS_MAX));
        if patience < span.ends.min(budget) {
            let message = "No browser worker became free in time";
            let late = Answer::flat(504, "WORKER_WAIT_TIMEOUT", message, true);
            return late.sent(Transport::After(patience.since(self.now)));
        }
        if budget < span.ends {
            span.ends = budget;
            span.fate = TIMED_OUT;
        }
        let took = span.ends.since(self.now);
        self.counters.sync_extractions += 1;
        let completed = !matches!(span.fate, Fate::Failed(_));
        self.statistics.add(span.ends, u32::from(completed), u32::from(!completed), took);
        let answer = match span.fate {
            Fate::Failed(failure) => Answer::extraction_failed(failure),
            Fate::Completed | Fate::Cancelled | Fate::NeverSettles => {
                self.counters.sync_tokens += 1;
                Answer::json(200, self.sync_json(key, &asked.url, &asked.options, &span))
            }
        };
        answer.sent(Transport::After(took))
    }

    pub(crate) fn submit_batch(&mut self, body: &[u8]) -> Result<Answer, Vec<Problem>> {
        let asked = BatchRequest::read(body)?;
        let mut urls = Vec::new();
        let mut invalid = Vec::new();
        for (place, url) in (0_u32..).zip(asked.urls) {
            if is_fetchable(&url) {
                urls.push((place, url.into_boxed_str()));
            } else {
                invalid.push(url.into_boxed_str());
            }
        }
        if urls.is_empty() || !(asked.ignore_invalid_urls || invalid.is_empty()) {
            return Err(vec![Problem::body("urls", "url_parsing", "Input has invalid URLs")]);
        }
        if let Some(refusal) = self.over_limit() {
            return Ok(refusal);
        }
        let ordinal = self.accept_batch(urls, invalid, asked.options);
        Ok(self.accepted(ordinal))
    }

    pub(crate) fn submit_crawl(&mut self, body: &[u8]) -> Result<Answer, Vec<Problem>> {
        let asked = CrawlRequest::read(body)?;
        if !is_fetchable(&asked.url) {
            return Err(vec![Problem::body("url", "url_parsing", "Input should be a valid URL")]);
        }
        if let Some(refusal) = self.over_limit() {
            return Ok(refusal);
        }
        let ordinal = self.accept_crawl(asked.url, asked.depth, asked.limit, asked.options);
        Ok(self.accepted(ordinal))
    }

    fn accepted(&self, ordinal: u32) -> Answer {
        self.job(ordinal)
            .map_or_else(|| Answer::empty(500), |job| Answer::json(202, job.accepted_json()))
    }
}
