//! Delivery logs as they should be, and as they may be, against a ledger.

mod everywhere;
mod logs;
mod scenes;
mod trouble;

use std::sync::Arc;

use self::logs::{Logs, paged};
use super::*;
use crate::entry::{Cause, Entry, StateName};
use crate::envelope::EventType;
use crate::job::{JobKey, Kind};
use crate::ports::{Delivery, DeliveryStatus, NewWebhook, WebhookId};
use crate::reconcile::Step;
use crate::testing::{MemoryWebhooks, WebhookCall};
use crate::time::before;
use crate::work::Look;
use crate::work::tests::rig::{HOUR, MINUTE, Rig, extract, id};

const SECOND: Duration = Duration::from_secs(1);
const URL: &str = "https://example.com/webhook";

const WET: Manner = Manner { look: Look::Scheduled, is_dry: false };

/// The rules by which each run is due.
fn rules() -> Rules {
    Rules { every: Duration::ZERO, ..Rules::default() }
}

/// A rig, and the platform's webhooks: one for each kind.
fn world() -> (Rig, Arc<MemoryWebhooks>, Vec<WebhookId>) {
    let rig = Rig::new();
    let webhooks = Arc::new(MemoryWebhooks::new(rig.clock.clone()));
    let ids = Kind::ALL.map(|kind| {
        let event_type = EventType::completed(kind);
        let new = NewWebhook { url: URL.to_owned(), event_type, description: None };
        let created = crate::work::tests::faults::run(webhooks.create(&new, SECOND));
        created.unwrap().unwrap().webhook.id
    });
    webhooks.clear_calls();
    (rig, webhooks, ids.into())
}

async fn run_with(
    ports: Ports<'_>,
    webhooks: &dyn Webhooks,
    rules: &Rules,
    manner: Manner,
) -> Replayed {
    let mut report = Replayed::default();
    replay(ports, webhooks, rules, manner, &mut report, &mut |_| {}).await.unwrap();
    report
}

async fn run(rig: &Rig, webhooks: &dyn Webhooks) -> Replayed {
    run_with(rig.ports(), webhooks, &rules(), WET).await
}

/// A row about an extract job, made so long ago.
fn row(rig: &Rig, job: &str, status: DeliveryStatus, answered: u16, age: Duration) -> Delivery {
    Delivery {
        id: format!("{job}-{}-{}", status.as_str(), age.as_millis()),
        event_type: EventType::ExtractCompleted,
        job_id: Some(id(job)),
        attempt_number: Some(1),
        status,
        http_status: (answered > 0).then_some(answered),
        delivered_at: None,
        created_at: Some(before(rig.now(), age)),
    }
}

fn abandoned(rig: &Rig, job: &str, age: Duration) -> Delivery {
    row(rig, job, DeliveryStatus::Abandoned, 500, age)
}

fn known(rig: &Rig) -> Vec<String> {
    rig.ledger.entries().iter().map(|entry| entry.key.job_id.to_string()).collect()
}

/// The pages of logs that were asked for since the last look.
fn take_pages(webhooks: &MemoryWebhooks) -> Vec<u32> {
    let pages = webhooks.calls().into_iter().filter_map(|call| match call {
        WebhookCall::Deliveries(_, page) => Some(page),
        _ => None,
    });
    let pages = pages.collect();
    webhooks.clear_calls();
    pages
}

/// How far the log of this webhook was read.
fn saved(rig: &Rig, webhook: &WebhookId) -> saved::Log {
    let rows = rig.ledger.controls();
    let row = rows.iter().find(|row| row.name == ROW).unwrap();
    let saved: Saved = serde_json::from_str(&row.value).unwrap();
    saved.logs[webhook].clone()
}
