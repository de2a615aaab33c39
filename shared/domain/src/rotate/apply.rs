//! Doing what a step has decided.

use std::time::Duration;

use super::hold::{hold, release, take, take_over};
use super::plan::{Known, Plan, Standing, plan, standing, webhook_of};
use super::{Done, Others, PROTECTED, Refusal, RotateError, RotatePorts, Rotation, Step};
use crate::ports::{
    ApiError, ApiErrorKind, NewWebhook, PortError, Promoted, PutPending, Slot, SlotId, SubmitError,
    VersionId, WebhookChange, WebhookId,
};
use crate::retire::rows::{self, Retirement};
use crate::retire::{Retired, switch_off};
use crate::signature::secret::Secret;
use crate::subscribe::{Account, Listed};
use crate::time::{Timestamp, between};
use crate::within::within;

/// Time at the end of a step in which nothing of it happens any more but its claim is given back.
pub(super) const RELEASE_TIME: Duration = Duration::from_secs(2);
/// Tries of one call of the platform.
const CALL_TRIES: u32 = 5;
/// Tries to keep a secret that the platform has shown, and the pause between two. Nobody will ever
/// see it again.
const KEEP_TRIES: u32 = 8;
const KEEP_PAUSE: Duration = Duration::from_secs(1);

/// Takes one step, until `deadline` at the latest, at which the process may be ended.
///
/// # Contract
/// One process at a time is at work on a slot; a claim that is lost with its process ends at the
/// deadline. The step may be taken again, whatever it ended with. When the answer is lost it may be
/// done.
///
/// # Errors
/// See [`RotateError`].
pub async fn rotate(
    ports: RotatePorts<'_>,
    rotation: &Rotation,
    step: Step,
    deadline: Timestamp,
) -> Result<Done, RotateError> {
    let claim = hold(ports, &rotation.slot, deadline).await?;
    let left = between(ports.clock.now(), deadline).saturating_sub(RELEASE_TIME);
    let taken = within(ports.clock, left, take_step(ports, rotation, step, PROTECTED)).await;
    release(ports, claim).await;
    taken.unwrap_or(Err(RotateError::OutOfTime))
}

/// Takes all steps, one after the other; `told` hears of each.
///
/// # Contract
/// As [`rotate`]; whoever comes in between is refused, from the first step to the last. Where others
/// are excluded, a claim is one of a process that has ended, and is not waited for; and nobody can
/// be about to keep the secret of an orphan, so that each is deleted at once.
///
/// # Errors
/// See [`RotateError`].
pub async fn rotate_whole(
    ports: RotatePorts<'_>,
    rotation: &Rotation,
    deadline: Timestamp,
    others: Others,
    mut told: impl FnMut(Step, &Done),
) -> Result<(), RotateError> {
    let now = ports.clock.now();
    let (claim, patience) = match others {
        Others::Possible => (take(ports, &rotation.slot, now, deadline).await?, PROTECTED),
        Others::Excluded => (take_over(ports, &rotation.slot, deadline).await?, Duration::ZERO),
    };
    let claim = claim.ok_or(RotateError::Busy)?;
    let left = between(now, deadline).saturating_sub(RELEASE_TIME);
    let taken = within(ports.clock, left, async {
        for step in Step::ALL {
            told(step, &take_step(ports, rotation, step, patience).await?);
        }
        Ok(())
    })
    .await;
    release(ports, claim).await;
    taken.unwrap_or(Err(RotateError::OutOfTime))
}

