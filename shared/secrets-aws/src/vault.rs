//! The secrets as a rotation sees them.
//!
//! Secrets Manager dates a version and not its labels. So that the previous version has its grace
//! from the promotion on, the version that is promoted gets one more label first, which tells the
//! instant: see [`since_label`]. The one of the promotion before is taken away.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use async_trait::async_trait;
use aws_client::{SdkConfig, classify};
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::config::http::HttpResponse;
use aws_sdk_secretsmanager::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_secretsmanager::operation::get_secret_value::{
    GetSecretValueError, GetSecretValueOutput,
};
use aws_sdk_secretsmanager::operation::put_secret_value::PutSecretValueError;
use aws_sdk_secretsmanager::operation::update_secret_version_stage::UpdateSecretVersionStageError;
use domain::ports::{
    ErrorKind, Holds, PortError, Promoted, PutPending, Slot, SlotId, Vault, Version, VersionId,
};
use domain::signature::secret::{Secret, SecretError, Stage};
use domain::time::Timestamp;

use crate::since::{instant_of, since_label};
use crate::version::{self, ValueError, endpoint, label};

/// The port's name in errors.
const VAULT: &str = "vault";

/// Secrets of AWS Secrets Manager, one for each subscription.
///
/// Needs `secretsmanager:DescribeSecret`, `GetSecretValue`, `PutSecretValue` and
/// `UpdateSecretVersionStage` on them. A read costs one call and one more for each labelled
/// version; a promotion four.
#[derive(Clone)]
pub struct AwsVault {
    pub(crate) client: Client,
    endpoint: String,
    ids: Vec<String>,
}

impl fmt::Debug for AwsVault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AwsVault").field("ids", &self.ids).finish_non_exhaustive()
    }
}

/// Why a call did not do what it should. No value is in it.
#[derive(Debug, thiserror::Error)]
#[error("the secret `{id}` at {endpoint}")]
struct Failed {
    id: String,
    endpoint: String,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

/// What `DescribeSecret` tells: whether a function rotates the secret, and the labels of versions.
pub(crate) struct Described {
    pub(crate) is_rotated: bool,
    labels: BTreeMap<String, Vec<String>>,
}

impl Described {
    pub(crate) fn holder(&self, stage: Stage) -> Option<&str> {
        let has = |labels: &Vec<String>| labels.iter().any(|it| it == label(stage));
        let holder = self.labels.iter().find(|(_, labels)| has(labels));
        holder.map(|(id, _)| id.as_str())
    }

    /// Labels that tell when a version was promoted, other than this one, and their versions.
    fn outdated<'a>(&'a self, but: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.labels.iter().flat_map(|(id, labels)| labels.iter().map(move |it| (id, it)));
        all.filter(move |(_, it)| instant_of(it).is_some() && *it != but)
            .map(|(id, it)| (id.as_str(), it.as_str()))
    }
}

impl AwsVault {
    /// The secrets of these names or ARNs. Nothing is read yet.
    pub fn new(config: &SdkConfig, ids: &[String]) -> Self {
        Self { client: Client::new(config), endpoint: endpoint(config), ids: ids.to_vec() }
    }

