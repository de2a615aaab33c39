//! `gleaner webhooks create`: registers, and keeps each secret before anything is printed.

use clap::Args;
use domain::envelope::EventType;
use domain::job::Kind;
use domain::ports::{CreatedWebhook, NewWebhook, Webhook};
use domain::signature::secret::Secret;

use super::report::Row;
use super::{Account, parse_description, parse_url};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note};

/// Register webhooks, one per event, and keep their signing secrets.
///
/// A webhook of the same URL and event whose secret is here already is kept. The secret goes to the
/// secrets file, synced to disk, or on AWS to the stack's secret for that kind, before anything is
/// printed. A webhook whose creation was not answered is looked for and deleted, since nobody knows
/// its secret, and made anew.
#[derive(Debug, Args)]
pub(super) struct Create {
    #[command(flatten)]
    wanted: Wanted,
    /// Print the secrets as well; whoever sees one can sign deliveries.
    #[arg(long)]
    show_secret: bool,
}

/// Which webhooks there shall be.
#[derive(Debug, Args)]
pub(super) struct Wanted {
    /// Where deliveries shall go [default: the setting `public_url`; on AWS the stack's receiver].
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    pub(super) url: Option<String>,
    /// Kind of job whose completion shall be delivered; without it all three, on AWS those for
    /// which the stack has a secret.
    #[arg(long = "event", value_name = "KIND", value_parser = parse_kind)]
    pub(super) events: Vec<Kind>,
    /// Free text for webhooks that are registered, of at most 200 characters.
    #[arg(long, value_name = "TEXT", default_value = "gleaner", value_parser = parse_description)]
    pub(super) description: String,
}

pub(crate) fn parse_kind(text: &str) -> Result<Kind, String> {
    // The platform's word for the event is as good.
    text.strip_suffix("_completed").unwrap_or(text).parse().map_err(|error| format!("{error}"))
}

impl Create {
    pub(super) async fn run(self, output: Output, account: &Account) -> Result<(), CliError> {
        let url = account.url(self.wanted.url.as_ref())?;
        let keeper = &account.keeper;
        // Before the platform is asked for anything: a secret must find its place.
        keeper.prepare().await?;
        let known = keeper.known().await?;
        let kinds = account.kinds(&self.wanted.events).await?;
        let present = account.webhooks().await?;
        let same = |kind| {
            let event = EventType::completed(kind);
            let is_same = move |webhook: &&Webhook| webhook.event_type == event;
            present.iter().filter(|webhook| webhook.url == url).filter(is_same)
        };
        let known = |kind| same(kind).find(|webhook| known.contains(webhook.id.as_str()));
        let new: Vec<_> = kinds.iter().copied().filter(|kind| known(*kind).is_none()).collect();
        keeper.make_room(&new, &present).await?;
        for kind in kinds {
            if let Some(known) = known(kind) {
                output.print(&Row::of(known, "kept", true))?;
                continue;
            }
            if let Some(unknown) = same(kind).next() {
                note(&format!(
                    "note: webhook {id} delivers {event} to the same URL with a secret that is not \
                     here; remove it with `gleaner webhooks delete {id}`",
                    id = unknown.id.as_str(),
                    event = unknown.event_type.as_str(),
                ));
            }
            let (webhook, secret) = account.create(&url, kind, &self.wanted.description).await?;
            let row = Row::of(&webhook, "created", true);
            output.print(&if self.show_secret { row.showing(secret.expose()) } else { row })?;
        }
        Ok(())
    }
}

impl Account {
    /// Registers one webhook and keeps its secret; a webhook whose secret cannot be kept is
    /// deleted again.
    pub(super) async fn create(
        &self,
        url: &str,
        kind: Kind,
        description: &str,
    ) -> Result<(Webhook, Secret), CliError> {
        let wanted = NewWebhook {
            url: url.to_owned(),
            event_type: EventType::completed(kind),
            description: Some(description.to_owned()),
        };
        let created = self.patient().register(&wanted).await?;
        let error = match keep(self, kind, &created).await {
            Ok(secret) => return Ok((created.webhook, secret)),
            Err(error) => error,
        };
        let id = &created.webhook.id;
        if self.patient().delete(id).await.is_err() {
            let id = id.as_str();
            note(&format!(
                "note: webhook {id} was made and its secret is lost; remove it with `gleaner \
                 webhooks delete {id}`"
            ));
        }
        Err(error)
    }
}

/// Puts the secret where it is kept, durably.
async fn keep(account: &Account, kind: Kind, created: &CreatedWebhook) -> Result<Secret, CliError> {
    let webhook = &created.webhook;
    let secret = created.secret.clone().with_webhook_id(webhook.id.as_str()).map_err(|error| {
        CliError::new(Exit::Data, "the platform gave an unusable signing secret").because(error)
    })?;
    account.keeper.keep(kind, webhook, &secret).await?;
    Ok(secret)
}
