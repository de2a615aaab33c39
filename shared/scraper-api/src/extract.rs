//! Extract jobs: one URL, asynchronous through the port, or at once for the command line.

use std::fmt;
use std::time::Duration;

use domain::job::JobId;
use domain::ports::{ApiError, ApiErrorKind, ExtractJob, RawJson, SubmitError};
use domain::request::{FetchOptions, Format, JobRequest};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::answer::{Answer, Maybe, parse_object};
use crate::client::{Call, ScraperApi};
use crate::error_body::job_error;
use crate::submission::{Proxy, proxy_of};

/// Shortest budget of a synchronous extraction. Source: docs/contract.md, "Extract".
const SYNC_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// How much longer than the platform's budget a synchronous answer is waited for.
const SYNC_GRACE: Duration = Duration::from_secs(10);

#[derive(Serialize)]
struct ExtractBody<'a> {
    url: &'a str,
    processing_mode: &'static str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    formats: &'a [Format],
    render_js: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy: Option<Proxy<'a>>,
    /// Milliseconds; synchronous mode only.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
}

#[derive(Deserialize)]
struct ExtractAnswer<'a> {
    #[serde(default)]
    job_id: Maybe<String>,
    #[serde(default)]
    status: Maybe<String>,
    #[serde(default)]
    created_at: Maybe<String>,
    #[serde(default)]
    error: Maybe<ErrorField>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ErrorField {
    #[serde(default)]
    code: Maybe<String>,
    #[serde(default)]
    message: Maybe<String>,
    #[serde(default)]
    retryable: Maybe<bool>,
}

#[derive(Default, Deserialize)]
struct DataField<'a> {
    #[serde(borrow, default)]
    html: Option<&'a RawValue>,
    #[serde(borrow, default)]
    markdown: Option<&'a RawValue>,
}

/// The answer to a synchronous extraction.
#[derive(Clone, PartialEq, Eq)]
pub struct ExtractedPage {
    /// The page as HTML, if asked for.
    pub html: Option<String>,
    /// The page as Markdown, if asked for.
    pub markdown: Option<String>,
    /// What the platform says about the fetch, verbatim.
    pub metadata: Option<RawJson>,
    /// What was charged.
    pub tokens_charged: Option<u64>,
    /// The whole answer.
    pub raw: RawJson,
}

impl fmt::Debug for ExtractedPage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ExtractedPage")
            .field("tokens_charged", &self.tokens_charged)
            .field("raw", &self.raw)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct SyncAnswer<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(default)]
    tokens_charged: Maybe<u64>,
}

impl ScraperApi {
    pub(crate) async fn read_extract(
        &self,
        job_id: &JobId,
        within: Duration,
    ) -> Result<ExtractJob, ApiError> {
        let path = ["v1", "extract", job_id.as_str()];
        let answer = self.send(Call::get(&path), within).await?;
        parse_extract(answer, job_id)
    }

    pub(crate) async fn submit_extract(
        &self,
        url: &str,
        options: &FetchOptions,
        within: Duration,
    ) -> Result<JobId, SubmitError> {
        let body = extract_body(url, options, None);
        self.submit_body(&["v1", "extract"], &body, within).await
    }

    /// Extracts one URL and waits for the result. **Paid**; the platform keeps no job that could
    /// be asked for later.
    ///
    /// The platform gives up after `timeout` (at least a second); the call ends 10 s later at the
    /// latest.
    ///
    /// # Errors
    /// [`SubmitError::Unanswered`] when the extraction may have been paid for all the same.
    pub async fn extract_now(
        &self,
        request: &JobRequest,
        timeout: Duration,
    ) -> Result<ExtractedPage, SubmitError> {
        let JobRequest::Extract { url, options } = request else {
            let message = "only a single URL can be extracted at once";
            return Err(SubmitError::Refused(ApiError::new(ApiErrorKind::Refused, message)));
        };
        let timeout = timeout.max(SYNC_TIMEOUT_MIN);
        let body = extract_body(url, options, Some(timeout));
        let within = timeout.saturating_add(SYNC_GRACE);
        let answer = self.post(&["v1", "extract"], &body, within).await?;
        parse_page(answer).map_err(SubmitError::Unanswered)
    }
}

fn extract_body<'a>(
    url: &'a str,
    options: &'a FetchOptions,
    sync_timeout: Option<Duration>,
) -> ExtractBody<'a> {
    ExtractBody {
        url,
        processing_mode: if sync_timeout.is_some() { "sync" } else { "async" },
        formats: &options.formats,
        render_js: options.render_js,
        proxy: proxy_of(options),
        timeout: sync_timeout.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
    }
}

fn parse_extract(answer: Answer, job_id: &JobId) -> Result<ExtractJob, ApiError> {
    let fields: ExtractAnswer<'_> = answer.read()?;
    answer.check_job_id(fields.job_id.as_deref(), job_id)?;
    let status = answer.job_status(fields.status.as_deref())?;
    let created_at = fields.created_at.timestamp();
    let has_data = fields.data.is_some_and(has_data);
    let error = fields.error.0.map(|error| {
        job_error(
            &answer.key,
            error.code.as_deref().unwrap_or_default(),
            error.message.as_deref().unwrap_or_default(),
            error.retryable.0.unwrap_or(false),
        )
    });
    let raw = RawJson(answer.text.into_boxed_str());
    Ok(ExtractJob { status, created_at, error, has_data, raw })
}

/// Whether a `data` object holds a text that is not empty. The texts themselves are not decoded.
fn has_data(data: &RawValue) -> bool {
    let data: DataField<'_> = parse_object(data).unwrap_or_default();
    let is_text = |raw: &RawValue| raw.get().starts_with('"') && raw.get() != "\"\"";
    data.html.is_some_and(is_text) || data.markdown.is_some_and(is_text)
}

fn parse_page(answer: Answer) -> Result<ExtractedPage, ApiError> {
    #[derive(Deserialize)]
    struct Texts {
        #[serde(default)]
        html: Maybe<String>,
        #[serde(default)]
        markdown: Maybe<String>,
    }

    let fields: SyncAnswer<'_> = answer.read()?;
    let texts: Texts = parse_object(fields.data)
        .ok_or_else(|| answer.unreadable("the answer's `data` is not an object"))?;
    let metadata = fields.metadata.map(|raw| RawJson(raw.get().into()));
    let tokens_charged = fields.tokens_charged.0;
    Ok(ExtractedPage {
        html: texts.html.0,
        markdown: texts.markdown.0,
        metadata,
        tokens_charged,
        raw: RawJson(answer.text.into_boxed_str()),
    })
}

#[cfg(test)]
mod tests;
