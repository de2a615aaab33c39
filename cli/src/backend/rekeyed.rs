//! The API key, read again when the platform refuses it.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{
    ApiError, ApiErrorKind, Clock, ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage,
    SubmitError,
};
use domain::request::JobRequest;
use domain::time::{Timestamp, between};
use scraper_api::{ApiKey, ScraperApi};
use settings::{SecretText, Settings};

use crate::error::CliError;
use crate::exit::Exit;
use crate::serve::KeyPlace;

/// Largest key file, in bytes: white space around the longest key.
const KEY_FILE_BYTES_MAX: u64 = 4_096;
/// Status with which the platform refuses a key.
const UNAUTHORIZED: u16 = 401;
/// How to give a key.
const HOW: &str = "put the key into a file that only you can read and name it with --api-key-file, \
                   or set GLEANER_API_KEY";

/// Where the API key is.
#[derive(Debug, Clone)]
pub(crate) struct KeySource {
    file: Option<PathBuf>,
    value: Option<SecretText>,
    cooldown: Duration,
}

impl KeySource {
    /// As the settings say; a file goes before a value.
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            file: settings.api_key_file.clone(),
            value: settings.api_key.clone(),
            cooldown: settings.limits.secret_cooldown,
        }
    }

    /// Where the key is, for whoever has to mend it.
    pub(crate) fn place(&self) -> KeyPlace {
        match &self.file {
            Some(file) => KeyPlace {
                place: file.display().to_string(),
                how: "put the right key into the file, which is read again",
            },
            None => KeyPlace {
                place: "GLEANER_API_KEY".to_owned(),
                how: "set the right one and start again",
            },
        }
    }

    /// Reads the key.
    ///
    /// # Errors
    /// When there is none, or it is none, or others may read its file.
    pub(crate) fn load(&self) -> Result<ApiKey, CliError> {
        match (&self.file, &self.value) {
            (Some(file), _) => read_key(file),
            (None, Some(value)) => ApiKey::parse(value.expose()).map_err(|error| {
                CliError::new(Exit::Configuration, "the setting `api_key` is wrong").because(error)
            }),
            (None, None) => {
                Err(CliError::new(Exit::Configuration, "there is no API key").hint(HOW))
            }
        }
    }
}

fn read_key(path: &Path) -> Result<ApiKey, CliError> {
    let trouble = |what: &str| {
        CliError::new(Exit::Configuration, format!("the key file `{}` {what}", path.display()))
    };
    let unreadable = |error: std::io::Error| trouble("cannot be read").because(error).hint(HOW);
    // Before it is opened, because opening a pipe waits for its other end.
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(trouble("is not a regular file").hint(HOW));
    }
    if is_open_to_others(&metadata) {
        return Err(
            trouble("is open to other users").hint(format!("run `chmod 600 {}`", path.display()))
        );
    }
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(KEY_FILE_BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
    ApiKey::parse(&text).map_err(|error| trouble("holds no usable key").because(error))
}

#[cfg(unix)]
fn is_open_to_others(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_metadata: &std::fs::Metadata) -> bool {
    false
}

/// The API with a key that may change while the process runs: a call that is refused with 401 is
/// made once more after the key was read again, at most once per cool-down.
pub(crate) struct Rekeyed {
    api: Arc<ScraperApi>,
    source: KeySource,
    clock: Arc<dyn Clock>,
    read_at: Mutex<Option<Timestamp>>,
}

impl Rekeyed {
    /// Wraps the client. Nothing is sent.
    pub(crate) fn new(api: &Arc<ScraperApi>, source: KeySource, clock: Arc<dyn Clock>) -> Self {
        Self { api: Arc::clone(api), source, clock, read_at: Mutex::new(None) }
    }

    /// Whether another try makes sense: the key was refused and has been read again.
    async fn has_new_key(&self, error: &ApiError) -> bool {
        let is_refusal = error.kind == ApiErrorKind::Denied && error.status == Some(UNAUTHORIZED);
        if !is_refusal || self.source.file.is_none() || !self.claim() {
            return false;
        }
        let source = self.source.clone();
        match tokio::task::spawn_blocking(move || source.load()).await {
            Ok(Ok(key)) => {
                self.api.set_key(key);
                tracing::info!("the API key was refused and has been read again");
                true
            }
            Ok(Err(error)) => {
                tracing::warn!(error = %error.render(), "the API key cannot be read again");
                false
            }
            Err(_) => false,
        }
    }

    /// One caller per cool-down gets to read.
    fn claim(&self) -> bool {
        let now = self.clock.now();
        let mut read_at = self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = read_at.is_none_or(|at| between(at, now) >= self.source.cooldown || at > now);
        if is_due {
            *read_at = Some(now);
        }
        is_due
    }
}

#[async_trait]
impl Jobs for Rekeyed {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        match self.api.extract(job_id, within).await {
            Err(error) if self.has_new_key(&error).await => self.api.extract(job_id, within).await,
            answer => answer,
        }
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        match self.api.parent(key, page, within).await {
            Err(error) if self.has_new_key(&error).await => {
                self.api.parent(key, page, within).await
            }
            answer => answer,
        }
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        match self.api.submit(request, within).await {
            // A refused POST had no effect, so that another one is the first.
            Err(SubmitError::Refused(error)) if self.has_new_key(&error).await => {
                self.api.submit(request, within).await
            }
            answer => answer,
        }
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        match self.api.list(kind, query, within).await {
            Err(error) if self.has_new_key(&error).await => {
                self.api.list(kind, query, within).await
            }
            answer => answer,
        }
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        match self.api.probe(within).await {
            Err(error) if self.has_new_key(&error).await => self.api.probe(within).await,
            answer => answer,
        }
    }
}

#[cfg(test)]
mod tests;
