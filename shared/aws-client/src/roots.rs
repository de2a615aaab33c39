//! Whom TLS trusts.

use std::path::{Path, PathBuf};

use aws_smithy_http_client::tls::TrustStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// Largest file of roots, in bytes. Mozilla's whole list has a quarter of it.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Why the file that `AWS_CA_BUNDLE` names cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// It cannot be read.
    #[error("the certificates in {path} cannot be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It is too long to be a list of roots.
    #[error("the file of certificates {path} is longer than 1 MiB")]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It holds no certificate, or something that is none.
    #[error("{path} is no list of certificates in PEM form")]
    NotCertificates {
        /// The file.
        path: PathBuf,
    },
}

/// The system's roots, or those of one file and no others.
pub(crate) fn trusted(bundle: Option<&Path>) -> Result<TrustStore, RootsError> {
    let Some(path) = bundle else { return Ok(TrustStore::default()) };
    let unreadable = |source| RootsError::Unreadable { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(unreadable)?.len() > FILE_BYTES_MAX {
        return Err(RootsError::TooLong { path: path.to_owned() });
    }
    let pem = std::fs::read(path).map_err(unreadable)?;
    // Checked here, because the HTTP client panics on what it cannot parse.
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let is_usable = certificates.is_ok_and(|certificates| {
        !certificates.is_empty()
            && certificates.iter().all(|der| webpki::anchor_from_trusted_cert(der).is_ok())
    });
    if !is_usable {
        return Err(RootsError::NotCertificates { path: path.to_owned() });
    }
    Ok(TrustStore::empty().with_pem_certificate(pem))
}
