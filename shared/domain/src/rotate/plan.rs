//! What a step of a rotation has to do, decided from what is known.

use std::time::Duration;

use super::mark::Mark;
use super::refusal::Refusal;
use super::{Done, Rotation, Staging, Step, Strategy};
use crate::ports::{Holds, NewWebhook, Slot, VersionId, Webhook, WebhookChange, WebhookId};
use crate::signature::secret::Secret;
use crate::subscribe::Listed;
use crate::subscriptions::is_same_url;
use crate::time::Timestamp;

/// What is known when a step begins.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The rotation.
    pub rotation: &'a Rotation,
    /// Its slot.
    pub slot: &'a Slot,
    /// The account's webhooks; those that the slot names are among them unless they are gone.
    pub webhooks: &'a Listed,
    /// How long an orphan is left alone.
    pub patience: Duration,
    /// The present instant.
    pub now: Timestamp,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Nothing; the step was done before, or has nothing to do.
    Nothing(Done),
    /// Register a second webhook and keep its secret as the pending one.
    Register {
        /// The webhook.
        new: NewWebhook,
        /// Orphans whose secret somebody may still be about to keep: no delivery of theirs can be
        /// accepted meanwhile.
        quieten: Vec<WebhookId>,
        /// Orphans.
        delete: Vec<WebhookId>,
    },
    /// Let the platform replace the webhook's secret, and keep the new one as the pending one.
    Replace {
        /// The webhook.
        webhook: WebhookId,
        /// Orphans of an earlier rotation by a second webhook, as for [`Plan::Register`].
        quieten: Vec<WebhookId>,
        /// Orphans.
        delete: Vec<WebhookId>,
    },
    /// Bring the new webhook into the state of the old one, not before all receivers can find its
    /// secret.
    Bring {
        /// The new webhook.
        webhook: WebhookId,
        /// What is not as it should be.
        change: WebhookChange,
    },
    /// Take the pending label away from a version that can never become the current one, so that
    /// another rotation can begin.
    GiveUp(Refusal),
    /// Make the pending version the current one.
    Finish {
        /// The version that is the current one now.
        over: VersionId,
        /// The webhook that has served its time, and the one that took its place.
        leaving: Option<(WebhookId, WebhookId)>,
    },
}

/// Decides what a step does.
///
/// # Errors
/// When the step must not be taken.
pub fn plan(known: Known<'_>, step: Step) -> Result<Plan, Refusal> {
    let Standing::Under { current, pending } = standing(known.rotation, known.slot)? else {
        return Ok(Plan::Nothing(Done::AlreadyCurrent));
    };
    match (step, pending) {
        (Step::Create, Some(_)) => Ok(Plan::Nothing(Done::AlreadyPending)),
        (Step::Create, None) => create(known, current),
        (_, None) => Err(Refusal::NotCreated),
        (Step::Set, Some(pending)) => set(known, current, pending),
        (Step::Test, Some(pending)) => match test(known, current, pending)? {
            Tested::Gone(refusal) => Ok(Plan::GiveUp(refusal)),
            Tested::Same | Tested::Fits { .. } => Ok(Plan::Nothing(Done::Sound)),
        },
        (Step::Finish, Some(pending)) => finish(known, current, pending),
    }
}

/// How far a rotation is, as its slot tells.
#[derive(Debug)]
pub(super) enum Standing<'a> {
    /// Its version is the current one.
    Finished,
    /// It is under way.
    Under {
        /// The secret that is to be replaced.
        current: &'a Secret,
        /// The new secret, once it is kept.
        pending: Option<&'a Secret>,
    },
}

/// Reads from a slot how far a rotation is.
///
/// # Errors
/// When the slot cannot be rotated, or another rotation is under way.
pub(super) fn standing<'a>(rotation: &Rotation, slot: &'a Slot) -> Result<Standing<'a>, Refusal> {
    if !slot.is_rotated {
        return Err(Refusal::NotEnabled);
    }
    let current = slot.current.as_ref().ok_or(Refusal::NoCurrent)?;
    if current.id == rotation.version {
        return Ok(Standing::Finished);
    }
    let pending = match &slot.pending {
        Some(pending) if pending.id == rotation.version => match &pending.holds {
            Holds::Nothing => None,
            Holds::Secret(secret) => Some(secret),
            Holds::Unusable(error) => return Err(Refusal::Unusable(*error)),
        },
        Some(pending) => return Err(Refusal::OtherPending(pending.id.clone())),
        None => match rotation.staging {
            Staging::ByStore => return Err(Refusal::NotStaged),
            Staging::ByUs => None,
        },
    };
    match &current.holds {
        Holds::Secret(current) => Ok(Standing::Under { current, pending }),
        Holds::Nothing => Err(Refusal::NoCurrent),
        Holds::Unusable(error) => Err(Refusal::Unusable(*error)),
    }
}

