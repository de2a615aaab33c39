//! `gleaner webhooks`: the account's webhooks, and their signing secrets on this machine.

mod create;
mod report;

use std::sync::Arc;

use clap::{ArgAction, Args, Subcommand};
use domain::ports::Clock;
use domain::signature::secret::Stage;
use embedded::secrets::{SecretsFile, SecretsFileError, StoredSecret};
use scraper_api::{ScraperApi, Webhook, WebhookChange, WebhookId};
use settings::Settings;

use self::create::Create;
use self::report::Row;
use crate::backend::api;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;
use crate::subscribing::{all_webhooks, delete, patiently};
use system::{SystemClock, SystemRandom};

/// Create, list, update and delete webhooks at the platform.
///
/// The platform shows a webhook's signing secret once, when it is created: `create` keeps it in the
/// secrets file, which only its owner may read, and `serve` reads it there.
#[derive(Debug, Args)]
pub(crate) struct Webhooks {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Create(Create),
    /// List the account's webhooks, and whether their secrets are here.
    List,
    Update(Update),
    Delete(Delete),
}

/// Change a webhook's URL, description or activity.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
struct Update {
    /// The webhook's id.
    #[arg(value_parser = parse_id)]
    id: WebhookId,
    /// Where deliveries shall go.
    #[arg(long, value_name = "URL", value_parser = parse_url, group = "change")]
    url: Option<String>,
    /// Free text, of at most 200 characters.
    #[arg(long, value_name = "TEXT", value_parser = parse_description, group = "change")]
    description: Option<String>,
    /// Whether deliveries shall be made.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, group = "change")]
    active: Option<bool>,
}

/// Delete webhooks, then their secrets.
#[derive(Debug, Args)]
struct Delete {
    /// The webhooks' ids.
    #[arg(required = true, value_name = "ID", value_parser = parse_id)]
    ids: Vec<WebhookId>,
}

/// What the verbs work with.
struct Account {
    api: Arc<ScraperApi>,
    file: SecretsFile,
    settings: Settings,
}

impl Webhooks {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        let account = Account {
            api: api(settings)?,
            file: SecretsFile::new(&settings.secrets_file()),
            settings: settings.clone(),
        };
        let done = match self.verb {
            Verb::Create(create) => create.run(output, &account).await,
            Verb::List => account.list(output).await,
            Verb::Update(update) => account.update(output, update).await,
            Verb::Delete(delete) => account.delete(output, &delete.ids).await,
        };
        done.map_err(|error| account.blot(error))?;
        Ok(Exit::Ok)
    }
}

impl Account {
    async fn webhooks(&self) -> Result<Vec<Webhook>, CliError> {
        let within = self.settings.limits.call_timeout;
        let listed =
            patiently(&SystemClock, &SystemRandom, || all_webhooks(&self.api, within)).await;
        Ok(listed?)
    }

    /// The secrets that deliveries are accepted with now.
    fn secrets(&self) -> Result<Vec<StoredSecret>, CliError> {
        let now = SystemClock.now();
        let mut secrets = self.file.list().map_err(secrets_file)?;
        secrets.retain(|stored| stored.is_valid(now));
        Ok(secrets)
    }

    /// The error without the secrets that are here, which the platform may have repeated.
    fn blot(&self, error: CliError) -> CliError {
        // A file that cannot be read has been complained of, or holds nothing to repeat.
        let kept = self.file.list().unwrap_or_default();
        let kept = kept.iter().map(|stored| stored.secret.expose());
        let given = self.settings.secret_values.iter().map(|(_, value)| value.expose());
        error.without(kept.chain(given))
    }

    async fn list(&self, output: Output) -> Result<(), CliError> {
        let secrets = self.secrets()?;
        for webhook in self.webhooks().await? {
            output.print(&Row::of(&webhook, "listed", has_secret(&secrets, &webhook.id)))?;
        }
        Ok(())
    }

    async fn update(&self, output: Output, update: Update) -> Result<(), CliError> {
        let change = WebhookChange {
            url: update.url,
            description: update.description,
            is_active: update.active,
            event_type: None,
        };
        let within = self.settings.limits.call_timeout;
        let call = || self.api.update_webhook(&update.id, &change, within);
        let webhook = patiently(&SystemClock, &SystemRandom, call).await?;
        let secrets = self.secrets()?;
        let current = secrets.iter().find(|stored| {
            stored.secret.webhook_id() == Some(webhook.id.as_str())
                && stored.secret.stage() == Stage::Current
        });
        // The file says where each secret's webhook delivers; a change of that is no rotation.
        if let Some(current) = current
            && current.url.as_deref() != Some(webhook.url.as_str())
        {
            let moved = StoredSecret { url: Some(webhook.url.clone()), ..current.clone() };
            self.file.replace(moved, None).map_err(secrets_file)?;
        }
        output.print(&Row::of(&webhook, "updated", current.is_some()))
    }

    async fn delete(&self, output: Output, ids: &[WebhookId]) -> Result<(), CliError> {
        let within = self.settings.limits.call_timeout;
        for id in ids {
            let call = || delete(&self.api, id, within);
            patiently(&SystemClock, &SystemRandom, call).await?;
            // Only now: as long as the webhook is there, its deliveries must be accepted.
            let removed = self.file.remove(id.as_str()).map_err(secrets_file)?;
            output.print(&Row::deleted(id, removed > 0))?;
        }
        Ok(())
    }
}

fn has_secret(secrets: &[StoredSecret], id: &WebhookId) -> bool {
    secrets.iter().any(|stored| stored.secret.webhook_id() == Some(id.as_str()))
}

fn secrets_file(error: SecretsFileError) -> CliError {
    let exit = match &error {
        SecretsFileError::Busy { .. } => Exit::TryAgain,
        SecretsFileError::Io { .. } => Exit::System,
        SecretsFileError::NoWebhook | SecretsFileError::Endless => Exit::Bug,
        _ => Exit::Configuration,
    };
    CliError::new(exit, "the secrets file cannot be used").because(error)
}

fn parse_id(text: &str) -> Result<WebhookId, String> {
    WebhookId::parse(text).map_err(|error| error.to_string())
}

/// An address that the platform may deliver to. What it really accepts is for it to say.
fn parse_url(text: &str) -> Result<String, String> {
    let url = reqwest::Url::parse(text.trim()).map_err(|_| "give an absolute URL".to_owned())?;
    let is_usable = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none();
    if is_usable {
        Ok(text.trim().to_owned())
    } else {
        Err("give an http or https URL without user and fragment".to_owned())
    }
}

/// Longest description, in characters: a label, with room for the token at its end.
const DESCRIPTION_CHARS_MAX: usize = 200;

fn parse_description(text: &str) -> Result<String, String> {
    let is_short = text.chars().nth(DESCRIPTION_CHARS_MAX).is_none();
    if is_short && !text.chars().any(char::is_control) {
        Ok(text.to_owned())
    } else {
        Err(format!("give at most {DESCRIPTION_CHARS_MAX} characters and no line breaks"))
    }
}
