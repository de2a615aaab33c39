//! Results in a bucket of Amazon S3.
//!
//! An object is put by one request: `PutObject` with `If-None-Match: *` and its SHA-256, which S3
//! checks, keeps and gives to whoever asks. Nothing is looked up before. What S3 answers decides:
//!
//! | answer | what it means | what is done |
//! |---|---|---|
//! | 200 | written by this call | `Now` |
//! | 412 | an object lies there, perhaps our own whose answer was lost | it is read: `Already` |
//! | 409 `ConditionalRequestConflict` | somebody else is changing this key | asked again, in bounds |
//! | no answer, 5xx, `SlowDown` | the object may have been written | asked again, in bounds |
//!
//! A repeated put therefore never makes a second object, nor a second `Object Created` event.
//!
//! The credentials need `s3:PutObject` and `s3:GetObject` on the objects and `s3:ListBucket` on
//! the bucket, the last one without a condition on the prefix: S3 answers 403 instead of 404 for
//! an absent object to those who may not list, and then [`read`](domain::ports::Results::read) is
//! `Denied` where it would be `None`. Encryption is the bucket's own default. Directory buckets
//! (S3 Express) list in no order and are not supported.

mod failure;
mod keys;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use domain::limits::LIST_PAGES_MAX;
use domain::object::check_key;
use domain::ports::{Clock, PortError};
use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum, S3ConditionalPut};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path as Location;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, RetryConfig};
use reqwest::redirect::Policy;

use crate::error::store_error;
use crate::store::{ObjectResults, Place};

pub(crate) use failure::failure_in;
use settings::check;
pub use settings::{S3Error, S3Settings, S3Tempo};

/// Most keys in one answer of a listing. Source: Amazon S3, `ListObjectsV2`, `max-keys`.
const LIST_KEYS_MAX: usize = 1_000;
/// How long an idle connection is kept: shorter than S3 keeps it.
const IDLE_MAX: Duration = Duration::from_secs(10);

impl ObjectResults {
    /// A store in a bucket. Asks nothing of S3. `clock` tells when credentials expire.
    ///
    /// # Errors
    /// When a setting cannot be right, see [`S3Error`].
    pub fn on_s3(settings: &S3Settings, clock: Arc<dyn Clock>) -> Result<Self, S3Error> {
        let prefix = check(settings)?;
        let client = client(settings, clock).map_err(S3Error::Client)?;
        let store = PrefixStore::new(client.clone(), Location::from(prefix.as_str()));
        let start = if prefix.is_empty() { prefix } else { format!("{prefix}/") };
        let bucket = Bucket { client, start };
        Ok(Self::new(Arc::new(store), Place::Bucket(Arc::new(bucket))))
    }
}

fn client(settings: &S3Settings, clock: Arc<dyn Clock>) -> object_store::Result<AmazonS3> {
    let tempo = settings.tempo;
    let retry = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: tempo.pause,
            max_backoff: tempo.pause_max,
            base: 2.0,
        },
        max_retries: tempo.retries,
        retry_timeout: tempo.retrying,
    };
    let is_plain = settings.endpoint.as_deref().is_some_and(|url| url.starts_with("http://"));
    let http = tls::client()
        // A put that is sent elsewhere would arrive there as a reading of something else.
        .redirect(Policy::none())
        .https_only(!is_plain)
        .http1_only()
        .connect_timeout(tempo.connect)
        .timeout(tempo.attempt)
        .pool_idle_timeout(IDLE_MAX)
        // Bytes are kept and counted as they are.
        .no_gzip()
        .build()
        .map_err(|error| object_store::Error::Generic { store: "S3", source: error.into() })?;
    let builder = AmazonS3Builder::new()
        .with_bucket_name(&settings.bucket)
        .with_region(&settings.region)
        .with_credentials(Arc::new(keys::Keys::new(settings.credentials.clone(), clock)))
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_checksum_algorithm(Checksum::SHA256)
        .with_disable_tagging(true)
        .with_retry(retry)
        .with_http_connector(failure::JudgingConnector(http));
    let (url, names_bucket) = settings.url();
    builder.with_endpoint(url).with_virtual_hosted_style_request(names_bucket).build()
}

/// What listing a bucket needs: `object_store`'s common part lists folders only, S3 any beginning
/// of a key.
#[derive(Debug)]
pub(crate) struct Bucket {
    client: AmazonS3,
    /// What comes before each key, with its slash; may be empty.
    start: String,
}

impl Bucket {
    /// Lists keys under a prefix that come after `after`, in order, at most `limit`. Objects that
    /// are none of the layout's are passed over.
    pub(crate) async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, PortError> {
        const OPERATION: &str = "list";
        let prefix = format!("{}{prefix}", self.start);
        let mut options = PaginatedListOptions {
            offset: after.map(|after| format!("{}{after}", self.start)),
            ..PaginatedListOptions::default()
        };
        let mut keys = Vec::new();
        for _ in 0..LIST_PAGES_MAX {
            let wanted = limit.saturating_sub(keys.len());
            if wanted == 0 {
                break;
            }
            options.max_keys = Some(wanted.min(LIST_KEYS_MAX));
            let page = self
                .client
                .list_paginated(Some(&prefix), options.clone())
                .await
                .map_err(|error| store_error(OPERATION, error))?;
            let found = page.result.objects.iter().map(|object| object.location.as_ref());
            keys.extend(
                found
                    .filter(|key| key.starts_with(&prefix))
                    .filter_map(|key| key.strip_prefix(&self.start))
                    .filter(|key| check_key(key).is_ok())
                    .map(str::to_owned),
            );
            options.page_token = page.page_token;
            if options.page_token.is_none() {
                break;
            }
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests;
