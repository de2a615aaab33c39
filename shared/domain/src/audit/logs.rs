//! The delivery logs' side.

use std::collections::BTreeMap;

use super::books::{Books, hash};
use super::judge::{Named, facts};
use super::rows::{Fresh, once_more};
use super::{Discrepancy, Sheet, trouble};
use crate::job::JobKey;
use crate::limits::{LIST_PAGE_MAX, LIST_PAGES_MAX};
use crate::ports::{ApiErrorKind, DeliveryStatus, PortError, Webhook};
use crate::steps::Ports;
use crate::subscribe::Account;
use crate::time::Timestamp;

/// Reads the logs of all webhooks. They have no order and no dates to ask for, so that each is read
/// to its end.
pub(super) async fn read(
    ports: Ports<'_>,
    account: Account<'_>,
    left_from: Timestamp,
    books: &mut Books,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    let listed = match account.list().await {
        Ok(listed) => listed.webhooks,
        Err(error) => {
            sheet.unproved.push(trouble("the webhooks cannot be listed", &error));
            return Ok(());
        }
    };
    for webhook in &listed {
        read_log(ports, account, (webhook, left_from), books, sheet).await?;
    }
    Ok(())
}

async fn read_log(
    ports: Ports<'_>,
    account: Account<'_>,
    (webhook, left_from): (&Webhook, Timestamp),
    books: &mut Books,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    // By the job's hash, whether one delivery of its event was taken.
    let mut events: BTreeMap<u64, bool> = BTreeMap::new();
    for page in 1..=LIST_PAGES_MAX {
        let (webhooks, within) = (account.webhooks, account.within);
        let call = || webhooks.deliveries(&webhook.id, page, LIST_PAGE_MAX, within);
        let log = match account.patiently(call).await {
            Ok(log) => log,
            // It was deleted meanwhile, and its log with it.
            Err(error) if error.kind == ApiErrorKind::Missing => break,
            Err(error) => {
                let what = format!("the log of webhook {} cannot be read", webhook.id.as_str());
                sheet.unproved.push(trouble(&what, &error));
                break;
            }
        };
        if log.deliveries.is_empty() && log.unreadable == 0 {
            break;
        }
        sheet.deliveries.unreadable += u64::from(log.unreadable);
        let mut strangers = Vec::new();
        for delivery in log.deliveries {
            let at = delivery.created_at.or(delivery.delivered_at);
            if at.is_none_or(|at| !books.period.holds(at)) {
                continue;
            }
            let (Some(job_id), Some(kind)) = (delivery.job_id, delivery.event_type.kind()) else {
                sheet.deliveries.unreadable += 1;
                continue;
            };
            let key = JobKey::new(kind, job_id);
            let taken = events.entry(hash(&key)).or_default();
            let is_taken = delivery.status == DeliveryStatus::Success;
            *taken |= is_taken;
            // Whoever takes a delivery has written its row before, however young the job is.
            let is_missed = is_taken || at.is_none_or(|at| at <= left_from);
            if books.log(&key, is_missed) {
                strangers.push(key);
            }
        }
        judge_strangers(ports, &strangers, sheet).await?;
    }
    for taken in events.into_values() {
        let count =
            if taken { &mut sheet.deliveries.taken } else { &mut sheet.deliveries.not_taken };
        *count += 1;
    }
    Ok(())
}

/// Looks for jobs that a log alone names: those of another period have a row all the same.
async fn judge_strangers(
    ports: Ports<'_>,
    strangers: &[JobKey],
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    let fresh = once_more(ports, strangers).await?;
    for (key, fresh) in strangers.iter().zip(fresh) {
        if matches!(fresh, Fresh::Read(None)) {
            sheet.find(Discrepancy::UnknownJob, Some(key), facts(Named::Logged, None));
        }
    }
    Ok(())
}
