//! Deliveries: who is told of an ended job, when, how often, and what the log says.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::config::{EventScope, LogRows, duration};
use crate::delivery_log::{LogRow, RowStatus};
use crate::dice::Key;
use crate::job::Status;
use crate::moment::Moment;
use crate::platform::{Platform, Todo};
use crate::signature::sign;

/// Waits before the second and later attempts, in seconds before the speed. The platform's own
/// schedule could not be read; this one is usual among services of its kind.
pub const RETRY_SECS: [f64; 5] = [30.0, 60.0, 300.0, 1_800.0, 3_600.0];

/// Longest time between the end of a job and its first delivery, in seconds before the speed.
const FIRST_DELAY_SECS: f64 = 1.0;

/// Longest time between a delivery and its repetition, in seconds before the speed.
const REPEAT_DELAY_SECS: f64 = 30.0;

/// Shortest wait for a receiver, in seconds, however fast the platform runs.
const TIMEOUT_MIN_SECS: f64 = 2.0;

/// Value of `User-Agent` (contract 1.11).
const USER_AGENT: &str = "scraper-api-webhook/1.0";

/// Handle of an attempt that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttemptId(u64);

/// A webhook attempt to send now; [`Platform::render_attempt`] makes its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Handle, for rendering and reporting.
    pub id: AttemptId,
}

/// The request of one attempt.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookRequest {
    /// Where to POST.
    pub url: String,
    /// Headers, names in the platform's casing.
    pub headers: [(&'static str, String); 5],
    /// Exactly the signed bytes.
    pub body: Bytes,
}

impl std::fmt::Debug for WebhookRequest {
    /// Leaves the signature and the body out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookRequest")
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The receiver answered with this status; 2xx is a success.
    Answered(u16),
    /// No connection, or no answer in time.
    Unanswered,
}

/// An attempt that has not been answered yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingAttempt {
    webhook: usize,
    job: u32,
    delivery: Key,
    number: u32,
    /// Place of the attempt's row; a repetition under the same id has none and is not retried.
    row: Option<usize>,
}

impl Platform {
    /// Plans the deliveries of a job that has just ended.
    pub(crate) fn announce(&mut self, ordinal: u32) {
        let Some(job) = self.job(ordinal) else { return };
        let (kind, key, status) = (job.kind(), job.key, job.status(self.now));
        let scope = self.config.webhooks.events;
        if scope == EventScope::CompletedOnly && status != Status::Completed {
            return;
        }
        for index in 0..self.webhooks.len() {
            let interested = self.webhooks.get(index).filter(|w| w.is_active && w.kind == kind);
            if let Some(webhook) = interested {
                let delivery = key.with(webhook.key);
                self.plan_delivery(index, ordinal, delivery);
            }
        }
    }

    fn plan_delivery(&mut self, webhook: usize, job: u32, delivery: Key) {
        let faults = self.config.faults.deliveries.clone();
        self.note(job, |book| book.planned += 1);
        let dice = self.dice;
        if dice.happens("dropped", delivery, faults.dropped) {
            self.note(job, |book| {
                book.dropped += 1;
                book.first_accepted.get_or_insert(false);
            });
            self.counters.count_webhook("dropped");
            if dice.happens("dropped_row", delivery, 0.5) {
                self.push_row(webhook, job, delivery, 1, RowStatus::Abandoned);
            }
            return;
        }
        let mut wait = self.config.scaled(FIRST_DELAY_SECS * dice.unit("first_delay", delivery));
        if dice.happens("delayed", delivery, faults.delayed) {
            self.counters.count_webhook("delayed");
            wait += self.config.scaled(faults.delay_max_secs * dice.unit("delay", delivery));
        }
        let row = self.push_row(webhook, job, delivery, 1, RowStatus::Pending);
        self.plan_attempt(PendingAttempt { webhook, job, delivery, number: 1, row }, wait);
        if dice.happens("repeated", delivery, faults.repeated) {
            self.note(job, |book| book.repeated += 1);
            self.counters.count_webhook("repeated");
            let hold = REPEAT_DELAY_SECS * dice.unit("repeat_delay", delivery);
            wait += self.config.scaled(hold);
            let mut again = PendingAttempt { webhook, job, delivery, number: 1, row: None };
            if dice.happens("repeat_id", delivery, 0.5) {
                again.delivery = delivery.with(Key::of(b"repeated"));
                again.row = self.push_row(webhook, job, again.delivery, 1, RowStatus::Pending);
            }
            self.plan_attempt(again, wait);
        }
    }

    fn plan_attempt(&mut self, attempt: PendingAttempt, wait: Duration) {
        let id = AttemptId(self.attempts_made);
        self.attempts_made += 1;
        self.pending.insert(id, attempt);
        self.schedule(self.now.plus(wait), Todo::Send(id));
    }

    fn note(&mut self, job: u32, change: impl FnOnce(&mut crate::job::DeliveryBook)) {
        if let Some(job) = self.job_mut(job) {
            change(&mut job.deliveries);
        }
    }

    fn row_mut(&mut self, attempt: &PendingAttempt) -> Option<&mut LogRow> {
        self.webhooks.get_mut(attempt.webhook)?.log.get_mut(attempt.row?)
    }

