//! Taking away the webhook that a rotation has replaced.
//!
//! It is switched off when its successor is seen to be in force; when what was under way has come
//! to its end, its delivery log is read a last time, each job without a success in it is announced,
//! and the webhook is deleted. Orphans of the rotation that replaced it go with it.
//!
//! Each part may happen twice and may end anywhere: the row says how far it is, and is written
//! after the effect.

pub mod rows;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::announce::{AnnounceOutcome, AnnouncePorts, announce};
use crate::entry::Cause;
use crate::job::JobKey;
use crate::limits::{LIST_PAGE_MAX, LIST_PAGES_MAX};
use crate::ports::{
    ApiError, ApiErrorKind, Control, Delivery, DeliveryStatus, PortError, WebhookChange, WebhookId,
    Webhooks,
};
use crate::rotate::PROTECTED;
use crate::rotate::mark::Mark;
use crate::rotate::plan::fits;
use crate::subscribe::Account;
use crate::time::{Timestamp, after, before};
use rows::{Phase, Retirement};

/// How long deliveries of a webhook that was switched off may still be under way, and the rows of
/// its log may still change: more than any platform waits for an answer.
const DRAIN: Duration = Duration::from_mins(5);
/// Pause before a retirement that cannot go on is looked at again.
const BLOCKED_PAUSE: Duration = Duration::from_mins(15);
/// Tries of one call of the platform; the next tick is the retry.
const TRIES: u32 = 2;

/// What retiring needs.
#[derive(Clone, Copy)]
pub struct RetirePorts<'a> {
    /// Where jobs are announced.
    pub announcing: AnnouncePorts<'a>,
    /// The platform's webhooks.
    pub webhooks: &'a dyn Webhooks,
    /// Where the retirements are.
    pub control: &'a dyn Control,
}

impl<'a> RetirePorts<'a> {
    fn account(&self) -> Account<'a> {
        let AnnouncePorts { clock, random, limits, .. } = self.announcing;
        let webhooks = self.webhooks;
        Account { webhooks, clock, random, within: limits.call_timeout, tries: TRIES }
    }

    fn now(&self) -> Timestamp {
        self.announcing.clock.now()
    }
}

/// What one pass did.
#[derive(Debug, Default)]
pub struct Retired {
    /// Webhooks that were switched off.
    pub switched_off: u32,
    /// Jobs that were announced from logs, and were not known to have settled.
    pub announced: u32,
    /// Webhooks that were deleted after their last look.
    pub deleted: u32,
    /// Orphans that were deleted.
    pub orphans: u32,
    /// Rows of logs that could not be read.
    pub unreadable: u32,
    /// Retirements that wait for a rotation to end.
    pub prepared: u32,
    /// Why retirements do not go on: the webhook, and the reason.
    pub blocked: Vec<(WebhookId, String)>,
    /// Trouble of the platform or the ledger, which ended the pass for its webhook.
    pub troubles: Vec<Trouble>,
    /// Whether time ran out; the next pass goes on.
    pub is_out_of_time: bool,
}

/// Trouble of a part.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The ledger or the queue failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The platform failed.
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl Retired {
    fn block(&mut self, webhook: &WebhookId, why: String) {
        self.blocked.push((webhook.clone(), why));
    }
}

/// Works off the retirements that are due, for at most `left`.
///
/// # Contract
/// Harmless twice and at once. Whatever goes wrong with one retirement is told in the report and
/// leaves the others alone.
///
/// # Errors
/// When the retirements cannot be read at all.
pub async fn work_off(ports: RetirePorts<'_>, left: Duration) -> Result<Retired, PortError> {
    let mut retired = Retired::default();
    let began = ports.now();
    let until = after(began, left);
    for row in rows::list(ports.control).await? {
        if row.phase == Phase::Prepared {
            retired.prepared += 1;
            continue;
        }
        if row.due_at > began {
            continue;
        }
        if ports.now() >= until {
            retired.is_out_of_time = true;
            break;
        }
        let worked = match row.phase {
            Phase::Prepared => Ok(()),
            Phase::Leaving => switch_off(ports.account(), ports.control, &row, &mut retired).await,
            Phase::Draining => bury(ports, &row, until, &mut retired).await,
        };
        if let Err(trouble) = worked {
            retired.troubles.push(trouble);
        }
    }
    Ok(retired)
}

/// Switches a webhook off that has been replaced, if its successor is in force.
///
/// # Errors
/// Those of the platform and the ledger; the next pass goes on.
pub(crate) async fn switch_off(
    account: Account<'_>,
    control: &dyn Control,
    row: &Retirement,
    retired: &mut Retired,
) -> Result<(), Trouble> {
    let now = account.clock.now();
    let Some(old) = account.find(&row.webhook_id).await? else {
        return Ok(rows::remove(control, row).await?);
    };
    let unfit = match account.find(&row.successor).await? {
        Some(successor) => fits(&successor, Some(&old)).err().map(|refusal| refusal.to_string()),
        None => Some(format!("webhook {} does not exist any more", row.successor.as_str())),
    };
    if let Some(why) = unfit {
        retired.block(&row.webhook_id, why);
        let later = Retirement { due_at: after(now, BLOCKED_PAUSE), ..row.clone() };
        return Ok(rows::replace(control, row, &later).await?);
    }
    if old.is_active {
        let off = WebhookChange { is_active: Some(false), ..WebhookChange::default() };
        let call = || account.webhooks.update(&old.id, &off, account.within);
        account.patiently(call).await?;
        retired.switched_off += 1;
    }
    let draining = Retirement { phase: Phase::Draining, due_at: after(now, DRAIN), ..row.clone() };
    Ok(rows::replace(control, row, &draining).await?)
}

