//! The receiver's source of signing secrets.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_client::SdkConfig;
use domain::ports::{Clock, ErrorKind, LoadedSecrets, PortError, SecretSource};
use domain::signature::secret::{LABEL_BYTES_MAX, Secret, Stage};
use domain::time::between;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::version::{ReadError, Reader, ValueError, Version, label};

/// Secrets read at a time. Each takes a connection, and a new connection costs a small function
/// more processor time than the read.
const SECRETS_AT_A_TIME: usize = 4;
/// Longest time of one attempt of a call; another one fits into [`CALL`].
const ATTEMPT: Duration = Duration::from_millis(800);
/// Longest time of one call. Less than what the keyring gives a load (three fifths of the receiver's
/// deadline, 1.5 s): its own error could not tell which endpoint does not answer.
const CALL: Duration = Duration::from_millis(1_300);
/// Said of a version beside the current one.
const UNUSABLE: &str = "a version of a signing secret cannot be used and counts as absent";

/// Said of a secret without a usable current version.
const UNREAD: &str = "a signing secret cannot be read; deliveries signed with it are put off";

/// Signing secrets in Secrets Manager.
///
/// Of each secret these versions are in force: the one labelled `AWSCURRENT`; the one labelled
/// `AWSPENDING`; and the one labelled `AWSPREVIOUS` for its
/// [grace](domain::limits::Limits::previous_grace) after the current version was made, or was
/// promoted by a rotation. A version beside the current one that is absent, may not be read or holds no usable text counts as absent,
/// with a warning if it is there: the current one stays in force while somebody types. A secret
/// whose current version is not there or not usable is left out, with a warning, as the one that is
/// [unread](LoadedSecrets::unread): a stack has a secret for each webhook from its beginning, and some get
/// their values later. Each value
/// is in a form of [`Secret::parse_stored`]; bytes (`SecretBinary`) must be UTF-8. A secret's label
/// is the name of its secret and its stage, such as `gleaner/extract:pending`.
///
/// A load costs two calls per secret, three during the grace, on one connection each, four secrets
/// at a time. They go one after the other, and pending goes first: a label that moves from one
/// version to the other meanwhile is seen in one of its two places, so that no version in force is
/// missed. There is no such order between two secrets.
///
/// # Errors
/// Of a load where no secret can be read, and otherwise beside the others: `Denied` where a current
/// version is not there or may not be read, or the secret is being deleted; `Corrupt` where it is no
/// usable text. `Throttled` and `Unavailable` fail every load, also for the other versions, since
/// whether they are in force is then unknown.
pub struct AwsSecrets {
    reader: Reader,
    ids: Vec<String>,
    clock: Arc<dyn Clock>,
    previous_grace: Duration,
}

impl fmt::Debug for AwsSecrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AwsSecrets").field("ids", &self.ids).finish_non_exhaustive()
    }
}

impl AwsSecrets {
    /// The secrets of these names or ARNs; of equal ones, one. Nothing is read yet.
    pub fn new(
        config: &SdkConfig,
        ids: &[String],
        clock: Arc<dyn Clock>,
        previous_grace: Duration,
    ) -> Self {
        let mut unique: Vec<String> = Vec::new();
        for id in ids {
            if !unique.contains(id) {
                unique.push(id.clone());
            }
        }
        Self { reader: Reader::new(&hasty(config), "load"), ids: unique, clock, previous_grace }
    }

    /// All versions in force of one secret.
    async fn read(&self, id: &str) -> Result<Vec<Secret>, PortError> {
        let pending = self.read_beside(id, Stage::Pending).await?;
        let current = self.reader.read(id, Stage::Current).await.map_err(|error| error.error)?;
        let secret = understood(&current, id, Stage::Current)
            .map_err(|error| self.reader.failed(id, Stage::Current, ErrorKind::Corrupt, error))?;
        let now = self.clock.now();
        let is_grace = current.since.is_some_and(|since| between(since, now) < self.previous_grace);
        let previous = if is_grace { self.read_beside(id, Stage::Previous).await? } else { None };
        let mut used = vec![current.id];
        let mut secrets = vec![secret];
        for (stage, version) in [(Stage::Pending, pending), (Stage::Previous, previous)] {
            let Some(version) = version else { continue };
            // A rotation may leave two labels on one version.
            if version.id.is_some() && used.contains(&version.id) {
                continue;
            }
            match understood(&version, id, stage) {
                Ok(secret) => secrets.push(secret),
                Err(error) => {
                    tracing::warn!(secret = id, stage = label(stage), %error, "{UNUSABLE}");
                }
            }
            used.push(version.id);
        }
        Ok(secrets)
    }

    /// A version beside the current one; `None` if there is none that can be read.
    async fn read_beside(&self, id: &str, stage: Stage) -> Result<Option<Version>, PortError> {
        match self.reader.read(id, stage).await {
            Ok(version) => Ok(Some(version)),
            Err(ReadError { is_absent: true, .. }) => Ok(None),
            Err(ReadError { error, .. }) if error.is_transient() => Err(error),
            Err(ReadError { error, .. }) => {
                tracing::warn!(secret = id, stage = label(stage), ?error, "{UNUSABLE}");
                Ok(None)
            }
        }
    }
}

#[async_trait]
impl SecretSource for AwsSecrets {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        let reads = stream::iter(self.ids.clone())
            .map(|id| async move {
                match self.read(&id).await {
                    Err(error) if error.is_transient() => Err(error),
                    read => Ok(read),
                }
            })
            .buffered(SECRETS_AT_A_TIME);
        let reads: Vec<Result<Vec<Secret>, PortError>> = reads.try_collect().await?;
        let mut loaded = LoadedSecrets::default();
        for read in reads {
            match read {
                Ok(secrets) => loaded.secrets.extend(secrets),
                Err(error) => loaded.unread = loaded.unread.or(Some(error)),
            }
        }
        match loaded.unread {
            Some(error) if loaded.secrets.is_empty() => Err(error),
            unread => {
                if let Some(error) = &unread {
                    tracing::warn!(?error, "{UNREAD}");
                }
                Ok(LoadedSecrets { unread, ..loaded })
            }
        }
    }
}

/// The same configuration with shorter time-outs, unless they are shorter already. Those of
/// connections stay, so that other clients share them.
fn hasty(config: &SdkConfig) -> SdkConfig {
    let Some(times) = config.timeout_config() else { return config.clone() };
    let shorter = |time: Option<Duration>, limit| time.map_or(limit, |time| time.min(limit));
    let times = times
        .to_builder()
        .operation_attempt_timeout(shorter(times.operation_attempt_timeout(), ATTEMPT))
        .operation_timeout(shorter(times.operation_timeout(), CALL))
        .build();
    config.clone().into_builder().timeout_config(times).build()
}

/// The secret that a version holds.
fn understood(version: &Version, id: &str, stage: Stage) -> Result<Secret, ValueError> {
    let secret = Secret::parse_stored(version.text()?)?.with_stage(stage);
    let name = version.name.as_deref().unwrap_or(id);
    // The end of a long name tells more than its beginning.
    let begin = (name.len() + 1 + stage.as_str().len()).saturating_sub(LABEL_BYTES_MAX);
    let told = format!("{}:{}", name.get(begin..).unwrap_or_default(), stage.as_str());
    // A name that cannot go into a log line leaves the stage's word.
    Ok(secret.clone().with_label(&told).unwrap_or(secret))
}

#[cfg(test)]
mod tests;
