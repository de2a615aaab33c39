//! Signing secrets in the secrets file, which only its owner may read.

use std::collections::BTreeSet;
use std::path::PathBuf;

use async_trait::async_trait;
use domain::job::Kind;
use domain::ports::{Clock as _, Webhook, WebhookId};
use domain::signature::SECRETS_MAX;
use domain::signature::secret::{Secret, Stage};
use embedded::secrets::{SecretsFile, SecretsFileError, StoredSecret};
use settings::Settings;

use super::make_data_dir;
use crate::backend::Keeper;
use crate::error::CliError;
use crate::exit::Exit;
use system::SystemClock;

/// The secrets file.
pub(in crate::backend) struct FileKeeper {
    file: SecretsFile,
    /// The folder that is made for it; none for a file that was named.
    folder: Option<PathBuf>,
}

impl FileKeeper {
    /// The file that the settings name.
    pub(in crate::backend) fn of(settings: &Settings) -> Self {
        let is_named = settings.secrets_file_given.is_some();
        Self {
            file: SecretsFile::new(&settings.secrets_file()),
            folder: (!is_named).then(|| settings.data_dir.clone()),
        }
    }

    /// The secrets that deliveries are accepted with now.
    fn in_force(&self) -> Result<Vec<StoredSecret>, CliError> {
        let now = SystemClock.now();
        let mut secrets = self.file.list().map_err(unusable)?;
        secrets.retain(|stored| stored.is_valid(now));
        Ok(secrets)
    }
}

#[async_trait]
impl Keeper for FileKeeper {
    async fn prepare(&self) -> Result<(), CliError> {
        self.folder.as_deref().map_or(Ok(()), make_data_dir)?;
        self.file.prepare().map_err(unusable)
    }

    async fn known(&self) -> Result<BTreeSet<String>, CliError> {
        let secrets = self.in_force()?;
        let ids = secrets.iter().filter_map(|stored| stored.secret.webhook_id());
        Ok(ids.map(str::to_owned).collect())
    }

    async fn kinds(&self) -> Result<Vec<Kind>, CliError> {
        Ok(Kind::ALL.to_vec())
    }

    async fn make_room(&self, kinds: &[Kind], _present: &[Webhook]) -> Result<(), CliError> {
        if self.in_force()?.len() + kinds.len() > SECRETS_MAX {
            return Err(CliError::new(Exit::Configuration, "the secrets file is full").hint(
                "delete webhooks with `gleaner webhooks delete`; it holds at most 30 secrets",
            ));
        }
        Ok(())
    }

    async fn keep(&self, _kind: Kind, webhook: &Webhook, secret: &Secret) -> Result<(), CliError> {
        let stored = StoredSecret {
            url: Some(webhook.url.clone()),
            event_type: Some(webhook.event_type.as_str().to_owned()),
            ..StoredSecret::new(secret.clone())
        };
        self.file.add(stored).map_err(unusable)
    }

    async fn follow(&self, webhook: &Webhook) -> Result<bool, CliError> {
        let secrets = self.in_force()?;
        let current = secrets.iter().find(|stored| {
            stored.secret.webhook_id() == Some(webhook.id.as_str())
                && stored.secret.stage() == Stage::Current
        });
        let Some(current) = current else { return Ok(false) };
        // The file says where each secret's webhook delivers; a change of that is no rotation.
        if current.url.as_deref() != Some(webhook.url.as_str()) {
            self.file.follow(webhook.id.as_str(), &webhook.url).map_err(unusable)?;
        }
        Ok(true)
    }

    async fn release(&self, id: &WebhookId) -> Result<bool, CliError> {
        Ok(self.file.remove(id.as_str()).map_err(unusable)? > 0)
    }

    fn exposed(&self) -> Vec<Secret> {
        // A file that cannot be read has been complained of, or holds nothing to repeat.
        let kept = self.file.list().unwrap_or_default();
        kept.into_iter().map(|stored| stored.secret).collect()
    }
}

fn unusable(error: SecretsFileError) -> CliError {
    let exit = match &error {
        SecretsFileError::Busy { .. } => Exit::TryAgain,
        SecretsFileError::Io { .. } => Exit::System,
        SecretsFileError::NoWebhook | SecretsFileError::Endless => Exit::Bug,
        _ => Exit::Configuration,
    };
    CliError::new(exit, "the secrets file cannot be used").because(error)
}
