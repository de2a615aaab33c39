//! Reading one version of a secret.

use std::error::Error;

use aws_client::{SdkConfig, classify};
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::operation::get_secret_value::{
    GetSecretValueError, GetSecretValueOutput,
};
use aws_sdk_secretsmanager::primitives::Blob;
use aws_types::service_config::ServiceConfigKey;
use domain::ports::{ErrorKind, PortError};
use domain::signature::secret::{SecretError, Stage};
use domain::time::Timestamp;

use crate::since::instant_of;

/// The port's name in errors.
const SECRETS: &str = "secrets";

/// A version whose value was read and not yet understood.
pub(crate) struct Version {
    /// Its id.
    pub(crate) id: Option<String>,
    /// The secret's name, without the account and region of its ARN.
    pub(crate) name: Option<String>,
    /// When it became what it is, as the current version: when it was made, or when a rotation
    /// promoted it.
    pub(crate) since: Option<Timestamp>,
    string: Option<String>,
    binary: Option<Vec<u8>>,
}

/// Why a secret gives nothing. The value is never in it.
#[derive(Debug, thiserror::Error)]
#[error("the secret `{id}` ({}) cannot be read at {endpoint}", label(*stage))]
struct Unread {
    id: String,
    stage: Stage,
    endpoint: String,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

/// Why a value is no text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ValueError {
    /// `SecretBinary` with bytes that are no text.
    #[error("the value is binary and not UTF-8 text")]
    NotText,
    /// A text that is no secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// The label of Secrets Manager for a stage.
pub(crate) const fn label(stage: Stage) -> &'static str {
    match stage {
        Stage::Current => "AWSCURRENT",
        Stage::Pending => "AWSPENDING",
        Stage::Previous => "AWSPREVIOUS",
    }
}

/// A read that gave no version.
pub(crate) struct ReadError {
    /// Whether AWS says that there is no such secret or version.
    pub(crate) is_absent: bool,
    /// What the port says.
    pub(crate) error: PortError,
}

/// Reads versions for one operation of the port.
#[derive(Clone)]
pub(crate) struct Reader {
    client: Client,
    endpoint: String,
    operation: &'static str,
}

impl Reader {
    /// A reader with the configuration's time-outs.
    pub(crate) fn new(config: &SdkConfig, operation: &'static str) -> Self {
        Self { client: Client::new(config), endpoint: endpoint(config), operation }
    }

    /// Reads the version that carries a stage's label. One call, with the SDK's own repetitions.
    ///
    /// # Errors
    /// `Denied` where the secret or the version is not there, may not be read, cannot be decrypted
    /// or is being deleted: what an operator has to mend. Otherwise as [`classify`] says.
    pub(crate) async fn read(&self, id: &str, stage: Stage) -> Result<Version, ReadError> {
        let call = self.client.get_secret_value().secret_id(id).version_stage(label(stage));
        let error = match call.send().await {
            Ok(output) => return Ok(Version::of(output)),
            Err(error) => error,
        };
        let answered = error.as_service_error();
        let is_absent = answered.is_some_and(GetSecretValueError::is_resource_not_found_exception);
        // Marked for deletion: an operator's doing, and no bug.
        let is_going = answered.is_some_and(GetSecretValueError::is_invalid_request_exception);
        let (kind, source) = classify(error);
        let kind = if is_going { ErrorKind::Denied } else { kind };
        Err(ReadError { is_absent, error: self.failed(id, stage, kind, source) })
    }

    /// The error of a version that cannot be used.
    pub(crate) fn failed(
        &self,
        id: &str,
        stage: Stage,
        kind: ErrorKind,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> PortError {
        let unread = Unread {
            id: id.to_owned(),
            stage,
            endpoint: self.endpoint.clone(),
            source: source.into(),
        };
        PortError::new(SECRETS, self.operation, kind).with_source(unread)
    }
}

/// Where the calls go, for whoever has to mend a network: the configured URL, or the beginning of
/// AWS's own name.
pub(crate) fn endpoint(config: &SdkConfig) -> String {
    let key = ServiceConfigKey::builder()
        .service_id("Secrets Manager")
        .env("AWS_ENDPOINT_URL")
        .profile("endpoint_url")
        .build();
    let own = config.service_config().zip(key.ok());
    let own = own.and_then(|(services, key)| services.load_config(key));
    own.or_else(|| config.endpoint_url().map(str::to_owned)).unwrap_or_else(|| {
        let region = config.region().map(ToString::to_string);
        format!("secretsmanager.{}", region.as_deref().unwrap_or("(no region)"))
    })
}

impl Version {
    pub(crate) fn of(output: GetSecretValueOutput) -> Self {
        let created = output.created_date.and_then(|at| {
            Timestamp::new(at.secs(), i32::try_from(at.subsec_nanos()).unwrap_or_default()).ok()
        });
        let labels = output.version_stages.unwrap_or_default();
        let promoted = labels.iter().filter_map(|label| instant_of(label)).max();
        Self {
            id: output.version_id,
            name: output.name,
            since: created.max(promoted),
            string: output.secret_string,
            binary: output.secret_binary.map(Blob::into_inner),
        }
    }

    /// The value as text: of `SecretString`, or of `SecretBinary` if that is UTF-8; empty if there
    /// is neither.
    pub(crate) fn text(&self) -> Result<&str, ValueError> {
        match (&self.string, &self.binary) {
            (Some(text), _) => Ok(text),
            (None, Some(bytes)) => std::str::from_utf8(bytes).map_err(|_| ValueError::NotText),
            (None, None) => Ok(""),
        }
    }
}
