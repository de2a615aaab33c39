//! `gleaner webhooks`: the account's webhooks, and their signing secrets where they are kept.

mod create;
mod ensure;
mod report;

use std::sync::Arc;

use clap::{ArgAction, Args, Subcommand};
use domain::job::Kind;
use domain::ports::{Vault, Webhook, WebhookChange, WebhookId, Webhooks as _};
use domain::signature::secret::Secret;
use domain::subscribe;
use scraper_api::ScraperApi;
use settings::Settings;

use self::create::Create;
pub(crate) use self::create::parse_kind;
use self::ensure::Ensure;
use self::report::Row;
use crate::backend::{Keeper, Site};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;
use crate::subscribing::account;

/// Create, ensure, list, update and delete webhooks at the platform.
///
/// The platform shows a webhook's signing secret once, when it is created: `create` keeps it in the
/// secrets file, which only its owner may read, and `serve` reads it there. On AWS it goes to the
/// stack's secret for that kind of webhook, where the receiver reads it.
#[derive(Debug, Args)]
pub(crate) struct Webhooks {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Create(Create),
    Ensure(Ensure),
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
    keeper: Arc<dyn Keeper>,
    vault: Arc<dyn Vault>,
    settings: Settings,
}

impl Webhooks {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        let site = Site::of(settings).await?;
        let (api, keeper, vault) = (site.api().await?, site.keeper(), site.vault());
        let account = Account { api, keeper, vault, settings: site.settings };
        let done = match self.verb {
            Verb::Create(create) => create.run(output, &account).await,
            Verb::Ensure(ensure) => ensure.run(output, &account).await,
            Verb::List => account.list(output).await,
            Verb::Update(update) => account.update(output, update).await,
            Verb::Delete(delete) => account.delete(output, &delete.ids).await,
        };
        done.map_err(|error| account.blot(error))?;
        Ok(Exit::Ok)
    }
}

impl Account {
    /// The account's webhooks, asked with patience.
    fn patient(&self) -> subscribe::Account<'_> {
        account(&*self.api, self.settings.limits.call_timeout)
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, CliError> {
        let listed = self.patient().list().await?;
        if listed.unreadable > 0 {
            tracing::warn!(count = listed.unreadable, "webhooks that cannot be read are left out");
        }
        Ok(listed.webhooks)
    }

    /// Where deliveries shall go: what is given, or what the settings say.
    fn url(&self, given: Option<&String>) -> Result<String, CliError> {
        let url = given.or(self.settings.public_url.as_ref()).cloned();
        url.ok_or_else(|| {
            CliError::new(Exit::Usage, "where deliveries shall go is not known").hint(
                "give --url, or set public_url to the URL under which the platform reaches `gleaner serve`",
            )
        })
    }

    /// The kinds that are asked for, or those for whose webhooks there is a place.
    async fn kinds(&self, asked: &[Kind]) -> Result<Vec<Kind>, CliError> {
        match asked {
            [] => self.keeper.kinds().await,
            asked => Ok(Kind::ALL.into_iter().filter(|kind| asked.contains(kind)).collect()),
        }
    }

    /// The error without the secrets that are here, which the platform may have repeated.
    fn blot(&self, error: CliError) -> CliError {
        let kept = self.keeper.exposed();
        let kept = kept.iter().map(Secret::expose);
        let given = self.settings.secret_values.iter().map(|(_, value)| value.expose());
        error.without(kept.chain(given))
    }

    async fn list(&self, output: Output) -> Result<(), CliError> {
        let known = self.keeper.known().await?;
        for webhook in self.webhooks().await? {
            let is_known = known.contains(webhook.id.as_str());
            output.print(&Row::of(&webhook, "listed", is_known))?;
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
        let webhook = self.change(&update.id, &change).await?;
        let is_known = self.keeper.follow(&webhook).await?;
        output.print(&Row::of(&webhook, "updated", is_known))
    }

    async fn change(&self, id: &WebhookId, change: &WebhookChange) -> Result<Webhook, CliError> {
        let within = self.settings.limits.call_timeout;
        Ok(self.patient().patiently(|| self.api.update(id, change, within)).await?)
    }

    async fn delete(&self, output: Output, ids: &[WebhookId]) -> Result<(), CliError> {
        for id in ids {
            self.patient().delete(id).await?;
            // Only now: as long as the webhook is there, its deliveries must be accepted.
            let was_known = self.keeper.release(id).await?;
            output.print(&Row::deleted(id, was_known))?;
        }
        Ok(())
    }
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
