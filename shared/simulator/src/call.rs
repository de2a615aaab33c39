//! One call of the API, from request to answer, faults included.

use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::{Answer, Problem, Transport};
use crate::config::duration;
use crate::dice::Key;
use crate::fate::Fate;
use crate::faults::Faults;
use crate::job::Kind;
use crate::moment::Moment;
use crate::platform::Platform;
use crate::query::{Paging, Query};
use crate::route::{Endpoint, Unrouted, is_uuid};
use crate::submission::{BatchRequest, CrawlRequest, ExtractRequest, is_fetchable};

/// Default and largest page of batch and crawl results (contract 1.12).
const RESULTS_PAGE_DEFAULT: u64 = 10;
const RESULTS_PAGE_MAX: u64 = 50;

/// Wait that a throttled call may ask for, in real seconds: clients wait in real time.
const RETRY_AFTER_SECS: u64 = 2;

/// A request to the API.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// HTTP method, upper case.
    pub method: &'a str,
    /// Path without the query.
    pub path: &'a str,
    /// Query string as sent, without the question mark.
    pub query: &'a str,
    /// Value of `X-Api-Key`.
    pub api_key: Option<&'a str>,
    /// Body as sent.
    pub body: &'a [u8],
}

impl std::fmt::Debug for Call<'_> {
    /// Leaves the key and the body out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { method, path, .. } = self;
        f.debug_struct("Call").field("method", method).field("path", path).finish_non_exhaustive()
    }
}

impl Platform {
    /// Answers one call.
    ///
    /// The answer's transport says whether the client sees it; a lost answer's effect happened.
    pub fn call(&mut self, call: &Call<'_>, now: Moment) -> Answer {
        self.roll(now);
        let parts = [call.method, call.path, call.query].map(|part| Key::of(part.as_bytes()));
        let request = parts.into_iter().fold(Key::of(call.body), Key::with);
        let request = self.request_key(request);
        let (name, mut answer) = match Endpoint::find(call.method, call.path) {
            Ok(endpoint) => (endpoint.name(), self.answer(endpoint, call, request)),
            Err(Unrouted::NoPath) => ("unknown path", Answer::detail(404, "Not Found")),
            Err(Unrouted::NoMethod) => {
                ("unknown method", Answer::detail(405, "Method Not Allowed"))
            }
        };
        let dice = self.dice;
        answer.set_correlation(|| dice.uuid("correlation", request));
        self.counters.count_call(name, &answer);
        answer
    }

    fn answer(&mut self, endpoint: Endpoint<'_>, call: &Call<'_>, request: Key) -> Answer {
        if endpoint == Endpoint::Health {
            return self.health();
        }
        if call.api_key != Some(self.config.api_key.as_str()) {
            self.counters.count_refused("unauthorized");
            return refuse(endpoint, 401, "UNAUTHORIZED", "The API key is missing or not valid");
        }
        if endpoint.is_backstage() {
            return self.backstage(endpoint, call);
        }
        if let Some(error) = self.injected_error(endpoint, request) {
            return error;
        }
        let jobs_before = self.jobs.len();
        let answer = self.perform(endpoint, call, request).unwrap_or_else(|problems| {
            // The create calls' 422 has no documented body (contract 1.5, 1.6).
            let is_bare = matches!(endpoint, Endpoint::Submit(Kind::Batch | Kind::Crawl));
            if is_bare { Answer::empty(422) } else { Answer::invalid(&problems) }
        });
        let transport = self.injected_transport(endpoint, request, self.jobs.len() > jobs_before);
        match transport {
            Transport::Prompt => answer,
            transport => answer.sent(transport),
        }
    }

    /// Draws an error that is answered instead of doing anything.
    fn injected_error(&mut self, endpoint: Endpoint<'_>, request: Key) -> Option<Answer> {
        let dice = self.dice;
        let faults = &self.config.faults.api;
        let pays = matches!(endpoint, Endpoint::Submit(Kind::Extract | Kind::Crawl));
        if pays && dice.happens("payment_required", request, faults.payment_required) {
            self.counters.count_refused("payment_required");
            let message = "The balance does not cover this request";
            return Some(refuse(endpoint, 402, "PAYMENT_REQUIRED", message));
        }
        if !dice.happens("api_error", request, faults.errors) {
            return None;
        }
        self.counters.count_refused("injected_error");
        let fails = |status: u16, code: &str, message: &str| {
            // Half of the calls without a documented error body answer the flat one after all.
            if endpoint.has_bare_errors() && dice.happens("bare_error", request, 0.5) {
                Answer::empty(status)
            } else {
                Answer::flat(status, code, message, true)
            }
        };
        let throttled = || fails(429, "RATE_LIMITED", "Too many requests");
        Some(match dice.index("api_error_kind", request, 6) {
            0 => throttled(),
            1 => throttled().with_retry_after(RETRY_AFTER_SECS.to_string()),
            2 => {
                let at = self.now.plus(Duration::from_secs(RETRY_AFTER_SECS));
                throttled().with_retry_after(at.to_http_date())
            }
            3 => fails(500, "INTERNAL_ERROR", "Something went wrong"),
            4 => fails(502, "BILLING_UPSTREAM_ERROR", "The billing service answered with an error"),
            _ => fails(503, "SERVICE_UNAVAILABLE", "The service is not available for now"),
        })
    }

