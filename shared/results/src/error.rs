use std::error::Error;
use std::io;
use std::path::PathBuf;

use domain::ports::{ErrorKind, PortError};

/// Why a folder cannot hold results.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is a file in its place.
    #[error("{} is not a folder: choose another place for the results", path.display())]
    NotAFolder {
        /// The place.
        path: PathBuf,
    },
    /// The folder is not there and cannot be made.
    #[error("the folder {} cannot be created", path.display())]
    Create {
        /// The place.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nothing can be written into it.
    #[error("the folder {} cannot be written to: check its owner and permissions", path.display())]
    NotWritable {
        /// The place.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file system cannot do what putting an object only once needs.
    #[error(
        "the file system of {} has no hard links, without which a result could be overwritten: \
         choose a place on another one",
        path.display()
    )]
    NoHardLinks {
        /// The place.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What crashed processes left behind cannot be looked through.
    #[error("the folder {} cannot be searched for unfinished files", path.display())]
    Search {
        /// The place.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder's path is none that the object store can use.
    #[error("the folder {} cannot be opened", path.display())]
    Open {
        /// The place.
        path: PathBuf,
        /// Why.
        source: object_store::Error,
    },
}

/// The port's error for trouble of the object store.
pub(crate) fn store_error(operation: &'static str, error: object_store::Error) -> PortError {
    // What S3 said is told instead of the request and the answer around it.
    #[cfg(feature = "aws")]
    if let Some(failure) = crate::s3::failure_in(&error) {
        return PortError::new("results", operation, failure.kind()).with_source(failure);
    }
    PortError::new("results", operation, kind_of(&error)).with_source(error)
}

/// The port's error for trouble of the disk.
pub(crate) fn disk_error(operation: &'static str, error: io::Error) -> PortError {
    PortError::new("results", operation, kind_of_io(&error)).with_source(error)
}

fn kind_of(error: &object_store::Error) -> ErrorKind {
    match error {
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => ErrorKind::Denied,
        object_store::Error::InvalidPath { .. }
        | object_store::Error::NotSupported { .. }
        | object_store::Error::NotImplemented { .. } => ErrorKind::Invalid,
        _ => io_cause(error).map_or(ErrorKind::Unavailable, kind_of_io),
    }
}

/// The I/O error at the bottom of another, if there is one.
fn io_cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io);
        }
        cause = error.source();
    }
    None
}

/// A full disk and a failing one are both somebody's to mend while we try again.
fn kind_of_io(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Denied,
        io::ErrorKind::InvalidFilename => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(kind: io::ErrorKind) -> object_store::Error {
        object_store::Error::Generic {
            store: "test",
            source: Box::new(OpenError::Create { path: "/r".into(), source: kind.into() }),
        }
    }

    #[test]
    fn the_cause_decides_what_a_caller_should_do() {
        for (kind, expected) in [
            (io::ErrorKind::StorageFull, ErrorKind::Unavailable),
            (io::ErrorKind::QuotaExceeded, ErrorKind::Unavailable),
            (io::ErrorKind::PermissionDenied, ErrorKind::Denied),
            (io::ErrorKind::ReadOnlyFilesystem, ErrorKind::Denied),
            (io::ErrorKind::InvalidFilename, ErrorKind::Invalid),
            (io::ErrorKind::Other, ErrorKind::Unavailable),
        ] {
            assert_eq!(store_error("put", generic(kind)).kind, expected, "{kind}");
            assert_eq!(disk_error("put", kind.into()).kind, expected, "{kind}");
        }
        let denied = object_store::Error::PermissionDenied { path: "a".into(), source: "".into() };
        assert_eq!(store_error("put", denied).kind, ErrorKind::Denied);
    }

    #[test]
    fn errors_say_what_to_do() {
        let error = OpenError::NotAFolder { path: "/r".into() };
        assert_eq!(error.to_string(), "/r is not a folder: choose another place for the results");
        let error =
            OpenError::NoHardLinks { path: "/r".into(), source: io::ErrorKind::Unsupported.into() };
        assert!(error.to_string().ends_with("choose a place on another one"), "{error}");
    }
}
