//! What all adapters of AWS share: one configuration, time-outs, retries, and what an error means.
//!
//! - [`from_environment`] makes the configuration of a function from the variables that Lambda
//!   sets; `from_profile` (feature `profiles`) looks in all places where a person may keep
//!   credentials. Every client made of one configuration shares its connections and TLS roots.
//! - [`Patience`] bounds how long one call may take, attempts and pauses included.
//! - [`port_error`] makes the error of a port from the SDK's, once, in the adapter: the SDK's own
//!   texts say "service error", and its `Debug` shows whole answers.
//!
//! This crate knows no service. It reads no variable by itself, but for the proxies'
//! (`HTTPS_PROXY` and its like) and, unless `AWS_CA_BUNDLE` is set, `SSL_CERT_FILE` and
//! `SSL_CERT_DIR`, which the libraries below read.

mod codes;
mod environment;
mod error;
mod http;
mod patience;
#[cfg(feature = "profiles")]
mod profile;
mod roots;

pub use aws_types::SdkConfig;
pub use environment::{EnvironmentError, Problem, from_environment};
pub use error::{classify, port_error};
pub use patience::Patience;
#[cfg(feature = "profiles")]
pub use profile::from_profile;
pub use roots::RootsError;
