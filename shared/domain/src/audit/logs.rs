//! The delivery logs' side.

use std::collections::BTreeMap;

use super::books::Books;
use super::{Sheet, trouble};
use crate::job::JobKey;
use crate::limits::{LIST_PAGE_MAX, LIST_PAGES_MAX};
use crate::ports::{ApiErrorKind, DeliveryStatus, Webhook};
use crate::subscribe::Account;

/// Reads the logs of all webhooks. They have no order and no dates to ask for, so that each is read
/// to its end.
pub(super) async fn read(account: Account<'_>, books: &mut Books, sheet: &mut Sheet) {
    let listed = match account.list().await {
        Ok(listed) => listed.webhooks,
        Err(error) => return sheet.unproved.push(trouble("the webhooks cannot be listed", &error)),
    };
    for webhook in &listed {
        read_log(account, webhook, books, sheet).await;
    }
}

async fn read_log(account: Account<'_>, webhook: &Webhook, books: &mut Books, sheet: &mut Sheet) {
    // Whether one delivery of the job's event was taken.
    let mut events: BTreeMap<JobKey, bool> = BTreeMap::new();
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
        for delivery in log.deliveries {
            let at = delivery.created_at.or(delivery.delivered_at);
            if at.is_none_or(|at| !books.period.holds(at)) {
                continue;
            }
            let (Some(job_id), Some(kind)) = (delivery.job_id, delivery.event_type.kind()) else {
                sheet.deliveries.unreadable += 1;
                continue;
            };
            let taken = events.entry(JobKey::new(kind, job_id)).or_default();
            *taken |= delivery.status == DeliveryStatus::Success;
        }
    }
    for (key, taken) in events {
        let count =
            if taken { &mut sheet.deliveries.taken } else { &mut sheet.deliveries.not_taken };
        *count += 1;
        books.log(key);
    }
}