async fn take_step(
    ports: RotatePorts<'_>,
    rotation: &Rotation,
    step: Step,
    patience: Duration,
) -> Result<Done, RotateError> {
    let slot = ports.vault.read(&rotation.slot).await?;
    let standing = standing(rotation, &slot)?;
    if matches!(step, Step::Create) || matches!(standing, Standing::Finished) {
        settle_retirements(ports, &slot).await?;
    }
    let webhooks = match (step, &standing) {
        (_, Standing::Finished) | (Step::Create, Standing::Under { pending: Some(_), .. }) => {
            Listed::default()
        }
        (_, Standing::Under { .. }) => webhooks(ports, &slot).await?,
    };
    let now = ports.clock.now();
    let known = Known { rotation, slot: &slot, webhooks: &webhooks, patience, now };
    match plan(known, step)? {
        Plan::Nothing(done) => Ok(done),
        Plan::Register { new, quieten, delete } => {
            clear_away(ports, &quieten, &delete).await;
            register(ports, rotation, &new).await
        }
        Plan::Replace { webhook, quieten, delete } => {
            clear_away(ports, &quieten, &delete).await;
            replace(ports, rotation, webhook).await
        }
        Plan::Bring { webhook, change } => bring(ports, webhook, change).await,
        Plan::GiveUp(refusal) => {
            ports.vault.give_up(&rotation.slot, &rotation.version).await?;
            Err(refusal.into())
        }
        Plan::Finish { over, leaving } => finish(ports, rotation, &over, leaving).await,
    }
}

