//! The delivery log of a webhook.

use serde_json::{Value, json};

use crate::config::LogRows;
use crate::dice::Key;
use crate::moment::Moment;
use crate::platform::Platform;
use crate::webhooks::Webhook;

/// A row of the delivery log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogRow {
    pub(crate) status: RowStatus,
    pub(crate) delivery: Key,
    pub(crate) number: u32,
    pub(crate) job: u32,
    pub(crate) http_status: Option<u16>,
    pub(crate) delivered_at: Option<Moment>,
    pub(crate) created_at: Moment,
}

/// Status of a log row (contract 1.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowStatus {
    Pending,
    Success,
    Failed,
    Abandoned,
}

impl RowStatus {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
        }
    }
}

impl Platform {
    /// Adds a row; `None` if the webhook is gone, and its log with it.
    pub(crate) fn push_row(
        &mut self,
        webhook: usize,
        job: u32,
        delivery: Key,
        number: u32,
        status: RowStatus,
    ) -> Option<usize> {
        let created_at = self.now;
        let log = &mut self.webhooks.get_mut(webhook).filter(|w| !w.is_deleted)?.log;
        log.push(LogRow {
            status,
            delivery,
            number,
            job,
            http_status: None,
            delivered_at: None,
            created_at,
        });
        Some(log.len() - 1)
    }

    /// Makes the id that a delivery's attempt bears in the log and on the wire.
    pub(crate) fn delivery_id(&self, delivery: Key, number: u32) -> String {
        let key = match self.config.webhooks.log {
            LogRows::RowPerAttempt => delivery.child(u64::from(number)),
            LogRows::RowPerDelivery => delivery,
        };
        self.dice.uuid("delivery", key)
    }

    pub(crate) fn log_row_json(&self, webhook: &Webhook, row: &LogRow) -> Value {
        let rate = self.config.faults.deliveries.null_job_id;
        let key = row.delivery.child(u64::from(row.number));
        let is_nameless = self.dice.happens("null_job_id", key, rate);
        let job_id = self.job(row.job).map(|job| &job.id).filter(|_| !is_nameless);
        json!({
            "id": self.delivery_id(row.delivery, row.number),
            "event_type": webhook.kind.event_type(),
            "job_id": job_id,
            "attempt_number": row.number,
            "status": row.status.name(),
            "http_status": row.http_status,
            "delivered_at": row.delivered_at,
            "created_at": row.created_at,
        })
    }
}
