//! How long a call may take.

use std::time::Duration;

use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;

/// Time for a connection, TLS included, to be opened. Within a region it takes milliseconds; the
/// rest is for a lost packet, which is sent again after a second.
const CONNECT: Duration = Duration::from_secs(1);
/// Mean of the first pause between two attempts; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long one call of an AWS service may take, and how often it is tried.
///
/// When `operation` is over, the call ends with an error, also in the middle of a pause. A longer
/// call, such as a long poll, needs time-outs of its own in its adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Until the connection is open.
    pub connect: Duration,
    /// Until one attempt is answered, the connection included.
    pub attempt: Duration,
    /// Until all attempts and the pauses between them are over.
    pub operation: Duration,
    /// Attempts of one call, the first included; at least 1, at most [`Patience::ATTEMPTS_MAX`].
    pub attempts: u32,
}

impl Patience {
    /// Most attempts of one call, whatever is asked for: more would only repeat what the caller's
    /// own next try does.
    pub const ATTEMPTS_MAX: u32 = 5;

    /// For somebody who waits for an answer: a lost attempt leaves time for another one within the
    /// receiver's deadline of 2.5 s.
    pub const RECEIVER: Self = Self {
        connect: CONNECT,
        attempt: Duration::from_millis(1_200),
        operation: Duration::from_secs(2),
        attempts: 3,
    };

    /// For work that nobody waits for, within a function's minutes: a slow answer is better than
    /// the same call once more.
    pub const WORKER: Self = Self {
        connect: CONNECT,
        attempt: Duration::from_secs(5),
        operation: Duration::from_secs(12),
        attempts: 3,
    };

    pub(crate) fn timeouts(self) -> TimeoutConfig {
        TimeoutConfig::builder()
            .connect_timeout(self.connect)
            .read_timeout(self.attempt)
            .operation_attempt_timeout(self.attempt)
            .operation_timeout(self.operation)
            .build()
    }

    pub(crate) fn retries(self) -> RetryConfig {
        RetryConfig::standard()
            .with_max_attempts(self.attempts.clamp(1, Self::ATTEMPTS_MAX))
            .with_initial_backoff(FIRST_PAUSE)
            .with_max_backoff(LONGEST_PAUSE)
    }
}
