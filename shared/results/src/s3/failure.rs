//! What S3 says when it refuses a request, or that it says nothing, and what follows from it.
//!
//! `object_store` judges by the status alone, takes every 409 for an object that is there, every
//! 404 for one that is not, and puts whole answers into its errors. Here each answer is judged by
//! S3's own code first.

use std::error::Error;

use async_trait::async_trait;
use domain::ports::ErrorKind;
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Collected, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};

/// Most bytes that are read of an answer that refuses; S3's have some hundred.
const BODY_BYTES_MAX: usize = 64 * 1_024;
/// Most characters kept of a message, a code or an id.
const TEXT_CHARS_MAX: usize = 300;
/// Codes that ask to slow down, whatever their status.
const THROTTLED: [&str; 5] =
    ["SlowDown", "TooManyRequests", "RequestLimitExceeded", "Throttling", "ThrottlingException"];
/// Codes below 500 about a request that was damaged or cut on its way, or met another one.
const PASSING: [&str; 9] = [
    "BadDigest",
    "ConditionalRequestConflict",
    "IncompleteBody",
    "InvalidDigest",
    "OperationAborted",
    "RequestTimeout",
    "XAmzContentChecksumMismatch",
    "XAmzContentSHA256Mismatch",
    "KMS.ThrottlingException",
];
/// Codes below 500, and neither 401 nor 403, that tell of credentials, region or bucket.
const TO_MEND: [&str; 8] = [
    "AuthorizationHeaderMalformed",
    "ExpiredToken",
    "IllegalLocationConstraintException",
    "InvalidBucketName",
    "InvalidToken",
    "KMS.DisabledException",
    "KMS.NotFoundException",
    "TokenRefreshRequired",
];

/// What S3 said; nothing of the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("S3 answered {} with {code}: {message} (request {request_id})", status.as_u16())]
pub(crate) struct Refusal {
    status: StatusCode,
    code: String,
    message: String,
    request_id: String,
}

impl Refusal {
    /// Reads an answer that refuses.
    async fn read(response: HttpResponse) -> Self {
        let (parts, body) = response.into_parts();
        let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
        let body = body.map(Collected::to_bytes).unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        let text = |name| element(&body, name).map(|text| shorten(&text));
        let request_id = header("x-amz-request-id").map(shorten);
        Self {
            status: parts.status,
            code: text("Code").unwrap_or_else(|| "without a code".to_owned()),
            message: text("Message").unwrap_or_else(|| "no message".to_owned()),
            request_id: request_id.or_else(|| text("RequestId")).unwrap_or_default(),
        }
    }

    /// What a caller should do.
    pub(crate) fn kind(&self) -> ErrorKind {
        let code = self.code.as_str();
        if self.status == StatusCode::TOO_MANY_REQUESTS || THROTTLED.contains(&code) {
            ErrorKind::Throttled
        } else if self.status.is_server_error()
            || self.status == StatusCode::REQUEST_TIMEOUT
            || PASSING.contains(&code)
        {
            // A service that cannot do what was asked never will.
            let is_never = self.status == StatusCode::NOT_IMPLEMENTED;
            if is_never { ErrorKind::Invalid } else { ErrorKind::Unavailable }
        } else if matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
            || self.status.is_redirection()
            // An absent object has a code of its own: this is the bucket, or not S3 at all.
            || self.status == StatusCode::NOT_FOUND
            || TO_MEND.contains(&code)
        {
            ErrorKind::Denied
        } else {
            ErrorKind::Invalid
        }
    }

    /// Whether this is an expected outcome, which the status alone tells.
    fn is_outcome(&self) -> bool {
        match self.status {
            StatusCode::PRECONDITION_FAILED => true,
            StatusCode::NOT_FOUND => self.code == "NoSuchKey",
            _ => false,
        }
    }
}

/// The text between two tags of S3's error, which nests nothing of interest.
fn element(body: &str, name: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    Some(plain.iter().fold(text.to_owned(), |text, (escape, c)| text.replace(escape, c)))
}

fn shorten(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect()
}

/// Why a request failed: what S3 said, or that no whole answer came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Refused(Refusal),
    /// What the network said at last; `object_store` tells it once for each layer.
    #[error("S3 gave no whole answer: {0}")]
    Unanswered(String),
}

impl Failure {
    /// What a caller should do.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(refusal) => refusal.kind(),
            Self::Unanswered(_) => ErrorKind::Unavailable,
        }
    }
}

/// Why a request to S3 failed, out of an error of `object_store`; `None` when it is another's.
pub(crate) fn failure_in(error: &object_store::Error) -> Option<Failure> {
    let mut is_of_http = false;
    let mut last = None;
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(refusal) = error.downcast_ref::<Refusal>() {
            return Some(Failure::Refused(refusal.clone()));
        }
        is_of_http |= error.is::<HttpError>();
        last = Some(error);
        cause = error.source();
    }
    last.filter(|_| is_of_http).map(|error| Failure::Unanswered(shorten(&error.to_string())))
}

/// Sends by this client, whatever the options say, and judges the answers.
#[derive(Debug)]
pub(super) struct JudgingConnector(pub(super) reqwest::Client);

impl HttpConnector for JudgingConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Judging(HttpClient::new(self.0.clone()))))
    }
}

#[derive(Debug)]
struct Judging(HttpClient);

#[async_trait]
impl HttpService for Judging {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_put = request.method() == Method::PUT;
        let response = match self.0.execute(request).await {
            Ok(response) => response,
            // Our puts find what an earlier attempt wrote: they may be repeated after any trouble.
            Err(error) if is_put && is_cut_off(error.kind()) => {
                return Err(HttpError::new(HttpErrorKind::Request, error));
            }
            Err(error) => return Err(error),
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let refusal = Refusal::read(response).await;
        if refusal.is_outcome() {
            let mut outcome = HttpResponse::new(HttpResponseBody::from(Vec::new()));
            *outcome.status_mut() = refusal.status;
            return Ok(outcome);
        }
        let is_passing = matches!(refusal.kind(), ErrorKind::Throttled | ErrorKind::Unavailable);
        // What `object_store` asks again for, and what it gives up at once.
        let kind = if is_passing { HttpErrorKind::Request } else { HttpErrorKind::Unknown };
        Err(HttpError::new(kind, refusal))
    }
}

const fn is_cut_off(kind: HttpErrorKind) -> bool {
    matches!(kind, HttpErrorKind::Timeout | HttpErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