    /// Draws how the answer travels, and books a submission whose answer will not arrive.
    fn injected_transport(
        &mut self,
        endpoint: Endpoint<'_>,
        request: Key,
        accepted: bool,
    ) -> Transport {
        let dice = self.dice;
        let faults = self.config.faults.api.clone();
        let hang = Transport::Hang(duration(self.config.hang_max_secs));
        if accepted {
            let lost = dice.happens("lost_answer", request, faults.lost_answers);
            let hangs = dice.happens("hang", request, faults.hangs);
            if let Some(job) = self.jobs.last_mut() {
                job.answer_lost = lost || hangs;
            }
            return match (lost, hangs) {
                (true, _) => Transport::Lost,
                (false, true) => hang,
                (false, false) => Transport::Prompt,
            };
        }
        let writes_webhook = matches!(
            endpoint,
            Endpoint::CreateWebhook
                | Endpoint::UpdateWebhook(_)
                | Endpoint::DeleteWebhook(_)
                | Endpoint::RotateSecret(_)
        );
        if writes_webhook && dice.happens("lost_answer", request, faults.lost_webhook_answers) {
            return Transport::Lost;
        }
        if !endpoint.is_read() {
            return Transport::Prompt;
        }
        if dice.happens("hang", request, faults.hangs) {
            hang
        } else if dice.happens("slow_body", request, faults.slow_bodies) {
            Transport::Slow
        } else if dice.happens("cut_body", request, faults.cut_bodies) {
            Transport::Cut
        } else {
            Transport::Prompt
        }
    }

    fn perform(
        &mut self,
        endpoint: Endpoint<'_>,
        call: &Call<'_>,
        request: Key,
    ) -> Result<Answer, Vec<Problem>> {
        if let Some((name, id)) = endpoint.uuid()
            && !is_uuid(id)
        {
            return Err(vec![Problem::path(name)]);
        }
        let query = Query::parse(call.query);
        match endpoint {
            Endpoint::Submit(Kind::Extract) => Ok(self.submit_extract(call.body, request)?),
            Endpoint::Submit(Kind::Batch) => self.submit_batch(call.body),
            Endpoint::Submit(Kind::Crawl) => self.submit_crawl(call.body),
            Endpoint::List(kind) => self.list_jobs(kind, &query, request),
            Endpoint::Get(kind, id) => self.get_job(kind, id, &query),
            Endpoint::Cancel(kind, id) => Ok(self.cancel_job(kind, id)),
            Endpoint::Statistics => self.report_statistics(&query),
            Endpoint::Concurrency => Ok(Answer::json(
                200,
                json!({ "work_concurrency_in_use": self.slots_in_use,
                        "work_concurrency_limit": self.config.work_concurrency_limit }),
            )),
            Endpoint::CreateWebhook => Ok(self.create_webhook(call.body)),
            Endpoint::ListWebhooks => self.list_webhooks(&query),
            Endpoint::GetWebhook(id) => Ok(self.get_webhook(id)),
            Endpoint::UpdateWebhook(id) => Ok(self.update_webhook(id, call.body)),
            Endpoint::DeleteWebhook(id) => Ok(self.delete_webhook(id)),
            Endpoint::RotateSecret(id) => Ok(self.rotate_secret(id)),
            Endpoint::Deliveries(id) => self.list_deliveries(id, &query),
            Endpoint::Health
            | Endpoint::Books
            | Endpoint::Counters
            | Endpoint::GetFaults
            | Endpoint::SetFaults
            | Endpoint::ChangeFaults => Ok(self.backstage(endpoint, call)),
        }
    }

    fn health(&self) -> Answer {
        let version = env!("CARGO_PKG_VERSION");
        Answer::json(
            200,
            json!({ "service": "scraper-api-simulator", "status": "ok", "timestamp": self.now,
                    "version": version }),
        )
    }

