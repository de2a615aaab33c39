//! `gleaner rotate`: replaces the signing secrets of webhooks, and loses no delivery.

mod report;

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use domain::envelope::EventType;
use domain::job::Kind;
use domain::ports::{Clock as _, Random as _, Slot, SlotId, Vault, VersionId, Webhook};
use domain::rotate::{
    Done, Others, Refusal, RotateError, RotatePorts, Rotation, Staging, Step, Strategy,
    rotate_whole,
};
use domain::signature::secret::Secret;
use domain::time::after;
use settings::Settings;
use system::{SystemClock, SystemRandom};

use self::report::Row;
use super::webhooks::parse_kind;
use crate::backend::{Begun, Site};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note};
use crate::subscribing::account;

/// Longest time for one rotation.
const ROTATION_MAX: Duration = Duration::from_mins(5);

/// Replace the signing secrets of webhooks, and lose no delivery.
///
/// For each webhook whose secret is kept, a second one is registered that delivers the same events,
/// and takes the place of the first when receivers know its secret and it is seen to work; `serve`
/// takes the old one away. An account that has no room for another webhook rotates `in-place`: what
/// the platform signs before receivers know the new secret is refused, and found in the delivery
/// log. It may run beside `serve`, takes some ten seconds for each webhook, and goes on at once where
/// it stopped, or was killed, when it is run again. On AWS it has Secrets Manager begin the rotation, where one is
/// configured.
#[derive(Debug, Args)]
pub(crate) struct Rotate {
    /// Kind of job whose webhook's secret is replaced; without it all.
    #[arg(long = "event", value_name = "KIND", value_parser = parse_kind)]
    events: Vec<Kind>,
    /// `overlap` or `in-place` [default: the setting `rotation_strategy`; on AWS the stack's
    /// parameter `RotationStrategy`].
    #[arg(long, value_name = "STRATEGY")]
    strategy: Option<Strategy>,
}

/// A subscription whose secret is to be replaced.
struct Subscription {
    slot: SlotId,
    /// The version of a rotation that did not come to its end.
    pending: Option<VersionId>,
    webhook: Option<String>,
    event: Option<String>,
}

impl Subscription {
    /// What it is called among those of one command.
    fn name(&self) -> &str {
        self.event.as_deref().unwrap_or(self.slot.as_str())
    }

    /// The kind of job whose webhook it is, if that is known.
    fn kind(&self) -> Option<&'static str> {
        Kind::ALL.map(Kind::as_str).into_iter().find(|kind| {
            self.event
                .as_deref()
                .is_some_and(|event| event.strip_suffix("_completed") == Some(*kind))
        })
    }
}

impl Rotate {
    pub(crate) async fn run(self, output: Output, settings: &Settings) -> Result<Exit, CliError> {
        let site = Site::of(settings).await?;
        let done = self.rotate(output, &site).await;
        done.map_err(|error| {
            // The platform may have repeated what is kept here.
            let kept = site.keeper().exposed();
            error.without(kept.iter().map(Secret::expose))
        })?;
        Ok(Exit::Ok)
    }

    async fn rotate(&self, output: Output, site: &Site) -> Result<(), CliError> {
        let (vault, api) = (site.vault(), site.api().await?);
        // Before anything is read: whatever of another rotation is found was left by one that ended.
        let lock = site.rotation_lock(SystemClock.now())?;
        let others = if lock.is_some() { Others::Excluded } else { Others::Possible };
        let limits = &site.settings.limits;
        let webhooks = account(&*api, limits.call_timeout).list().await?.webhooks;
        let chosen = self.choose(&*vault, &webhooks).await?;
        if chosen.is_empty() {
            let text = "there is no webhook whose secret is kept";
            return Err(
                CliError::new(Exit::NotFound, text).hint("make one with `gleaner webhooks ensure`")
            );
        }
        if site.rotates_elsewhere() {
            return self.begin(output, site, chosen).await;
        }
        let store = site.store()?;
        let ports = RotatePorts {
            vault: &*vault,
            webhooks: &*api,
            control: &*store.ledger,
            clock: &SystemClock,
            random: &SystemRandom,
            limits,
        };
        let strategy = self.strategy.unwrap_or(site.settings.rotation_strategy);
        let (all, mut failed) = (chosen.len(), None);
        let (mut done, mut left) = (Vec::new(), Vec::new());
        for subscription in chosen {
            match here(ports, &subscription, strategy, others).await {
                Ok(successor) => {
                    output.print(&Row::rotated(&subscription, successor))?;
                    done.push(subscription);
                }
                Err(error) => {
                    let error = if all > 1 { error.about(subscription.name()) } else { error };
                    failed = Some(complain(failed, error));
                    left.push(subscription);
                }
            }
        }
        advise(&done, &left);
        failed.map_or(Ok(()), Err)
    }

