//! Signing secrets in Secrets Manager as they are found in every stage.

use std::time::Duration;

use aws_client::{SdkConfig, classify};
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::operation::get_secret_value::{
    GetSecretValueError, GetSecretValueOutput,
};
use domain::ports::PortError;
use domain::signature::secret::{Secret, Stage};
use domain::time::{Timestamp, after};
use secrets_aws::promoted_at;

use super::vault::{LOAD, SECRETS};
use crate::backend::Held;
use crate::error::CliError;

/// The labels, and what they stand for; the current one first.
const LABELS: [(&str, Stage); 3] = [
    ("AWSCURRENT", Stage::Current),
    ("AWSPENDING", Stage::Pending),
    ("AWSPREVIOUS", Stage::Previous),
];

/// Reads the labelled versions of these secrets, one after the other; a previous one is in force for
/// `previous_grace`.
pub(super) async fn read(
    config: &SdkConfig,
    ids: &[String],
    previous_grace: Duration,
) -> Vec<Held> {
    let client = Client::new(config);
    let mut found = Vec::new();
    for id in ids {
        found.extend(read_one(&client, id, previous_grace).await);
    }
    found
}

async fn read_one(client: &Client, id: &str, previous_grace: Duration) -> Vec<Held> {
    let mut found: Vec<Held> = Vec::new();
    let mut versions: Vec<String> = Vec::new();
    for (label, stage) in LABELS {
        let call = client.get_secret_value().secret_id(id).version_stage(label);
        let place = format!("`{}`", id.rsplit(':').next().unwrap_or(id));
        let unusable = |reason: String| Held {
            place: place.clone(),
            stage,
            secret: Err(reason),
            since: None,
            until: None,
        };
        match call.send().await {
            Ok(output) => {
                // A rotation may leave two labels on one version.
                let version = output.version_id().unwrap_or_default().to_owned();
                if versions.contains(&version) {
                    continue;
                }
                versions.push(version);
                let since = since(&output);
                let current = found.first().and_then(|held| held.since);
                let until = (stage == Stage::Previous)
                    .then(|| current.map(|current| after(current, previous_grace)))
                    .flatten();
                let secret = understood(&output).map(|secret| secret.with_stage(stage));
                found.push(Held { place, stage, secret, since, until });
            }
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(GetSecretValueError::is_resource_not_found_exception) =>
            {
                if stage == Stage::Current {
                    found.push(unusable("there is no such secret, or it has no value".to_owned()));
                    return found;
                }
            }
            Err(error) => {
                let (kind, source) = classify(error);
                let error = PortError::new(SECRETS, LOAD, kind).with_source(source);
                found.push(unusable(CliError::from(error).told()));
                return found;
            }
        }
    }
    found
}

/// Since when a version is what it is: since it was made, or since a rotation promoted it.
fn since(output: &GetSecretValueOutput) -> Option<Timestamp> {
    let created = output.created_date().and_then(|at| Timestamp::from_second(at.secs()).ok());
    let promoted = output.version_stages().iter().filter_map(|label| promoted_at(label)).max();
    created.max(promoted)
}

fn understood(output: &GetSecretValueOutput) -> Result<Secret, String> {
    let bytes = output.secret_binary().map(AsRef::as_ref).unwrap_or_default();
    let text = match output.secret_string() {
        Some(text) => text,
        None => std::str::from_utf8(bytes).map_err(|_| "the value is no text".to_owned())?,
    };
    Secret::parse_stored(text).map_err(|error| error.to_string())
}
