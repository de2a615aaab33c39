//! What AWS's error codes ask for.
//!
//! Services spell one trouble in several ways. A code is looked up without the `Exception` at its
//! end and without the namespace (`KMS.`, `AWS.SimpleQueueService.`) at its beginning. Sources:
//! the services' API references ("Errors" of each operation and "Common Errors"), and the lists
//! by which the SDK itself decides what to retry.

use domain::ports::ErrorKind;

/// Slow down: the request was refused before it had any effect.
const THROTTLED: &[&str] = &[
    "BandwidthLimitExceeded",
    "EC2Throttled",
    "KmsThrottled",
    "LimitExceeded",
    "OverLimit",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceeded",
    "RequestLimitExceeded",
    "RequestThrottled",
    "SlowDown",
    "Throttled",
    "Throttling",
    "TooManyRequests",
    "TransactionConflict",
    "TransactionInProgress",
];

/// Credentials, permissions and keys: an operator must mend something.
const DENIED: &[&str] = &[
    "AccessDenied",
    "AuthFailure",
    "DecryptionFailure",
    "Disabled",
    "EncryptionFailure",
    "ExpiredToken",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "InvalidSignature",
    "InvalidState",
    "InvalidToken",
    "KmsAccessDenied",
    "KmsDisabled",
    "KmsInvalidKeyUsage",
    "KmsInvalidState",
    "KmsNotFound",
    "KmsOptInRequired",
    "MissingAuthenticationToken",
    "NotAuthorized",
    "OptInRequired",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClient",
];

/// A table, queue, bucket or secret that is not there. A bug would be `Invalid`, and work would be
/// given up because of it; but a wrong name, region or account is an operator's to mend, like a
/// missing permission, and the work waits: `Denied`.
const MISSING: &[&str] = &[
    "InvalidAddress",
    "NoSuchBucket",
    "NonExistentQueue",
    "NotFound",
    "QueueDeletedRecently",
    "QueueDoesNotExist",
    "ResourceNotFound",
    "TableNotFound",
];

/// Trouble on AWS's side, whatever the status says.
const UNAVAILABLE: &[&str] = &[
    "InternalFailure",
    "InternalServer",
    "InternalServerError",
    "InternalServiceError",
    "RequestTimeout",
    "ServiceUnavailable",
];

/// What the caller should do about an error that AWS answered with. Without a code, it was a
/// proxy or a load balancer that answered, and not the service.
pub(crate) fn kind(code: Option<&str>, status: u16) -> ErrorKind {
    let bare = code.map(bare).unwrap_or_default();
    match status {
        _ if THROTTLED.contains(&bare) => ErrorKind::Throttled,
        _ if DENIED.contains(&bare) || MISSING.contains(&bare) => ErrorKind::Denied,
        _ if UNAVAILABLE.contains(&bare) => ErrorKind::Unavailable,
        429 => ErrorKind::Throttled,
        401 | 403 => ErrorKind::Denied,
        400..=499 if code.is_some() && status != 408 => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    }
}

fn bare(code: &str) -> &str {
    let code = code.rsplit(['.', '#']).next().unwrap_or(code);
    code.strip_suffix("Exception").unwrap_or(code)
}
