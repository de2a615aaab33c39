//! Reading of bodies: never past the deadline, never past the cap.

use domain::ports::{ApiError, ApiErrorKind};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

/// Why a body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It is larger than the cap.
    TooLarge,
    /// The deadline came first.
    Late,
    /// The connection or the compressed stream broke.
    Broken,
}

impl Cut {
    pub(crate) fn error(self, status: u16) -> ApiError {
        let (kind, message) = match self {
            Self::TooLarge => (ApiErrorKind::TooLarge, "the answer is larger than allowed"),
            Self::Late => (ApiErrorKind::Unavailable, "the answer did not end in time"),
            Self::Broken => (ApiErrorKind::Unavailable, "the answer broke off"),
        };
        ApiError { status: Some(status), ..ApiError::new(kind, message) }
    }
}

/// Reads a body into `bytes`, decompressed, up to `bytes_max`. What was read before it was cut
/// stays in `bytes`.
pub(crate) async fn read_into(
    bytes: &mut Vec<u8>,
    response: &mut Response,
    bytes_max: usize,
    deadline: Instant,
) -> Result<(), Cut> {
    loop {
        let Ok(chunk) = timeout_at(deadline, response.chunk()).await else {
            return Err(Cut::Late);
        };
        match chunk {
            Ok(Some(chunk)) if bytes.len().saturating_add(chunk.len()) > bytes_max => {
                return Err(Cut::TooLarge);
            }
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return Ok(()),
            Err(_) => return Err(Cut::Broken),
        }
    }
}