    /// Hands out an attempt whose time has come; a paused webhook gives it up.
    pub(crate) fn due_attempt(&mut self, id: AttemptId) -> Option<Attempt> {
        let attempt = *self.pending.get(&id)?;
        if self.webhooks.get(attempt.webhook).is_some_and(|webhook| webhook.is_active) {
            return Some(Attempt { id });
        }
        self.pending.remove(&id);
        self.counters.count_webhook("paused");
        self.note(attempt.job, |book| {
            book.first_accepted.get_or_insert(false);
        });
        if let Some(row) = self.row_mut(&attempt) {
            row.status = RowStatus::Abandoned;
        }
        None
    }

    /// Makes the signed request of a due attempt; `None` if its webhook is gone or paused.
    ///
    /// The body is made here and not kept, so that waiting attempts cost no memory.
    pub fn render_attempt(&mut self, id: AttemptId, now: Moment) -> Option<WebhookRequest> {
        self.roll(now);
        self.due_attempt(id)?;
        let attempt = *self.pending.get(&id)?;
        let missigned = self.is_missigned(&attempt);
        self.counters.count_webhook("sent");
        self.note(attempt.job, |book| {
            book.sent += 1;
            book.missigned += u32::from(missigned);
        });
        let webhook = self.webhooks.get(attempt.webhook)?;
        let delivery_id = self.delivery_id(attempt.delivery, attempt.number);
        let event = webhook.kind.event_type();
        let envelope = json!({
            "event": event, "webhook_id": webhook.id, "delivery_id": delivery_id,
            "timestamp": self.now, "data": self.event_data(attempt.job)?,
        });
        let body = Bytes::from(envelope.to_string());
        let key = if missigned { "whsec_of_somebody_else" } else { webhook.secret.as_str() };
        let headers = [
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", USER_AGENT.to_owned()),
            ("X-Webhook-Signature", sign(self.config.webhooks.signature, key.as_bytes(), &body)),
            ("X-Webhook-Delivery-Id", delivery_id),
            ("X-Webhook-Event", event.to_owned()),
        ];
        let request = WebhookRequest { url: webhook.url.clone(), headers, body };
        if missigned {
            self.counters.count_webhook("missigned");
        }
        Some(request)
    }

    /// Whether an attempt is signed with a wrong secret.
    fn is_missigned(&self, attempt: &PendingAttempt) -> bool {
        let key = attempt.delivery.child(u64::from(attempt.number));
        let repetition = u64::from(attempt.row.is_none());
        let rate = self.config.faults.deliveries.missigned;
        self.dice.happens("missigned", key.child(repetition), rate)
    }

    fn event_data(&self, job: u32) -> Option<Value> {
        let job = self.job(job)?;
        Some(self.event_json(job))
    }

    /// Records what became of an attempt and plans the next one if it failed.
    pub fn report_attempt(&mut self, id: AttemptId, now: Moment, outcome: AttemptOutcome) {
        self.roll(now);
        let Some(attempt) = self.pending.remove(&id) else { return };
        let http_status = match outcome {
            AttemptOutcome::Answered(status) => Some(status),
            AttemptOutcome::Unanswered => None,
        };
        let accepted = http_status.is_some_and(|status| (200..300).contains(&status));
        let word = match (accepted, http_status) {
            (true, _) => "accepted",
            (false, Some(_)) => "refused",
            (false, None) => "unanswered",
        };
        self.counters.count_webhook(word);
        if let Some(status) = http_status {
            let missigned = self.is_missigned(&attempt);
            self.counters.count_delivery_answer(missigned, status);
        }
        self.note(attempt.job, |book| {
            match word {
                "accepted" => book.accepted += 1,
                "refused" => book.refused += 1,
                _ => book.unanswered += 1,
            }
            book.first_accepted.get_or_insert(accepted);
        });
        if attempt.row.is_none() {
            return;
        }
        let next_wait = usize::try_from(attempt.number - 1).ok().and_then(|i| RETRY_SECS.get(i));
        let status = match (accepted, next_wait) {
            (true, _) => RowStatus::Success,
            (false, Some(_)) => RowStatus::Failed,
            (false, None) => RowStatus::Abandoned,
        };
        let at = self.now;
        if let Some(row) = self.row_mut(&attempt) {
            row.status = status;
            row.http_status = http_status;
            row.delivered_at = accepted.then_some(at);
        }
        match status {
            RowStatus::Failed => self.plan_retry(attempt, *next_wait.unwrap_or(&0.0)),
            RowStatus::Abandoned => {
                self.counters.count_webhook("abandoned");
                self.note(attempt.job, |book| book.abandoned += 1);
            }
            RowStatus::Success | RowStatus::Pending => {}
        }
    }

    fn plan_retry(&mut self, failed: PendingAttempt, wait_secs: f64) {
        let mut next = PendingAttempt { number: failed.number + 1, ..failed };
        match self.config.webhooks.log {
            LogRows::RowPerAttempt => {
                let PendingAttempt { webhook, job, delivery, number, .. } = next;
                next.row = self.push_row(webhook, job, delivery, number, RowStatus::Pending);
            }
            LogRows::RowPerDelivery => {
                if let Some(row) = self.row_mut(&next) {
                    row.number = next.number;
                    row.status = RowStatus::Pending;
                }
            }
        }
        self.plan_attempt(next, self.config.scaled(wait_secs));
    }

    /// Returns how long a webhook's receiver may take to answer.
    pub fn attempt_timeout(&self) -> Duration {
        let timeout = self.config.webhooks.timeout_secs;
        self.config.scaled(timeout).max(duration(timeout.min(TIMEOUT_MIN_SECS)))
    }
}
