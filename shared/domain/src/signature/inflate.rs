//! Content codings: which one, and undoing it within hard caps.

use std::io::{ErrorKind, Read as _};

use flate2::read::MultiGzDecoder;

use super::Headers;
use super::verdict::Reason;

/// Largest inflated body, in bytes: 64 MiB. Twice the largest body that is received as it is.
pub const INFLATED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Largest ratio of inflated to received bytes. Scraped pages compress by 5 to 20.
pub const INFLATE_RATIO_MAX: usize = 100;

/// A content coding that can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
}

impl Coding {
    /// Reads `Content-Encoding`; absent and `identity` are the same.
    pub(super) fn of(headers: &dyn Headers) -> Result<Self, Reason> {
        let mut coding = Self::Identity;
        for value in headers.values("content-encoding") {
            let value = value.trim_ascii();
            if value.is_empty() || value.eq_ignore_ascii_case(b"identity") {
                continue;
            }
            let is_gzip =
                value.eq_ignore_ascii_case(b"gzip") || value.eq_ignore_ascii_case(b"x-gzip");
            // Two codings on top of each other only help a bomb.
            if !is_gzip || coding == Self::Gzip {
                return Err(Reason::UnsupportedCoding);
            }
            coding = Self::Gzip;
        }
        Ok(coding)
    }
}

/// Undoes gzip. Never allocates more than the caps allow.
pub(super) fn inflate(body: &[u8]) -> Result<Vec<u8>, Reason> {
    let limit = INFLATED_BYTES_MAX.min(body.len().saturating_mul(INFLATE_RATIO_MAX));
    let mut inflated = Vec::new();
    let cap = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    match MultiGzDecoder::new(body).take(cap).read_to_end(&mut inflated) {
        Ok(_) if inflated.len() > limit => Err(Reason::BodyTooLarge),
        Ok(_) => Ok(inflated),
        Err(error) if error.kind() == ErrorKind::OutOfMemory => Err(Reason::BodyTooLarge),
        Err(_) => Err(Reason::MalformedCoding),
    }
}
