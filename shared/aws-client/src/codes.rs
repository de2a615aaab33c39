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

/// What the caller should do about an error that AWS answered with.
pub(crate) fn kind(code: Option<&str>, status: u16) -> ErrorKind {
    let code = code.map(bare).unwrap_or_default();
    match (code, status) {
        (code, _) if THROTTLED.contains(&code) => ErrorKind::Throttled,
        (code, _) if DENIED.contains(&code) || MISSING.contains(&code) => ErrorKind::Denied,
        (code, _) if UNAVAILABLE.contains(&code) => ErrorKind::Unavailable,
        (_, 429) => ErrorKind::Throttled,
        (_, 401 | 403) => ErrorKind::Denied,
        // A request of ours that is wrong is answered 4xx; all else is no answer of the service.
        (_, 400..=499) if status != 408 => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    }
}

fn bare(code: &str) -> &str {
    let code = code.rsplit(['.', '#']).next().unwrap_or(code);
    code.strip_suffix("Exception").unwrap_or(code)
}