/// The webhook that a secret belongs to.
pub(super) fn webhook_of(secret: &Secret) -> Result<WebhookId, Refusal> {
    let id = secret.webhook_id().and_then(|id| WebhookId::parse(id).ok());
    id.ok_or(Refusal::NoWebhook)
}

fn create(known: Known<'_>, current: &Secret) -> Result<Plan, Refusal> {
    let id = webhook_of(current)?;
    let old = known.webhooks.find(&id).ok_or_else(|| Refusal::Gone(id.clone()))?;
    let (mut quieten, mut delete) = (Vec::new(), Vec::new());
    for (webhook, left) in orphans(known, &id) {
        if left.is_zero() {
            delete.push(webhook.id.clone());
        } else if webhook.is_active {
            quieten.push(webhook.id.clone());
        }
    }
    if known.rotation.strategy == Strategy::InPlace {
        return Ok(Plan::Replace { webhook: id, quieten, delete });
    }
    let mark = Mark::new(&known.rotation.version, &id, known.now);
    let new = NewWebhook {
        url: old.url.clone(),
        event_type: old.event_type.clone(),
        description: Some(mark.describe(old.description.as_deref())),
    };
    Ok(Plan::Register { new, quieten, delete })
}

/// Webhooks that rotations of this one registered and whose secrets are not in its slot, each with
/// the time for which it is still left alone.
fn orphans<'a>(known: Known<'a>, replaced: &WebhookId) -> Vec<(&'a Webhook, Duration)> {
    let Known { slot, webhooks, patience, now, .. } = known;
    let is_known = |id: &WebhookId| {
        let mut ids = slot.versions().filter_map(|version| version.secret()?.webhook_id());
        ids.any(|known| known == id.as_str())
    };
    let mut found = Vec::new();
    for webhook in &webhooks.webhooks {
        if let Some(mark) = Mark::of(webhook)
            && mark.replaces == *replaced
            && !is_known(&webhook.id)
        {
            found.push((webhook, mark.protected_for(patience, now)));
        }
    }
    found
}

fn set(known: Known<'_>, current: &Secret, pending: &Secret) -> Result<Plan, Refusal> {
    let (old, new) = (webhook_of(current)?, webhook_of(pending)?);
    if old == new {
        return Ok(Plan::Nothing(Done::InForce));
    }
    let Some(new) = known.webhooks.find(&new) else {
        return Ok(Plan::GiveUp(Refusal::Gone(new)));
    };
    // Without an old one there is nothing to follow.
    let model = known.webhooks.find(&old).unwrap_or(new);
    let change = WebhookChange {
        url: (!is_same_url(&new.url, &model.url)).then(|| model.url.clone()),
        event_type: (new.event_type != model.event_type).then(|| model.event_type.clone()),
        is_active: (!new.is_active).then_some(true),
        description: None,
    };
    if change == WebhookChange::default() {
        return Ok(Plan::Nothing(Done::InForce));
    }
    Ok(Plan::Bring { webhook: new.id.clone(), change })
}

/// What is seen of a new secret's webhook.
enum Tested {
    /// It is not there.
    Gone(Refusal),
    /// It is the old one.
    Same,
    /// It can take the place of the old one.
    Fits { old: WebhookId, new: WebhookId },
}

fn test(known: Known<'_>, current: &Secret, pending: &Secret) -> Result<Tested, Refusal> {
    let (old, new) = (webhook_of(current)?, webhook_of(pending)?);
    let Some(webhook) = known.webhooks.find(&new) else {
        return Ok(Tested::Gone(Refusal::Gone(new)));
    };
    if old == new {
        return Ok(Tested::Same);
    }
    fits(webhook, known.webhooks.find(&old))?;
    Ok(Tested::Fits { old, new })
}

/// Whether a webhook can take the place of another, which may be gone.
///
/// # Errors
/// When it cannot.
pub(crate) fn fits(new: &Webhook, old: Option<&Webhook>) -> Result<(), Refusal> {
    let unfit = |why| Refusal::Unfit { webhook: new.id.clone(), why };
    if !new.is_active {
        return Err(unfit("is not active"));
    }
    if old.is_some_and(|old| !is_same_url(&old.url, &new.url)) {
        return Err(unfit("delivers to another URL"));
    }
    if old.is_some_and(|old| old.event_type != new.event_type) {
        return Err(unfit("delivers another event"));
    }
    Ok(())
}

fn finish(known: Known<'_>, current: &Secret, pending: &Secret) -> Result<Plan, Refusal> {
    let leaving = match test(known, current, pending)? {
        Tested::Gone(refusal) => return Ok(Plan::GiveUp(refusal)),
        Tested::Same => None,
        Tested::Fits { old, new } => Some((old, new)),
    };
    let over = known.slot.current.as_ref().ok_or(Refusal::NoCurrent)?.id.clone();
    Ok(Plan::Finish { over, leaving })
}
