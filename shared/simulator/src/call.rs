//! One call of the API, from request to answer, faults included.

use serde_json::json;

use crate::answer::{Answer, Problem, Transport};
use crate::dice::Key;
use crate::job::Kind;
use crate::moment::Moment;
use crate::platform::Platform;
use crate::query::{Paging, Query};
use crate::route::{Endpoint, Unrouted, is_uuid};

/// Default and largest page of batch and crawl results (contract 1.12).
const RESULTS_PAGE_DEFAULT: u64 = 10;
const RESULTS_PAGE_MAX: u64 = 50;

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
        let later = |page: &str| page.parse::<u64>().is_ok_and(|page| page > 1);
        if name.ends_with("/{job_id}") && Query::parse(call.query).get("page").is_some_and(later) {
            self.counters.later_result_pages += 1;
        }
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

    fn get_job(&mut self, kind: Kind, id: &str, query: &Query) -> Result<Answer, Vec<Problem>> {
        let paging = match kind {
            // An extraction's answer has no pages.
            Kind::Extract => Paging { page: 1, size: 1 },
            Kind::Batch | Kind::Crawl => query.paging(RESULTS_PAGE_DEFAULT, RESULTS_PAGE_MAX)?,
        };
        let lag = self.config.scaled(self.config.read_lag_secs);
        let readable = self
            .find(kind, id)
            .filter(|job| job.created_at.plus(lag) <= self.now && !job.has_vanished());
        let Some(job) = readable else {
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
pub(crate) fn refuse(endpoint: Endpoint<'_>, status: u16, code: &str, message: &str) -> Answer {
    if endpoint.has_bare_errors() {
        Answer::empty(status)
    } else {
        Answer::flat(status, code, message, false)
    }
}
