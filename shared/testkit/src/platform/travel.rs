//! How an answer arrives, and what its status means.

use std::time::Duration;

use domain::backoff::parse_retry_after;
use domain::ports::{ApiError, ApiErrorKind, Clock, SubmitError};
use serde_json::Value;
use simulator::{Answer, Transport};

/// How long the pieces of a slow body take together; the simulator's server sends eight of them,
/// 120 ms apart.
const SLOW_TAKES: Duration = Duration::from_millis(960);
/// Longest `Retry-After` that is believed, as the HTTP client's default.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);

/// A call without a usable answer, and whether it may have had its effect all the same.
#[derive(Debug)]
pub(super) struct Failure {
    error: ApiError,
    may_have_effect: bool,
}

impl Failure {
    pub(super) fn error(self) -> ApiError {
        self.error
    }

    pub(super) fn submit_error(self) -> SubmitError {
        if self.may_have_effect {
            SubmitError::Unanswered(self.error)
        } else {
            SubmitError::Refused(self.error)
        }
    }

    fn unanswered(message: &str) -> Self {
        let error = ApiError::new(ApiErrorKind::Unavailable, message);
        Self { error, may_have_effect: true }
    }
}

/// Waits for an answer the way it travels, at most `within`, and reads it.
pub(super) async fn arrive(
    answer: Answer,
    within: Duration,
    clock: &dyn Clock,
) -> Result<Value, Failure> {
    let takes = match answer.transport {
        Transport::Prompt | Transport::Lost | Transport::Cut => Duration::ZERO,
        Transport::Slow => SLOW_TAKES,
        Transport::After(wait) | Transport::Hang(wait) => wait,
    };
    if !takes.is_zero() {
        clock.sleep(takes.min(within)).await;
    }
    let is_late = takes >= within;
    let retry_after = answer
        .retry_after
        .as_deref()
        .and_then(|text| parse_retry_after(text, clock.now(), RETRY_AFTER_MAX));
    match answer.transport {
        // The head came before the slow body.
        Transport::Slow if is_late => {
            headed(answer.status, retry_after, "the answer did not end in time")
        }
        _ if is_late => Err(Failure::unanswered("no answer came in time")),
        Transport::Lost | Transport::Hang(_) => {
            Err(Failure::unanswered("the connection broke before an answer"))
        }
        Transport::Cut => headed(answer.status, retry_after, "the answer broke off"),
        Transport::Prompt | Transport::After(_) | Transport::Slow => {
            read(answer.status, answer.body, retry_after)
        }
    }
}

/// Reads an answer of which the head came, and the body did not come whole.
fn headed(status: u16, retry_after: Option<Duration>, trouble: &str) -> Result<Value, Failure> {
    if (200..300).contains(&status) {
        let mut failure = Failure::unanswered(trouble);
        failure.error.status = Some(status);
        return Err(failure);
    }
    // What is left of an error's body says nothing; its status was read.
    read(status, None, retry_after)
}

/// Reads a whole answer: its body, or what its status and error body mean.
pub(super) fn read(
    status: u16,
    body: Option<Value>,
    retry_after: Option<Duration>,
) -> Result<Value, Failure> {
    if (200..300).contains(&status) {
        return body.ok_or_else(|| {
            let error = ApiError::new(ApiErrorKind::Unreadable, "the answer is empty");
            Failure { error: ApiError { status: Some(status), ..error }, may_have_effect: true }
        });
    }
    let body = body.unwrap_or_default();
    // A failed extraction has its error one level down.
    let said = body.get("error").unwrap_or(&body);
    let text = |name: &str| said.get(name).and_then(Value::as_str);
    let error = ApiError {
        status: Some(status),
        code: text("code").map(ToOwned::to_owned),
        retryable: said.get("retryable").and_then(Value::as_bool),
        retry_after,
        correlation_id: text("correlation_id").map(ToOwned::to_owned),
        ..ApiError::new(kind_of(status), text("message").unwrap_or_default())
    };
    Err(Failure { error, may_have_effect: may_have_effect(status) })
}

const fn kind_of(status: u16) -> ApiErrorKind {
    match status {
        401 | 403 => ApiErrorKind::Denied,
        402 => ApiErrorKind::PaymentRequired,
        404 | 410 => ApiErrorKind::Missing,
        408 | 425 | 500..=599 => ApiErrorKind::Unavailable,
        429 => ApiErrorKind::Throttled,
        300..=499 => ApiErrorKind::Refused,
        _ => ApiErrorKind::Unreadable,
    }
}

/// Whether a POST with this status may have been taken all the same: most of 4xx, and 503, say
/// that it was not.
const fn may_have_effect(status: u16) -> bool {
    match status {
        303 | 408 => true,
        300..=499 | 503 => false,
        _ => true,
    }
}