    /// Answers the simulator's own endpoints, which know no faults.
    fn backstage(&mut self, endpoint: Endpoint<'_>, call: &Call<'_>) -> Answer {
        match endpoint {
            Endpoint::Books => self
                .books_page(&Query::parse(call.query))
                .unwrap_or_else(|problems| Answer::invalid(&problems)),
            Endpoint::Counters => Answer::json(200, self.counters_json()),
            Endpoint::SetFaults => self.switch_faults(read_faults(call.body)),
            Endpoint::ChangeFaults => {
                let changed = change_faults(&self.config.faults, call.body);
                self.switch_faults(changed)
            }
            _ => Answer::json(200, json!(self.config.faults)),
        }
    }

    fn switch_faults(&mut self, faults: Result<Faults, String>) -> Answer {
        let checked = faults
            .and_then(|faults| faults.check().map_err(|error| error.to_string()).map(|()| faults));
        match checked {
            Ok(faults) => {
                self.set_faults(faults);
                Answer::json(200, json!(self.config.faults))
            }
            Err(message) => Answer::detail(422, &message),
        }
    }

    fn over_limit(&mut self) -> Option<Answer> {
        if self.slots_in_use < self.config.work_concurrency_limit {
            return None;
        }
        self.counters.count_refused("work_concurrency");
        let message = "All work-concurrency slots of the plan are in use";
        Some(Answer::flat(429, "WORK_CONCURRENCY_LIMITED", message, true))
    }

    fn submit_extract(&mut self, body: &[u8], request: Key) -> Result<Answer, Vec<Problem>> {
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
        if budget < span.ends {
            span.ends = budget;
            span.fate = crate::fate::TIMED_OUT;
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

    fn submit_batch(&mut self, body: &[u8]) -> Result<Answer, Vec<Problem>> {
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

    fn submit_crawl(&mut self, body: &[u8]) -> Result<Answer, Vec<Problem>> {
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

    fn get_job(&mut self, kind: Kind, id: &str, query: &Query) -> Result<Answer, Vec<Problem>> {
        let paging = match kind {
            // An extraction's answer has no pages.
            Kind::Extract => Paging { page: 1, size: 1 },
            Kind::Batch | Kind::Crawl => query.paging(RESULTS_PAGE_DEFAULT, RESULTS_PAGE_MAX)?,
        };
        let Some(job) = self.find(kind, id) else {
            return Ok(refuse(Endpoint::Get(kind, id), 404, "JOB_NOT_FOUND", "No such job"));
        };
        let (ordinal, body) = (job.ordinal, self.job_json(job, paging));
        self.note_get(ordinal);
        Ok(Answer::json(200, body))
    }

    fn cancel_job(&mut self, kind: Kind, id: &str) -> Answer {
        let Some(job) = self.find(kind, id) else { return Answer::empty(404) };
        let (ordinal, job_id, status_url) = (job.ordinal, job.id.clone(), job.status_url());
        let Some(in_flight) = self.cancel(ordinal) else { return Answer::empty(409) };
        let counter = if kind == Kind::Crawl { "in_flight_pages" } else { "in_flight_urls" };
        Answer::json(
            202,
            json!({ "job_id": job_id, "status_url": status_url, "status": "cancelled",
                    counter: in_flight }),
        )
    }
}

/// Refuses a call in the shape that its endpoint documents.
fn refuse(endpoint: Endpoint<'_>, status: u16, code: &str, message: &str) -> Answer {
    if endpoint.has_bare_errors() {
        Answer::empty(status)
    } else {
        Answer::flat(status, code, message, false)
    }
}

/// Reads a faults document: the faults themselves, or the name of a preset.
fn read_faults(body: &[u8]) -> Result<Faults, String> {
    if let Ok(name) = serde_json::from_slice::<String>(body) {
        return Faults::preset(&name).ok_or_else(|| format!("no preset `{name}`"));
    }
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

/// Lays a partial faults document over the faults in force.
fn change_faults(faults: &Faults, body: &[u8]) -> Result<Faults, String> {
    let change: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let mut document = json!(faults);
    for (group, members) in change.as_object().into_iter().flatten() {
        for (name, value) in members.as_object().into_iter().flatten() {
            // A name that does not exist is put in all the same and refused when it is read.
            match document.get_mut(group).and_then(Value::as_object_mut) {
                Some(fields) => {
                    fields.insert(name.clone(), value.clone());
                }
                None => return Err(format!("no faults called `{group}`")),
            }
        }
    }
    serde_json::from_value(document).map_err(|error| error.to_string())
}