    pub(crate) fn failed<E>(
        &self,
        operation: &'static str,
        slot: &SlotId,
        error: SdkError<E, HttpResponse>,
    ) -> PortError
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        // Marked for deletion: an operator's doing, and no bug.
        let is_going = error.code() == Some("InvalidRequestException");
        let (kind, source) = classify(error);
        let kind = if is_going { ErrorKind::Denied } else { kind };
        self.trouble(operation, slot, kind, source)
    }

    fn trouble(
        &self,
        operation: &'static str,
        slot: &SlotId,
        kind: ErrorKind,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> PortError {
        let failed = Failed {
            id: slot.as_str().to_owned(),
            endpoint: self.endpoint.clone(),
            source: source.into(),
        };
        PortError::new(VAULT, operation, kind).with_source(failed)
    }

    pub(crate) async fn describe(
        &self,
        operation: &'static str,
        slot: &SlotId,
    ) -> Result<Described, PortError> {
        let call = self.client.describe_secret().secret_id(slot.as_str());
        let told = call.send().await.map_err(|error| self.failed(operation, slot, error))?;
        Ok(Described {
            is_rotated: told.rotation_enabled.unwrap_or(false),
            labels: told.version_ids_to_stages.into_iter().flatten().collect(),
        })
    }

    async fn version(
        &self,
        slot: &SlotId,
        described: &Described,
        stage: Stage,
    ) -> Result<Option<Version>, PortError> {
        let Some(holder) = described.holder(stage) else { return Ok(None) };
        let id = VersionId::parse(holder)
            .map_err(|error| self.trouble("read", slot, ErrorKind::Corrupt, error))?;
        let call = self.client.get_secret_value().secret_id(slot.as_str()).version_id(holder);
        let holds = match call.send().await {
            Ok(output) => understood(output, stage),
            Err(error) => {
                let answered = error.as_service_error();
                let is_empty =
                    answered.is_some_and(GetSecretValueError::is_resource_not_found_exception);
                let failed = self.failed("read", slot, error);
                // What is out of use says nothing that anybody needs.
                if !is_empty && (stage != Stage::Previous || failed.is_transient()) {
                    return Err(failed);
                }
                Holds::Nothing
            }
        };
        Ok(Some(Version { id, holds }))
    }

    /// Moves a label; `false` if it was not where it was expected.
    async fn relabel(
        &self,
        operation: &'static str,
        slot: &SlotId,
        label: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<bool, PortError> {
        let call = self
            .client
            .update_secret_version_stage()
            .secret_id(slot.as_str())
            .version_stage(label)
            .set_remove_from_version_id(from.map(str::to_owned))
            .set_move_to_version_id(to.map(str::to_owned));
        match call.send().await {
            Ok(_) => Ok(true),
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(UpdateSecretVersionStageError::is_invalid_parameter_exception) =>
            {
                Ok(false)
            }
            Err(error) => Err(self.failed(operation, slot, error)),
        }
    }
}

/// What a version holds.
fn understood(output: GetSecretValueOutput, stage: Stage) -> Holds {
    if output.secret_string.is_none() && output.secret_binary.is_none() {
        return Holds::Nothing;
    }
    let version = version::Version::of(output);
    let secret = version.text().and_then(|text| Ok(Secret::parse_stored(text)?));
    match secret {
        Ok(secret) => Holds::Secret(secret.with_stage(stage)),
        Err(ValueError::Secret(error)) => Holds::Unusable(error),
        Err(ValueError::NotText) => Holds::Unusable(SecretError::Control),
    }
}

#[async_trait]
impl Vault for AwsVault {
    async fn slots(&self) -> Result<Vec<SlotId>, PortError> {
        let parse = |id: &String| {
            SlotId::parse(id).map_err(|error| {
                PortError::new(VAULT, "slots", ErrorKind::Invalid).with_source(error)
            })
        };
        self.ids.iter().map(parse).collect()
    }

    async fn read(&self, slot: &SlotId) -> Result<Slot, PortError> {
        let described = self.describe("read", slot).await?;
        let mut versions = [None, None, None];
        let stages = [Stage::Current, Stage::Pending, Stage::Previous];
        for (version, stage) in versions.iter_mut().zip(stages) {
            *version = self.version(slot, &described, stage).await?;
        }
        Ok(Slot::of(slot.clone(), described.is_rotated, versions))
    }

    async fn put_pending(
        &self,
        slot: &SlotId,
        version: &VersionId,
        secret: &Secret,
    ) -> Result<PutPending, PortError> {
        let call = self
            .client
            .put_secret_value()
            .secret_id(slot.as_str())
            .client_request_token(version.as_str())
            .secret_string(secret.to_stored())
            .version_stages(label(Stage::Pending));
        match call.send().await {
            Ok(_) => Ok(PutPending::Kept),
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(PutSecretValueError::is_resource_exists_exception) =>
            {
                Ok(PutPending::Taken)
            }
            Err(error) => Err(self.failed("put_pending", slot, error)),
        }
    }

    async fn promote(
        &self,
        slot: &SlotId,
        version: &VersionId,
        over: &VersionId,
        now: Timestamp,
    ) -> Result<Promoted, PortError> {
        let operation = "promote";
        let described = self.describe(operation, slot).await?;
        let current = described.holder(Stage::Current);
        if current == Some(version.as_str()) {
            return Ok(Promoted::Done);
        }
        let is_known = described.labels.contains_key(version.as_str());
        if current != Some(over.as_str()) || !is_known {
            return Ok(Promoted::Conflict);
        }
        let since = since_label(now);
        self.relabel(operation, slot, &since, None, Some(version.as_str())).await?;
        let (from, to) = (Some(over.as_str()), Some(version.as_str()));
        if !self.relabel(operation, slot, label(Stage::Current), from, to).await? {
            // Moved meanwhile: by the SDK's own repetition of the call, or by somebody else.
            let described = self.describe(operation, slot).await?;
            if described.holder(Stage::Current) != Some(version.as_str()) {
                return Ok(Promoted::Conflict);
            }
        }
        for (holder, label) in described.outdated(&since) {
            // What is left here is taken away by the next promotion.
            let _ = self.relabel(operation, slot, label, Some(holder), None).await;
        }
        Ok(Promoted::Done)
    }

    async fn give_up(&self, slot: &SlotId, version: &VersionId) -> Result<(), PortError> {
        let described = self.describe("give_up", slot).await?;
        let is_of = |stage| described.holder(stage) == Some(version.as_str());
        if is_of(Stage::Pending) && !is_of(Stage::Current) {
            let from = Some(version.as_str());
            self.relabel("give_up", slot, label(Stage::Pending), from, None).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
