//! Paid POSTs: what is sent for a job, and what counts as its acceptance.

use std::time::Duration;

use domain::job::JobId;
use domain::ports::{ApiError, SubmitError};
use domain::request::FetchOptions;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Maybe};
use crate::client::{Call, ScraperApi};

/// The proxy that a request asks for.
#[derive(Serialize)]
pub(crate) struct Proxy<'a> {
    country: &'a str,
}

/// The proxy of these options; none leaves the choice to the platform.
pub(crate) fn proxy_of(options: &FetchOptions) -> Option<Proxy<'_>> {
    options.proxy_country.as_deref().map(|country| Proxy { country })
}

#[derive(Deserialize)]
struct Accepted {
    #[serde(default)]
    job_id: Maybe<String>,
}

impl ScraperApi {
    /// Makes a POST that must not be made twice. It is never repeated here.
    ///
    /// # Errors
    /// `Refused` when nothing was done, `Unanswered` when that is not certain.
    pub(crate) async fn post(
        &self,
        path: &[&str],
        body: &impl Serialize,
        within: Duration,
    ) -> Result<Answer, SubmitError> {
        let call = Call::new(Method::POST, path).body(body).map_err(SubmitError::Refused)?;
        Ok(self.send(call, within).await?)
    }

    /// Submits a job and reads its id.
    pub(crate) async fn submit_body(
        &self,
        path: &[&str],
        body: &impl Serialize,
        within: Duration,
    ) -> Result<JobId, SubmitError> {
        let answer = self.post(path, body, within).await?;
        accepted_id(&answer).map_err(SubmitError::Unanswered)
    }
}

fn accepted_id(answer: &Answer) -> Result<JobId, ApiError> {
    let accepted: Accepted = answer.read()?;
    let job_id = accepted.job_id.as_deref().and_then(|text| JobId::parse(text).ok());
    job_id.ok_or_else(|| answer.unreadable("the answer has no usable `job_id`"))
}
