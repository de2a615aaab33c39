//! Reading of bodies: never past the deadline, never past the cap.

use domain::ports::{ApiError, ApiErrorKind};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use crate::room::{Room, Taken};

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

/// Reads a body into `bytes`, decompressed, up to `bytes_max`, as far as there is room. What was
/// read before it was cut stays in `bytes`.
pub(crate) async fn read_into(
    bytes: &mut Vec<u8>,
    response: &mut Response,
    bytes_max: usize,
    room: &Room,
    deadline: Instant,
) -> Result<(), Cut> {
    let mut taken = Taken::default();
    loop {
        let Ok(chunk) = timeout_at(deadline, response.chunk()).await else {
            return Err(Cut::Late);
        };
        match chunk {
            Ok(Some(chunk)) if bytes.len().saturating_add(chunk.len()) > bytes_max => {
                return Err(Cut::TooLarge);
            }
            Ok(Some(chunk)) => {
                let made = room.make(&mut taken, bytes.len() + chunk.len());
                timeout_at(deadline, made).await.map_err(|_| Cut::Late)?;
                bytes.extend_from_slice(&chunk);
            }
            Ok(None) => {
                taken.keep(bytes.len());
                return Ok(());
            }
            Err(_) => return Err(Cut::Broken),
        }
    }
}
