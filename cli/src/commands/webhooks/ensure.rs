//! `gleaner webhooks ensure`: brings the subscriptions into the state that is wanted.

use std::collections::BTreeSet;
use std::fmt;

use clap::Args;
use domain::envelope::EventType;
use domain::job::Kind;
use domain::ports::{Slot, Version, Webhook, WebhookChange};
use domain::subscribe::ensure::{Kept, Need, Plan, Wish, plan};
use serde::Serialize;

use super::Account;
use super::create::Wanted;
use super::report::Row;
use crate::error::CliError;
use crate::output::{Output, note};

/// See to it that each event is delivered to the receiver, by one active webhook whose secret is
/// kept.
///
/// A webhook whose secret is here is kept, moved to the URL or switched on, as it needs; a missing
/// one is registered, and its secret kept, as `create` does. Run again, it finds nothing to do.
/// What a rotation registered, or is about to take away, is left alone. Webhooks of the same URL
/// whose secret is not here are told of and left as they are: they may be another receiver's.
#[derive(Debug, Args)]
pub(super) struct Ensure {
    #[command(flatten)]
    wanted: Wanted,
    /// Print what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Ensure {
    pub(super) async fn run(self, output: Output, account: &Account) -> Result<(), CliError> {
        let url = account.url(self.wanted.url.as_ref())?;
        if !self.dry_run {
            // Before the platform is asked for anything: a secret must find its place.
            account.keeper.prepare().await?;
        }
        let kept = account.kept().await?;
        let kinds = account.kinds(&self.wanted.events).await?;
        let present = account.webhooks().await?;
        let plan = plan(Wish { url: &url, kinds: &kinds }, &present, &kept);
        tell_others(&plan);
        if self.dry_run {
            return plan
                .needs
                .iter()
                .try_for_each(|(kind, need)| output.print(&Planned::of(*kind, need, &url)));
        }
        let missing = |(kind, need): &(Kind, Need)| (*need == Need::Webhook).then_some(*kind);
        let new: Vec<_> = plan.needs.iter().filter_map(missing).collect();
        account.keeper.make_room(&new, &present).await?;
        for (kind, need) in plan.needs {
            let (webhook, outcome) = match need {
                Need::Nothing(webhook) => (webhook, "kept"),
                Need::Change(webhook, change) => {
                    let changed = account.change(&webhook.id, &change).await?;
                    account.keeper.follow(&changed).await?;
                    (changed, "updated")
                }
                Need::Webhook => {
                    (account.create(&url, kind, &self.wanted.description).await?.0, "created")
                }
            };
            output.print(&Row::of(&webhook, outcome, true))?;
        }
        Ok(())
    }
}

impl Account {
    /// The webhooks whose secrets are kept.
    async fn kept(&self) -> Result<Kept, CliError> {
        let mut kept = Kept::default();
        for slot in self.vault.slots().await? {
            let Slot { current, pending, previous, .. } = self.vault.read(&slot).await?;
            kept.current.extend(webhook_of(current.as_ref()));
            let others = [pending, previous].into_iter().flatten();
            kept.others.extend(others.filter_map(|version| webhook_of(Some(&version))));
        }
        // In place, the webhook stays the same one.
        let current: &BTreeSet<String> = &kept.current;
        kept.others.retain(|id| !current.contains(id));
        Ok(kept)
    }
}

fn webhook_of(version: Option<&Version>) -> Option<String> {
    version?.secret()?.webhook_id().map(str::to_owned)
}

/// Says what is there beside what is wanted.
fn tell_others(plan: &Plan) {
    let told = |webhook: &Webhook, why: &str| {
        note(&format!(
            "note: webhook {id} delivers {event} to the same URL {why}; remove it with `gleaner \
             webhooks delete {id}`",
            id = webhook.id.as_str(),
            event = webhook.event_type.as_str(),
        ));
    };
    for webhook in &plan.strangers {
        told(webhook, "with a secret that is not here");
    }
    for webhook in &plan.doubles {
        told(webhook, "as well, which one webhook does already");
    }
}

/// What would be done for one event.
#[derive(Serialize)]
struct Planned {
    version: u32,
    r#type: &'static str,
    event: String,
    /// `keep`, `update` or `create`.
    action: &'static str,
    id: Option<String>,
    url: String,
    /// What would change, of `url` and `active`.
    changes: Vec<&'static str>,
}

impl Planned {
    fn of(kind: Kind, need: &Need, url: &str) -> Self {
        let (action, webhook, changes) = match need {
            Need::Nothing(webhook) => ("keep", Some(webhook), Vec::new()),
            Need::Change(webhook, change) => ("update", Some(webhook), changes(change)),
            Need::Webhook => ("create", None, Vec::new()),
        };
        Self {
            version: 1,
            r#type: "webhook_plan",
            event: EventType::completed(kind).as_str().to_owned(),
            action,
            id: webhook.map(|webhook| webhook.id.as_str().to_owned()),
            url: url.to_owned(),
            changes,
        }
    }
}

fn changes(change: &WebhookChange) -> Vec<&'static str> {
    let url = change.url.is_some().then_some("url");
    let active = change.is_active.is_some().then_some("active");
    url.into_iter().chain(active).collect()
}

impl fmt::Display for Planned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id.as_deref().unwrap_or("-");
        write!(out, "would {}\t{id}\t{}\t{}", self.action, self.event, self.url)?;
        match self.changes.as_slice() {
            [] => Ok(()),
            changes => write!(out, "\tchanging {}", changes.join(" and ")),
        }
    }
}
