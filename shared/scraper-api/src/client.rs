//! Building of the client, and the one function that sends.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use domain::backoff::parse_retry_after;
use domain::ports::{ApiError, ApiErrorKind, Clock, SubmitError};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, ClientBuilder, Method, Request, Response, Url, redirect};
use tokio::time::{Instant, timeout_at};

use crate::answer::Answer;
use crate::body::{self, Cut};
use crate::config::{ApiKey, BuildError, Config};
use crate::error_body;
use crate::room::{self, Room};
use crate::status::{self, Effect};

const USER_AGENT: &str = concat!("gleaner/", env!("CARGO_PKG_VERSION"));
const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
/// Longest that any call may be given.
const WITHIN_MAX: Duration = Duration::from_hours(1);
/// Most bytes read of an error's body; the platform's own are far smaller.
const ERROR_BODY_BYTES_MAX: usize = 64 * 1024; // 64 KiB
/// Idle connections kept; as many as one process has workers.
const POOL_IDLE_MAX: usize = 32;
/// Longest text about a broken connection, in characters.
const TROUBLE_CHARS_MAX: usize = 300;

/// A client of the platform's API for one account.
pub struct ScraperApi {
    base_url: Url,
    key: RwLock<Option<ApiKey>>,
    pooled: Client,
    /// Opens a connection for each call: for the second try of a GET. Made when first needed,
    /// since reading the root certificates takes its time; `None` if that failed.
    fresh: OnceLock<Option<Client>>,
    connect_timeout: Duration,
    clock: Arc<dyn Clock>,
    body_bytes_max: usize,
    retry_after_max: Duration,
    error_body_within: Duration,
    room: Room,
}

impl fmt::Debug for ScraperApi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ScraperApi")
            .field("base_url", &self.base_url.as_str())
            .finish_non_exhaustive()
    }
}

impl ScraperApi {
    /// Builds a client. Nothing is sent.
    ///
    /// # Errors
    /// [`BuildError::Client`] when TLS cannot be set up.
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Result<Self, BuildError> {
        let pooled = builder(&config.base_url, config.connect_timeout)
            .pool_idle_timeout(config.pool_idle_timeout)
            .pool_max_idle_per_host(POOL_IDLE_MAX)
            .build()
            .map_err(BuildError::Client)?;
        Ok(Self {
            pooled,
            fresh: OnceLock::new(),
            connect_timeout: config.connect_timeout,
            base_url: config.base_url,
            key: RwLock::new(config.key),
            clock,
            body_bytes_max: config.body_bytes_max,
            retry_after_max: config.retry_after_max,
            error_body_within: config.error_body_within,
            room: Room::default(),
        })
    }

    /// Replaces the key for all later calls.
    pub fn set_key(&self, key: ApiKey) {
        *self.key.write().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }

    fn key(&self) -> Option<ApiKey> {
        self.key.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends one call and reads its answer, all within `within`.
    pub(crate) async fn send(&self, call: Call<'_>, within: Duration) -> Result<Answer, Failure> {
        room::give_back();
        let deadline = Instant::now() + within.min(WITHIN_MAX);
        // One key for the whole call, so that what an answer echoes can be blotted out.
        let Some(key) = self.key() else {
            let error = ApiError::new(ApiErrorKind::Denied, "there is no API key yet");
            return Err(Failure { error, effect: Effect::None });
        };
        let mut response = self.exchange(&call, &key, deadline).await?;
        let status = response.status().as_u16();
        if response.status().is_success() || call.expects == Some(status) {
            let mut bytes = Vec::new();
            body::read_into(&mut bytes, &mut response, self.body_bytes_max, &self.room, deadline)
                .await
                .map_err(|cut| Failure::possible(cut.error(status)))?;
            let text = String::from_utf8(bytes).map_err(|_| {
                let error = ApiError::new(ApiErrorKind::Unreadable, "the answer is not UTF-8");
                Failure::possible(ApiError { status: Some(status), ..error })
            })?;
            return Ok(Answer { status, text, key: key.clone() });
        }
        let error = self.error_of(response, &key, deadline).await;
        Err(Failure { error, effect: status::effect_of(status) })
    }

    /// Gets the answer's head. A GET whose connection broke before any answer is tried once more
    /// on a fresh connection: a pooled one may have been closed by the server meanwhile.
    async fn exchange(
        &self,
        call: &Call<'_>,
        key: &ApiKey,
        deadline: Instant,
    ) -> Result<Response, Failure> {
        let first = self.try_once(&self.pooled, call, key, deadline).await;
        match (first, call.method == Method::GET) {
            (Err(Trouble::Broken(message)), true) => match self.fresh() {
                Some(fresh) => self.try_once(fresh, call, key, deadline).await,
                None => Err(Trouble::Broken(message)),
            },
            (other, _) => other,
        }
        .map_err(Trouble::into_failure)
    }

    fn fresh(&self) -> Option<&Client> {
        let build =
            || builder(&self.base_url, self.connect_timeout).pool_max_idle_per_host(0).build().ok();
        self.fresh.get_or_init(build).as_ref()
    }

    async fn try_once(
        &self,
        client: &Client,
        call: &Call<'_>,
        key: &ApiKey,
        deadline: Instant,
    ) -> Result<Response, Trouble> {
        let request = self.request(call, key)?;
        match timeout_at(deadline, client.execute(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_connect() => Err(Trouble::NoConnection(describe(error))),
            Ok(Err(error)) if error.is_builder() => Err(Trouble::NotSent(describe(error))),
            Ok(Err(error)) => Err(Trouble::Broken(describe(error))),
            Err(_) => Err(Trouble::Late),
        }
    }

    fn request(&self, call: &Call<'_>, key: &ApiKey) -> Result<Request, Trouble> {
        let not_sent = |message: &str| Trouble::NotSent(message.to_owned());
        let mut url = self.base_url.clone();
        // Each segment is percent-encoded whole, `%` included, so that an id stays one segment.
        url.path_segments_mut()
            .map_err(|()| not_sent("the base URL cannot have a path"))?
            .pop_if_empty()
            .extend(call.path);
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let mut request = Request::new(call.method.clone(), url);
        if call.is_authenticated {
            let header = key.header();
            let header =
                header.ok_or_else(|| not_sent("the API key cannot be sent in a header"))?;
            request.headers_mut().insert(API_KEY_HEADER, header);
        }
        if let Some(body) = &call.body {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
            *request.body_mut() = Some(body.clone().into());
        }
        Ok(request)
    }

    /// Reads what an answer other than 2xx says. Its body is optional: what cannot be read in
    /// time or is beyond the cap is left out.
    async fn error_of(&self, mut response: Response, key: &ApiKey, deadline: Instant) -> ApiError {
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|header| header.to_str().ok())
            .and_then(|text| parse_retry_after(text, self.clock.now(), self.retry_after_max));
        let deadline = deadline.min(Instant::now() + self.error_body_within.min(WITHIN_MAX));
        let mut bytes = Vec::new();
        let (bytes_max, room) = (ERROR_BODY_BYTES_MAX, &self.room);
        let read = body::read_into(&mut bytes, &mut response, bytes_max, room, deadline).await;
        let text = match read {
            Ok(()) => String::from_utf8_lossy(&bytes),
            Err(Cut::TooLarge | Cut::Late | Cut::Broken) => "".into(),
        };
        let said = error_body::parse(&text, &|text| key.blot(text));
        let message = if (300..400).contains(&status) {
            "redirects are not followed; check the base URL".to_owned()
        } else {
            said.message.unwrap_or_default()
        };
        ApiError {
            kind: status::kind_of(status),
            status: Some(status),
            code: said.code,
            message,
            retryable: said.retryable,
            retry_after,
            correlation_id: said.correlation_id,
        }
    }
}

/// What all connections have in common.
fn builder(base_url: &Url, connect_timeout: Duration) -> ClientBuilder {
    let builder = if base_url.scheme() == "http" {
        // Without TLS, and redirects not being followed, the system's root certificates are
        // neither needed nor, in a bare container, always there.
        tls::client().tls_certs_only([])
    } else {
        tls::client()
    };
    builder
        .user_agent(USER_AGENT)
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .gzip(true)
        .connect_timeout(connect_timeout)
        // The environment is read in one place only, which is not this one.
        .no_proxy()
}

/// One call of the API.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    method: Method,
    path: &'a [&'a str],
    query: Vec<(&'static str, String)>,
    body: Option<Vec<u8>>,
    is_authenticated: bool,
    expects: Option<u16>,
}

impl<'a> Call<'a> {
    pub(crate) const fn new(method: Method, path: &'a [&'a str]) -> Self {
        Self { method, path, query: Vec::new(), body: None, is_authenticated: true, expects: None }
    }

    pub(crate) const fn get(path: &'a [&'a str]) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn query(mut self, name: &'static str, value: &impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// Adds a JSON body.
    pub(crate) fn body(mut self, body: &impl serde::Serialize) -> Result<Self, ApiError> {
        let body = serde_json::to_vec(body).map_err(|_| {
            ApiError::new(ApiErrorKind::Refused, "the request cannot be written as JSON")
        })?;
        self.body = Some(body);
        Ok(self)
    }

    /// Leaves the key out.
    pub(crate) const fn without_key(mut self) -> Self {
        self.is_authenticated = false;
        self
    }

    /// Takes this status for an answer, though it is not 2xx.
    pub(crate) const fn expecting(mut self, status: u16) -> Self {
        self.expects = Some(status);
        self
    }
}

/// A call that went wrong, and whether it may have had an effect.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: ApiError,
    pub(crate) effect: Effect,
}

impl Failure {
    const fn possible(error: ApiError) -> Self {
        Self { error, effect: Effect::Possible }
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

impl From<Failure> for SubmitError {
    fn from(failure: Failure) -> Self {
        match failure.effect {
            Effect::None => Self::Refused(failure.error),
            Effect::Possible => Self::Unanswered(failure.error),
        }
    }
}

/// Why there is no answer at all.
enum Trouble {
    /// No request could be made of the call.
    NotSent(String),
    /// The name or the connection could not be had: nothing was sent.
    NoConnection(String),
    /// The connection broke before an answer.
    Broken(String),
    /// The deadline came first.
    Late,
}

impl Trouble {
    fn into_failure(self) -> Failure {
        let (kind, message, effect) = match self {
            Self::NotSent(message) => (ApiErrorKind::Refused, message, Effect::None),
            Self::NoConnection(message) => (ApiErrorKind::Unavailable, message, Effect::None),
            Self::Broken(message) => (ApiErrorKind::Unavailable, message, Effect::Possible),
            Self::Late => {
                let message = "no answer came in time".to_owned();
                (ApiErrorKind::Unavailable, message, Effect::Possible)
            }
        };
        Failure { error: ApiError::new(kind, &message), effect }
    }
}

/// The causes of a connection's trouble on one line, without the URL.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    error_body::clean(&text, TROUBLE_CHARS_MAX)
}
