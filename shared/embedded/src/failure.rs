//! Trouble of the file, and what a caller should do about it.

use std::sync::Arc;

use domain::ports::{ErrorKind, PortError};
use rusqlite::ErrorCode;

use crate::connection::OpenError;

/// Why an operation has no outcome.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Failure {
    /// `SQLite` refused this operation alone.
    #[error("SQLite refused the operation")]
    Operation(#[source] Arc<rusqlite::Error>),
    /// The group's transaction did not commit.
    #[error("the transaction was not committed")]
    Commit(#[source] Arc<rusqlite::Error>),
    /// The file could not be opened again.
    #[error("the file could not be opened again")]
    Reopen(#[source] Arc<OpenError>),
    /// The store's threads have ended.
    #[error("the store is closed")]
    Closed,
}

impl Failure {
    /// The failure as the port reports it.
    pub(crate) fn into_port(self, port: &'static str, operation: &'static str) -> PortError {
        let kind = match &self {
            Self::Operation(error) | Self::Commit(error) => kind_of(error),
            Self::Reopen(_) | Self::Closed => ErrorKind::Unavailable,
        };
        PortError::new(port, operation, kind).with_source(self)
    }
}

fn kind_of(error: &rusqlite::Error) -> ErrorKind {
    // What the file holds is not of its column's type, or no Unicode.
    if matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::Utf8Error(..)
    ) {
        return ErrorKind::Corrupt;
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => ErrorKind::Denied,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => ErrorKind::Corrupt,
        _ => ErrorKind::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn each_trouble_says_what_to_do() {
        for (code, kind) in [
            (ffi::SQLITE_BUSY, ErrorKind::Unavailable),
            (ffi::SQLITE_FULL, ErrorKind::Unavailable),
            (ffi::SQLITE_IOERR_FSYNC, ErrorKind::Unavailable),
            (ffi::SQLITE_CANTOPEN, ErrorKind::Unavailable),
            (ffi::SQLITE_READONLY, ErrorKind::Denied),
            (ffi::SQLITE_PERM, ErrorKind::Denied),
            (ffi::SQLITE_CORRUPT, ErrorKind::Corrupt),
            (ffi::SQLITE_NOTADB, ErrorKind::Corrupt),
        ] {
            let error = Arc::new(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
            for failure in [Failure::Operation(Arc::clone(&error)), Failure::Commit(error)] {
                let error = failure.into_port("ledger", "write");
                assert_eq!((error.port, error.operation, error.kind), ("ledger", "write", kind));
            }
        }
        assert!(Failure::Closed.into_port("queue", "send").is_transient());
    }
}