fn account(ports: RotatePorts<'_>) -> Account<'_> {
    Account {
        webhooks: ports.webhooks,
        clock: ports.clock,
        random: ports.random,
        within: ports.limits.call_timeout,
        tries: CALL_TRIES,
    }
}

/// The account's webhooks; each one of the slot that is not listed, as a list may lag, is asked for
/// by its id.
async fn webhooks(ports: RotatePorts<'_>, slot: &Slot) -> Result<Listed, ApiError> {
    let account = account(ports);
    let mut listed = account.list().await?;
    let secrets = slot.versions().filter_map(crate::ports::Version::secret);
    for id in secrets.filter_map(|secret| webhook_of(secret).ok()) {
        if listed.find(&id).is_none() {
            listed.webhooks.extend(account.find(&id).await?);
        }
    }
    Ok(listed)
}

/// Lets those go whose successor has become the current one, though whoever made it so was ended
/// before it could say so.
async fn settle_retirements(ports: RotatePorts<'_>, slot: &Slot) -> Result<(), RotateError> {
    let current = slot.current.as_ref().and_then(|version| version.secret());
    let Some(current) = current.and_then(|secret| webhook_of(secret).ok()) else { return Ok(()) };
    let_go(ports, &slot.id, &current).await
}

async fn let_go(
    ports: RotatePorts<'_>,
    slot: &SlotId,
    current: &WebhookId,
) -> Result<(), RotateError> {
    let now = ports.clock.now();
    for row in rows::confirm(ports.control, slot, current, now).await? {
        // The row is there: what does not succeed here is done by the next tick.
        let _ = switch_off(account(ports), ports.control, &row, &mut Retired::default()).await;
    }
    Ok(())
}

/// Does away with orphans as well as can be: the next rotation and the retirement do it again.
async fn clear_away(ports: RotatePorts<'_>, quieten: &[WebhookId], delete: &[WebhookId]) {
    for webhook in quieten {
        switch(ports, webhook, false).await;
    }
    for webhook in delete {
        let _ = account(ports).delete(webhook).await;
    }
}

/// Switches a webhook on or off as well as can be.
async fn switch(ports: RotatePorts<'_>, webhook: &WebhookId, is_active: bool) {
    let change = WebhookChange { is_active: Some(is_active), ..WebhookChange::default() };
    let within = ports.limits.call_timeout;
    let call = || ports.webhooks.update(webhook, &change, within);
    let _ = account(ports).patiently(call).await;
}

async fn register(
    ports: RotatePorts<'_>,
    rotation: &Rotation,
    new: &NewWebhook,
) -> Result<Done, RotateError> {
    let created = match account(ports).register(new).await {
        Ok(created) => created,
        Err(error) if error.kind == ApiErrorKind::Refused => {
            return Err(Refusal::NoRoom(error.to_string()).into());
        }
        Err(error) => return Err(error.into()),
    };
    let id = created.webhook.id;
    match keep(ports, rotation, &id, created.secret).await {
        Ok(PutPending::Kept) => {
            // Until every receiver can find the secret, nothing shall be signed with it. The next
            // step switches the webhook on.
            switch(ports, &id, false).await;
            Ok(Done::Registered(id))
        }
        Ok(PutPending::Taken) => {
            // Another try of this step was faster; nobody knows the secret of this one.
            account(ports).delete(&id).await?;
            Ok(Done::AlreadyPending)
        }
        Err(error) => {
            // Its secret may have been kept all the same, so that it must not be deleted now.
            switch(ports, &id, false).await;
            Err(error.into())
        }
    }
}

async fn replace(
    ports: RotatePorts<'_>,
    rotation: &Rotation,
    id: WebhookId,
) -> Result<Done, RotateError> {
    let secret = replaced(ports, &id).await?;
    match keep(ports, rotation, &id, secret).await? {
        PutPending::Kept => Ok(Done::Replaced(id)),
        PutPending::Taken => {
            // What is kept under this version must not become the current one.
            ports.vault.give_up(&rotation.slot, &rotation.version).await?;
            Err(Refusal::Overtaken.into())
        }
    }
}

/// Lets the platform replace a secret. An answer that was lost is asked for again, which replaces
/// the secret once more: the last one counts.
async fn replaced(ports: RotatePorts<'_>, id: &WebhookId) -> Result<Secret, ApiError> {
    let account = account(ports);
    let mut attempt = 0;
    loop {
        let error = match ports.webhooks.rotate_secret(id, account.within).await {
            Ok(secret) => return Ok(secret),
            Err(SubmitError::Refused(error) | SubmitError::Unanswered(error)) => error,
        };
        attempt += 1;
        account.pause_or_fail(attempt, error).await?;
    }
}

/// Keeps a secret that the platform has shown.
async fn keep(
    ports: RotatePorts<'_>,
    rotation: &Rotation,
    webhook: &WebhookId,
    secret: Secret,
) -> Result<PutPending, PortError> {
    // An id is shorter than the longest one of a secret, and printable.
    let secret = secret.clone().with_webhook_id(webhook.as_str()).unwrap_or(secret);
    let mut attempt = 0;
    loop {
        let put = ports.vault.put_pending(&rotation.slot, &rotation.version, &secret).await;
        attempt += 1;
        match put {
            Err(error) if error.is_transient() && attempt < KEEP_TRIES => {
                ports.clock.sleep(error.retry_after.unwrap_or(KEEP_PAUSE).min(KEEP_PAUSE)).await;
            }
            put => return put,
        }
    }
}

async fn bring(
    ports: RotatePorts<'_>,
    webhook: WebhookId,
    change: WebhookChange,
) -> Result<Done, RotateError> {
    if change.is_active == Some(true) {
        // Whoever looked at the secrets just before the new one was kept looks again by then.
        ports.clock.sleep(ports.limits.secret_cooldown).await;
    }
    let within = ports.limits.call_timeout;
    let call = || ports.webhooks.update(&webhook, &change, within);
    account(ports).patiently(call).await?;
    Ok(Done::Brought(webhook))
}

async fn finish(
    ports: RotatePorts<'_>,
    rotation: &Rotation,
    over: &VersionId,
    leaving: Option<(WebhookId, WebhookId)>,
) -> Result<Done, RotateError> {
    let now = ports.clock.now();
    if let Some((old, new)) = &leaving {
        // Before the secret is promoted: otherwise a process that ends in between would leave a
        // webhook that nobody takes away.
        let row = Retirement::prepared(&rotation.slot, old.clone(), new.clone(), now);
        rows::put(ports.control, &row).await?;
    }
    match ports.vault.promote(&rotation.slot, &rotation.version, over, now).await? {
        Promoted::Done => {}
        Promoted::Conflict => return Err(Refusal::CurrentChanged.into()),
    }
    if let Some((_, new)) = &leaving {
        let_go(ports, &rotation.slot, new).await?;
    }
    Ok(Done::Promoted)
}
