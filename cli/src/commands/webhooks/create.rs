//! `gleaner webhooks create`: registers, and keeps each secret before anything is printed.

use clap::Args;
use domain::envelope::EventType;
use domain::job::Kind;
use domain::signature::SECRETS_MAX;
use domain::signature::secret::Secret;
use embedded::secrets::StoredSecret;
use scraper_api::{CreatedWebhook, NewWebhook, Webhook};

use super::report::Row;
use super::{Account, has_secret, parse_description, parse_url, secrets_file};
use crate::backend::make_data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note};
use crate::subscribing::{delete, patiently, subscribe};
use system::{SystemClock, SystemRandom};

/// Register webhooks, one per event, and keep their signing secrets.
///
/// A webhook of the same URL and event whose secret is here already is kept. The secret goes to the
/// secrets file, synced to disk, before anything is printed. A webhook whose creation was not
/// answered is looked for and deleted, since nobody knows its secret, and made anew.
#[derive(Debug, Args)]
pub(super) struct Create {
    /// Where deliveries shall go [default: the setting `public_url`].
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    url: Option<String>,
    /// Kind of job whose completion shall be delivered; without it all three.
    #[arg(long = "event", value_name = "KIND", value_parser = parse_kind)]
    events: Vec<Kind>,
    /// Free text, of at most 200 characters.
    #[arg(long, value_name = "TEXT", default_value = "gleaner", value_parser = parse_description)]
    description: String,
    /// Print the secrets as well; whoever sees one can sign deliveries.
    #[arg(long)]
    show_secret: bool,
}

fn parse_kind(text: &str) -> Result<Kind, String> {
    // The platform's word for the event is as good.
    text.strip_suffix("_completed").unwrap_or(text).parse().map_err(|error| format!("{error}"))
}

impl Create {
    pub(super) async fn run(self, output: Output, account: &Account) -> Result<(), CliError> {
        let url = self.url.clone().or_else(|| account.settings.public_url.clone());
        let url = url.ok_or_else(|| {
            CliError::new(Exit::Usage, "where deliveries shall go is not known").hint(
                "give --url, or set public_url to the URL under which the platform reaches `gleaner serve`",
            )
        })?;
        let kinds = Kind::ALL
            .into_iter()
            .filter(|kind| self.events.is_empty() || self.events.contains(kind));
        let kinds: Vec<_> = kinds.collect();
        // Before the platform is asked for anything: a secret must find its place.
        if account.settings.secrets_file_given.is_none() {
            make_data_dir(&account.settings.data_dir)?;
        }
        account.file.prepare().map_err(secrets_file)?;
        let secrets = account.secrets()?;
        if secrets.len() + kinds.len() > SECRETS_MAX {
            return Err(CliError::new(Exit::Configuration, "the secrets file is full").hint(
                "delete webhooks with `gleaner webhooks delete`; it holds at most 30 secrets",
            ));
        }
        let present = account.webhooks().await?;
        for kind in kinds {
            let event = EventType::completed(kind);
            let mut same =
                present.iter().filter(|webhook| webhook.url == url && webhook.event_type == event);
            let known = same.clone().find(|webhook| has_secret(&secrets, &webhook.id));
            if let Some(known) = known {
                output.print(&Row::of(known, "kept", true))?;
                continue;
            }
            if let Some(unknown) = same.next() {
                note(&format!(
                    "note: webhook {id} delivers {event} to the same URL with a secret that is not \
                     here; remove it with `gleaner webhooks delete {id}`",
                    id = unknown.id.as_str(),
                    event = event.as_str(),
                ));
            }
            let (webhook, secret) = self.create(account, &url, event).await?;
            let row = Row::of(&webhook, "created", true);
            output.print(&if self.show_secret { row.showing(secret.expose()) } else { row })?;
        }
        Ok(())
    }

    /// Registers one webhook and keeps its secret; a webhook whose secret cannot be kept is
    /// deleted again.
    async fn create(
        &self,
        account: &Account,
        url: &str,
        event_type: EventType,
    ) -> Result<(Webhook, Secret), CliError> {
        let within = account.settings.limits.call_timeout;
        let wanted = NewWebhook {
            url: url.to_owned(),
            event_type,
            description: Some(self.description.clone()),
        };
        let created = subscribe(&account.api, &SystemClock, &SystemRandom, &wanted, within).await?;
        let error = match keep(account, &created) {
            Ok(secret) => return Ok((created.webhook, secret)),
            Err(error) => error,
        };
        let id = &created.webhook.id;
        let call = || delete(&account.api, id, within);
        if patiently(&SystemClock, &SystemRandom, call).await.is_err() {
            let id = id.as_str();
            return Err(error.hint(format!(
                "webhook {id} was made and its secret is lost: `gleaner webhooks delete {id}`"
            )));
        }
        Err(error)
    }
}

/// Writes the secret to the file, synced.
fn keep(account: &Account, created: &CreatedWebhook) -> Result<Secret, CliError> {
    let webhook = &created.webhook;
    let secret = Secret::new(created.secret.expose())
        .and_then(|secret| secret.with_webhook_id(webhook.id.as_str()))
        .map_err(|error| {
            CliError::new(Exit::Data, "the platform gave an unusable signing secret").because(error)
        })?;
    let stored = StoredSecret {
        secret: secret.clone(),
        until: None,
        url: Some(webhook.url.clone()),
        event_type: Some(webhook.event_type.as_str().to_owned()),
    };
    account.file.add(stored).map_err(secrets_file)?;
    Ok(secret)
}
