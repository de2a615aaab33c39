//! The SDK's errors as errors of a port.

use std::error::Error;
use std::fmt;

use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use aws_types::request_id::RequestId as _;
use domain::ports::{ErrorKind, PortError};

use crate::codes;

/// Most bytes kept of what AWS says.
const MESSAGE_BYTES_MAX: usize = 500;

/// An error that AWS answered with.
#[derive(Debug)]
struct Answered {
    status: u16,
    code: Option<String>,
    message: Option<String>,
    request_id: Option<String>,
}

impl fmt::Display for Answered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.as_deref().unwrap_or("an error without a code");
        write!(formatter, "AWS answered {} with {code}", self.status)?;
        if let Some(message) = &self.message {
            write!(formatter, ": {message}")?;
        }
        if let Some(id) = &self.request_id {
            write!(formatter, " (request {id})")?;
        }
        Ok(())
    }
}

impl Error for Answered {}

/// A call without a usable answer.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Unanswered {
    what: &'static str,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

/// The error of a port that an error of the SDK becomes: see [`classify`].
pub fn port_error<E>(
    port: &'static str,
    operation: &'static str,
    error: SdkError<E, HttpResponse>,
) -> PortError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let (kind, source) = classify(error);
    PortError::new(port, operation, kind).with_source(source)
}

/// What the caller of a port should do about an error of the SDK, and what may be said of it.
///
/// `Throttled`: the request was refused before it had an effect. `Unavailable`: no answer, half an
/// answer or a 5xx; whether the effect happened is unknown. `Denied`: credentials or permissions,
/// and tables, queues, buckets and secrets that do not exist. `Invalid`: everything else that AWS
/// refuses, and requests that cannot be built. Outcomes that an adapter expects, such as a
/// condition that does not hold, it takes out before it calls this.
///
/// The error keeps status, code, message and request id, and nothing of the request or of the
/// answer's body. Of the message it keeps the first line, because later lines may show headers of
/// the request, and no value that it quotes.
pub fn classify<E>(error: SdkError<E, HttpResponse>) -> (ErrorKind, Box<dyn Error + Send + Sync>)
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    match error {
        SdkError::ServiceError(context) => {
            let (status, meta) = (context.raw().status().as_u16(), context.err().meta());
            let answered = Answered {
                status,
                code: meta.code().map(str::to_owned),
                message: meta.message().and_then(shown),
                request_id: context.raw().request_id().map(str::to_owned),
            };
            (codes::kind(meta.code(), status), Box::new(answered))
        }
        // Its source tells of the body.
        SdkError::ResponseError(context) => {
            let status = context.raw().status().as_u16();
            let answered = Answered {
                status,
                code: Some("an answer that cannot be read".to_owned()),
                message: None,
                request_id: context.raw().request_id().map(str::to_owned),
            };
            (codes::kind(None, status), Box::new(answered))
        }
        SdkError::DispatchFailure(ref failure) => {
            let kind = if failure.is_user() { ErrorKind::Invalid } else { ErrorKind::Unavailable };
            unanswered(kind, "the call did not get through", error)
        }
        SdkError::TimeoutError(_) => {
            unanswered(ErrorKind::Unavailable, "no answer within the time-out", error)
        }
        _ => unanswered(ErrorKind::Invalid, "the request could not be made", error),
    }
}

fn unanswered<E>(
    kind: ErrorKind,
    what: &'static str,
    error: SdkError<E, HttpResponse>,
) -> (ErrorKind, Box<dyn Error + Send + Sync>)
where
    E: Error + Send + Sync + 'static,
{
    let Ok(source) = error.into_source() else { return (kind, what.into()) };
    let kind = if is_of_credentials(source.as_ref()) { ErrorKind::Denied } else { kind };
    (kind, Box::new(Unanswered { what, source }))
}

/// Whether credentials are what was lacking, other than for a moment.
fn is_of_credentials(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<CredentialsError>() {
            return !matches!(error, CredentialsError::ProviderTimedOut(_));
        }
        cause = error.source();
    }
    false
}

/// What of a message is kept.
fn shown(message: &str) -> Option<String> {
    let line = message.trim().lines().next()?;
    let line = match (line.find("Value '"), line.rfind("' at '")) {
        (Some(begin), Some(end)) if begin < end => {
            format!("{}Value{}", line.get(..begin)?, line.get(end + 1..)?)
        }
        _ => line.to_owned(),
    };
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    let end = (0..=MESSAGE_BYTES_MAX.min(line.len())).rfind(|at| line.is_char_boundary(*at))?;
    line.get(..end).filter(|line| !line.is_empty()).map(str::to_owned)
}