/// Reads the log a last time, then deletes the webhook and the orphans that were to replace it.
async fn bury(
    ports: RetirePorts<'_>,
    row: &Retirement,
    until: Timestamp,
    retired: &mut Retired,
) -> Result<(), Trouble> {
    let account = ports.account();
    let looked = last_look(ports, account, row, until, retired).await?;
    let row = &match looked {
        Looked::Whole => row.clone(),
        Looked::UpTo(page) => {
            retired.is_out_of_time = true;
            let later = Retirement { page, ..row.clone() };
            return Ok(rows::replace(ports.control, row, &later).await?);
        }
    };
    let protected = delete_orphans(ports, account, row, retired).await?;
    if !protected.is_zero() {
        let now = ports.now();
        let later = Retirement { due_at: after(now, protected), ..row.clone() };
        return Ok(rows::replace(ports.control, row, &later).await?);
    }
    account.delete(&row.webhook_id).await?;
    retired.deleted += 1;
    Ok(rows::remove(ports.control, row).await?)
}

/// How far a log was read.
enum Looked {
    Whole,
    UpTo(u32),
}

/// Announces each job that the log tells of without a success beside it. What is announced twice,
/// or has long settled, stays as it is.
async fn last_look(
    ports: RetirePorts<'_>,
    account: Account<'_>,
    row: &Retirement,
    until: Timestamp,
    retired: &mut Retired,
) -> Result<Looked, Trouble> {
    let forgotten = before(ports.now(), ports.announcing.limits.retention);
    for page in row.page..=LIST_PAGES_MAX {
        if ports.now() >= until {
            return Ok(Looked::UpTo(page));
        }
        let call =
            || account.webhooks.deliveries(&row.webhook_id, page, LIST_PAGE_MAX, account.within);
        let listed = match account.patiently(call).await {
            Ok(listed) => listed,
            // It was deleted by somebody, and its log with it.
            Err(error) if error.kind == ApiErrorKind::Missing => break,
            Err(error) => return Err(error.into()),
        };
        retired.unreadable = retired.unreadable.saturating_add(listed.unreadable);
        if listed.deliveries.is_empty() && listed.unreadable == 0 {
            break;
        }
        for (key, delivery) in missed(&listed.deliveries, forgotten) {
            let said = announce(ports.announcing, &key, Cause::Replay, Some(&delivery.id));
            if !matches!(said.await?, AnnounceOutcome::Known(_)) {
                retired.announced += 1;
            }
        }
    }
    Ok(Looked::Whole)
}

/// The jobs of one page that no delivery of this page told us of, each once.
fn missed(deliveries: &[Delivery], forgotten: Timestamp) -> Vec<(JobKey, &Delivery)> {
    let key = |delivery: &Delivery| {
        Some(JobKey::new(delivery.event_type.kind()?, delivery.job_id.clone()?))
    };
    let told = |delivery: &&Delivery| delivery.status == DeliveryStatus::Success;
    let mut seen: BTreeSet<JobKey> = deliveries.iter().filter(told).filter_map(key).collect();
    let is_recent = |delivery: &&Delivery| delivery.created_at.is_none_or(|at| at > forgotten);
    let recent = deliveries.iter().filter(is_recent);
    let missed = recent.filter_map(|delivery| Some((key(delivery)?, delivery)));
    missed.filter(|(key, _)| seen.insert(key.clone())).collect()
}

/// Deletes what else was registered to replace the webhook and did not come to it; gives how long
/// one of them is still to be left alone.
async fn delete_orphans(
    ports: RetirePorts<'_>,
    account: Account<'_>,
    row: &Retirement,
    retired: &mut Retired,
) -> Result<Duration, Trouble> {
    let now = ports.now();
    let mut protected = Duration::ZERO;
    let leaving = rows::list(ports.control).await?;
    for webhook in account.list().await?.webhooks {
        let Some(mark) = Mark::of(&webhook) else { continue };
        // One that has come to it, and was replaced in its turn, has a retirement of its own.
        let is_retiring = leaving.iter().any(|other| other.webhook_id == webhook.id);
        if mark.replaces != row.webhook_id || webhook.id == row.successor || is_retiring {
            continue;
        }
        let left = mark.protected_for(PROTECTED, now);
        if left.is_zero() {
            account.delete(&webhook.id).await?;
            retired.orphans += 1;
        }
        protected = protected.max(left);
    }
    Ok(protected)
}

#[cfg(test)]
mod tests;
