//! Signing secrets and the API key in AWS Secrets Manager.
//!
//! - [`AwsSecrets`] is the receiver's source of signing secrets: of each secret that it is told of,
//!   the versions labelled `AWSCURRENT` and `AWSPENDING`, and for a grace time `AWSPREVIOUS`.
//! - [`ApiKeySource`] reads the account's API key, to be read again when the platform refuses it.
//!
//! - [`AwsVault`] is where a rotation puts a new secret and makes it the current one.
//!
//! The first two read with `secretsmanager:GetSecretValue` on the named secrets and need no other
//! action (and `kms:Decrypt`, where a key of the account's own encrypts them). None keeps what it
//! read: when to read again is the business of `domain::keyring` and of whoever holds the key.
//! docs/secrets.md tells operators what to store and how.

mod api_key;
mod begin;
mod secrets;
mod since;
#[cfg(feature = "testing")]
pub mod testing;
mod vault;
mod version;

pub use api_key::{ApiKeySource, ApiKeyText};
pub use begin::Begun;
pub use secrets::AwsSecrets;
pub use since::instant_of as promoted_at;
pub use vault::AwsVault;
