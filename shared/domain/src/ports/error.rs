use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Trouble of a ledger, queue, result store or secret source. Built by adapters only.
pub struct PortError {
    /// The port, such as `ledger`.
    pub port: &'static str,
    /// The operation, such as `write`.
    pub operation: &'static str,
    /// What the caller should do.
    pub kind: ErrorKind,
    /// How long to wait at least, if the other side said so.
    pub retry_after: Option<Duration>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What a caller should do about a [`PortError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Slow down and try again.
    Throttled,
    /// Try again later; whether the effect happened is unknown.
    Unavailable,
    /// Mend credentials or permissions.
    Denied,
    /// Stored data does not decode: look at the key that is named.
    Corrupt,
    /// We sent something wrong: a bug.
    Invalid,
}

impl ErrorKind {
    /// The kind in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::Denied => "denied",
            Self::Corrupt => "corrupt",
            Self::Invalid => "invalid",
        }
    }
}

impl PortError {
    /// An error without a cause below it.
    pub const fn new(port: &'static str, operation: &'static str, kind: ErrorKind) -> Self {
        Self { port, operation, kind, retry_after: None, source: None }
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error with the wait that the other side asked for.
    #[must_use]
    pub const fn with_retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// Whether the same call may succeed later without anybody mending something.
    pub const fn is_transient(&self) -> bool {
        matches!(self.kind, ErrorKind::Throttled | ErrorKind::Unavailable)
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}: {}", self.port, self.operation, self.kind.as_str())
    }
}

impl fmt::Debug for PortError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PortError({self}")?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(formatter, ": {error}")?;
            cause = error.source();
        }
        formatter.write_str(")")
    }
}

impl Error for PortError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| -> &(dyn Error + 'static) { source })
    }
}