    /// Has Secrets Manager begin.
    async fn begin(
        &self,
        output: Output,
        site: &Site,
        chosen: Vec<Subscription>,
    ) -> Result<(), CliError> {
        if self.strategy.is_some() {
            let text = "on AWS the stack says how secrets are replaced";
            return Err(CliError::new(Exit::Usage, text)
                .hint("leave --strategy out, and set the parameter `RotationStrategy`"));
        }
        let mut failed = None;
        for subscription in chosen {
            let name = subscription.slot.as_str();
            let error = match site.begin_rotation(&subscription.slot).await {
                Ok(Begun::Now) => {
                    output.print(&Row::begun(&subscription))?;
                    continue;
                }
                Ok(Begun::NotConfigured) => CliError::new(
                    Exit::Configuration,
                    format!("Secrets Manager has no function that rotates `{name}`"),
                )
                .hint(
                    "set the stack's parameter RotationDays, or give the secret the function of \
                     the output RotatorArn, as docs/secrets.md tells",
                ),
                Ok(Begun::UnderWay) => {
                    CliError::new(Exit::TryAgain, format!("a rotation of `{name}` is under way"))
                        .hint("let it come to its end; docs/secrets.md tells how one is given up")
                }
                Err(error) => error,
            };
            failed = Some(complain(failed, error));
        }
        failed.map_or(Ok(()), Err)
    }

    /// The subscriptions whose secrets are to be replaced.
    async fn choose(
        &self,
        vault: &dyn Vault,
        webhooks: &[Webhook],
    ) -> Result<Vec<Subscription>, CliError> {
        let mut chosen = Vec::new();
        for id in vault.slots().await? {
            let Slot { current: Some(current), pending, .. } = vault.read(&id).await? else {
                // Without a value there is nothing to replace.
                continue;
            };
            let webhook = current.secret().and_then(Secret::webhook_id).map(str::to_owned);
            let event = webhooks.iter().find(|it| Some(it.id.as_str()) == webhook.as_deref());
            let event = event.map(|webhook| &webhook.event_type);
            let is_asked =
                event.and_then(EventType::kind).is_some_and(|kind| self.events.contains(&kind));
            if self.events.is_empty() || is_asked {
                chosen.push(Subscription {
                    slot: id,
                    pending: pending.map(|version| version.id),
                    webhook,
                    event: event.map(|event| event.as_str().to_owned()),
                });
            }
        }
        Ok(chosen)
    }
}

/// Takes all steps of one rotation, a new one or one that did not come to its end; gives the
/// webhook that is in force then.
async fn here(
    ports: RotatePorts<'_>,
    subscription: &Subscription,
    strategy: Strategy,
    others: Others,
) -> Result<Option<String>, CliError> {
    let version = match &subscription.pending {
        Some(pending) => pending.clone(),
        None => VersionId::parse(&SystemRandom.token())
            .map_err(|error| CliError::new(Exit::Bug, "no name for a version").because(error))?,
    };
    let slot = subscription.slot.clone();
    let rotation = Rotation { slot, version, strategy, staging: Staging::ByUs };
    let until = after(SystemClock.now(), ROTATION_MAX);
    rotate_whole(ports, &rotation, until, others, tell).await.map_err(failed)?;
    let current = ports.vault.read(&subscription.slot).await?.current;
    let secret = current.as_ref().and_then(|version| version.secret());
    Ok(secret.and_then(Secret::webhook_id).map(str::to_owned))
}

/// Says how far a rotation is, as it takes its time.
fn tell(step: Step, done: &Done) {
    match (step, done) {
        (Step::Create, Done::Registered(webhook)) => {
            let id = webhook.as_str();
            note(&format!("note: webhook {id} is registered; it delivers in some seconds"));
        }
        (Step::Create, Done::Replaced(webhook)) => {
            note(&format!("note: webhook {} has a new secret", webhook.as_str()));
        }
        _ => tracing::info!(step = step.as_str(), code = done.code(), "step of a rotation"),
    }
}

fn failed(error: RotateError) -> CliError {
    match error {
        RotateError::Port(error) => error.into(),
        RotateError::Api(error) => error.into(),
        RotateError::Busy | RotateError::OutOfTime => {
            CliError::new(Exit::TryAgain, error.to_string()).hint("run the same command again")
        }
        RotateError::Refused(refusal) => {
            let exit = match refusal {
                Refusal::Overtaken | Refusal::CurrentChanged | Refusal::Gone(_) => Exit::TryAgain,
                _ => Exit::Configuration,
            };
            let error = CliError::new(exit, refusal.to_string());
            match refusal {
                Refusal::NoRoom(_) => error.hint("`gleaner rotate --strategy in-place`"),
                _ => error,
            }
        }
    }
}

/// Says how those that are left are rotated without those that are done, if kinds tell them apart.
fn advise(done: &[Subscription], left: &[Subscription]) {
    let kinds = |all: &[Subscription]| all.iter().map(Subscription::kind).collect::<Option<_>>();
    let (Some(done), Some(left)): (Option<BTreeSet<_>>, Option<BTreeSet<_>>) =
        (kinds(done), kinds(left))
    else {
        return;
    };
    if !left.is_empty() && !done.is_empty() && done.is_disjoint(&left) {
        let flags: Vec<_> = left.into_iter().collect();
        let flags = flags.join(" --event ");
        note(&format!("note: to rotate only what is left: `gleaner rotate --event {flags}`"));
    }
}

/// Keeps the last error for the end; those before it are told at once.
fn complain(earlier: Option<CliError>, error: CliError) -> CliError {
    if let Some(earlier) = earlier {
        note(&earlier.render());
    }
    error
}
