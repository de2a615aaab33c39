//! The simulated platform in this process: its API as a port, its webhooks as requests to hand
//! over, all of it by one clock.
//!
//! [`PlatformJobs`] is what the HTTP client and the platform behind it are to the steps, without
//! sockets: the same calls, the same lost, hanging, slow and broken answers, the same meaning of
//! each status. Nothing happens by itself: the platform moves when it is called or asked for its
//! deliveries, to the instant that the clock then shows. One seed, one clock and one order of
//! calls give the same jobs, answers and deliveries.

mod asking;
mod reading;
mod travel;
mod webhooks;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::envelope::EventType;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{
    ApiError, ApiErrorKind, Clock, ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage,
    SubmitError,
};
use domain::request::JobRequest;
use domain::signature::secret::Secret;
use domain::time::Timestamp;
use serde_json::{Value, json};
use simulator::{
    AttemptId, AttemptOutcome, Call, Config, Corpus, Detail, Faults, Moment, Platform,
    WebhookRequest,
};

use self::travel::Failure;

/// The simulated platform behind the port of its API.
pub struct PlatformJobs {
    clock: Arc<dyn Clock>,
    api_key: String,
    platform: Mutex<Platform>,
}

/// A webhook attempt to hand to the receiver now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// By which its outcome is reported.
    pub id: AttemptId,
    /// Where it would be sent.
    pub url: String,
    /// Its headers, as the receiver's signature check takes them.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Exactly the signed bytes.
    pub body: Vec<u8>,
}

impl PlatformJobs {
    /// A platform with generated results, by this clock.
    ///
    /// # Errors
    /// Names the first setting that cannot be used.
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Result<Self, simulator::SimulatorError> {
        config.check()?;
        let api_key = config.api_key.clone();
        let platform = Mutex::new(Platform::new(config, Corpus::default()));
        Ok(Self { clock, api_key, platform })
    }

    /// Subscribes a receiver to each kind's event, and gives the signing secrets. No fault of the
    /// API gets in the way, so that every simulation begins alike.
    ///
    /// # Errors
    /// The platform's refusal, such as of an eleventh webhook.
    pub fn subscribe(&self, url: &str) -> Result<Vec<Secret>, ApiError> {
        let mut platform = self.platform();
        let faults = platform.faults().clone();
        platform.set_faults(Faults { api: Faults::none().api, ..faults.clone() });
        let secrets = Kind::ALL.map(|kind| {
            let event_type = EventType::completed(kind);
            let body = json!({ "url": url, "event_type": event_type.as_str() }).to_string();
            let call = self.call("POST", "/v1/webhooks", "", body.as_bytes());
            let answer = platform.call(&call, self.now());
            let created = travel::read(answer.status, answer.body, None).map_err(Failure::error)?;
            reading::secret(&created)
        });
        platform.set_faults(faults);
        secrets.into_iter().collect()
    }

    /// Moves the platform to the present and takes the deliveries that are due. The outcome of
    /// each is to be reported; the platform repeats those that were not accepted.
    pub fn due_deliveries(&self) -> Vec<Delivery> {
        let now = self.now();
        let mut platform = self.platform();
        let due = platform.advance(now);
        due.into_iter()
            .filter_map(|attempt| {
                let request = platform.render_attempt(attempt.id, now)?;
                Some(Delivery::new(attempt.id, request))
            })
            .collect()
    }

    /// Tells the platform what the receiver answered, or that it did not.
    pub fn report(&self, delivery: &Delivery, outcome: AttemptOutcome) {
        self.platform().report_attempt(delivery.id, self.now(), outcome);
    }

    /// When something will next happen at the platform by itself.
    pub fn next_due(&self) -> Option<Timestamp> {
        let due = self.platform().next_due()?;
        Timestamp::from_millisecond(due.as_millis()).ok()
    }

    /// What really became of every job, part by part; the simulator's documentation tells how.
    pub fn books(&self) -> Value {
        self.books_in(Detail::Parts)
    }

    /// The same in as much detail as is wanted.
    pub fn books_in(&self, detail: Detail) -> Value {
        let now = self.now();
        let mut platform = self.platform();
        // A call moves the platform to the present and leaves its due deliveries where they are.
        platform.call(&self.call("GET", "/health", "", b""), now);
        platform.books(detail)
    }

    /// Switches the faults; jobs that were accepted before keep their fate.
    pub fn set_faults(&self, faults: Faults) {
        self.platform().set_faults(faults);
    }

    fn platform(&self) -> MutexGuard<'_, Platform> {
        self.platform.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Moment {
        Moment::from(self.clock.now())
    }

    fn call<'a>(
        &'a self,
        method: &'a str,
        path: &'a str,
        query: &'a str,
        body: &'a [u8],
    ) -> Call<'a> {
        Call { method, path, query, api_key: Some(&self.api_key), body }
    }

    /// Makes a call and waits for its answer as a client would. The effect happens at once.
    async fn ask(&self, call: Call<'_>, within: Duration) -> Result<Value, Failure> {
        let answer = self.platform().call(&call, self.now());
        travel::arrive(answer, within, self.clock.as_ref()).await
    }

    async fn get(&self, path: &str, query: &str, within: Duration) -> Result<Value, ApiError> {
        self.ask(self.call("GET", path, query, b""), within).await.map_err(Failure::error)
    }
}

impl Delivery {
    fn new(id: AttemptId, request: WebhookRequest) -> Self {
        let headers = request.headers.into_iter();
        Self {
            id,
            url: request.url,
            headers: headers.map(|(name, value)| (name.to_owned(), value.into_bytes())).collect(),
            body: request.body.to_vec(),
        }
    }
}

#[async_trait]
impl Jobs for PlatformJobs {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        let answer = self.get(&format!("/v1/extract/{job_id}"), "", within).await?;
        reading::extract(&answer, job_id)
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        let names = reading::Names::of(key.kind)
            .ok_or_else(|| ApiError::new(ApiErrorKind::Refused, "an extract job has no pages"))?;
        let path = format!("/v1/{}/{}", key.kind, key.job_id);
        let query = format!("page={}&page_size={}", page.page, page.page_size);
        let answer = self.get(&path, &query, within).await?;
        reading::parent(answer, &key.job_id, &names)
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        let path = format!("/v1/{}", request.kind());
        let body = asking::body(request).to_string();
        let answer = self.ask(self.call("POST", &path, "", body.as_bytes()), within).await;
        reading::accepted(&answer.map_err(Failure::submit_error)?).map_err(SubmitError::Unanswered)
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        let path = format!("/v1/{kind}/jobs");
        let answer = self.get(&path, &asking::list_query(query), within).await?;
        reading::list(&answer)
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.get("/v1/usage/concurrency", "", within).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
