//! The signing secrets in force: those of the settings, and those of the secrets file.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use domain::ports::{Clock, LoadedSecrets, PortError, SecretSource};
use embedded::secrets::{LocalSecrets, SecretPlace};
use settings::Settings;

/// Reads the secrets anew each time, so that a webhook made meanwhile is served.
pub(crate) struct Secrets {
    values: Vec<SecretPlace>,
    file: PathBuf,
    /// Whether the file must be there: it was named.
    is_file_owed: bool,
    clock: Arc<dyn Clock>,
}

impl Secrets {
    /// As the settings say.
    pub(crate) fn of(settings: &Settings, clock: Arc<dyn Clock>) -> Self {
        let value = |(name, value): &(&'static str, settings::SecretText)| SecretPlace::Value {
            name: (*name).to_owned(),
            value: value.expose().to_owned(),
        };
        Self {
            values: settings.secret_values.iter().map(value).collect(),
            file: settings.secrets_file(),
            is_file_owed: settings.secrets_file_given.is_some(),
            clock,
        }
    }
}

/// Where signing secrets are read from, as a person reads it.
pub(crate) fn secret_places(settings: &Settings) -> String {
    let file = settings.secrets_file();
    let is_owed = settings.secrets_file_given.is_some() || settings.secret_values.is_empty();
    let variable = |(name, _): &(&str, _)| format!("GLEANER_{}", name.to_ascii_uppercase());
    let mut places: Vec<String> = settings.secret_values.iter().map(variable).collect();
    if is_owed || file.exists() {
        places.push(file.display().to_string());
    }
    places.join(" and ")
}

#[async_trait]
impl SecretSource for Secrets {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        let mut places = self.values.clone();
        if self.is_file_owed || tokio::fs::try_exists(&self.file).await.unwrap_or(true) {
            places.push(SecretPlace::File(self.file.clone()));
        }
        LocalSecrets::new(places, Arc::clone(&self.clock)).load().await
    }
}
