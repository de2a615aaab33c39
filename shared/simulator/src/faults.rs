//! What goes wrong, how often.
//!
//! Every rate is a probability from 0 to 1 and is drawn by itself; 0 switches the fault off.

use serde::{Deserialize, Serialize};

use crate::error::SimulatorError;

/// Largest result that can be asked for, in bytes.
const HUGE_BYTES_MAX: u32 = 256 * 1024 * 1024;

/// Rates and sizes of all faults. Unknown keys are refused, missing ones are 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// What happens to webhook deliveries.
    pub deliveries: DeliveryFaults,
    /// What happens to API answers.
    pub api: ApiFaults,
    /// What becomes of jobs, batch items and crawl pages.
    pub jobs: JobFaults,
    /// How job lists and the delivery log lie.
    pub lists: ListFaults,
}

/// Faults of webhook deliveries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeliveryFaults {
    /// Deliveries that are never sent; half leave no log row, half one that says `abandoned`.
    pub dropped: f64,
    /// Deliveries sent a second time, half under the same id and half as a delivery of their own.
    pub repeated: f64,
    /// Deliveries held back by up to `delay_max_secs`, so that they overtake each other.
    pub delayed: f64,
    /// Longest hold of a delayed delivery, in seconds before the speed is applied.
    pub delay_max_secs: f64,
    /// Attempts signed with a wrong secret.
    pub missigned: f64,
    /// Log rows whose `job_id` is null.
    pub null_job_id: f64,
}

/// Faults of API answers, drawn anew for every request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApiFaults {
    /// Answers 429 (with and without `Retry-After`), 500, 502 or 503; nothing was done.
    pub errors: f64,
    /// Answers 402 to a job-creating call; nothing was done.
    pub payment_required: f64,
    /// Job-creating calls that are accepted and whose connection then closes without an answer.
    pub lost_answers: f64,
    /// Calls that change a webhook, done but not answered.
    pub lost_webhook_answers: f64,
    /// Calls that get no answer until the client gives up; a job-creating call was accepted.
    pub hangs: f64,
    /// Answers to GET whose body arrives slowly.
    pub slow_bodies: f64,
    /// Answers to GET whose body ends before its `Content-Length`.
    pub cut_bodies: f64,
}

/// Fates of jobs. A URL that is submitted again draws again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobFaults {
    /// Extractions, batch items and crawl pages that fail with a retryable code.
    pub fail_retryable: f64,
    /// Extractions, batch items and crawl pages that fail with a final code.
    pub fail_final: f64,
    /// Jobs that the platform cancels by itself.
    pub cancelled: f64,
    /// Jobs that stay `processing` for ever.
    pub never_settle: f64,
    /// Jobs whose GET answers 404 for ever, although lists and events name them.
    pub vanished: f64,
    /// Results of `huge_bytes` instead of the configured size.
    pub huge_results: f64,
    /// Size of a huge result, in bytes.
    pub huge_bytes: u32,
    /// Job answers with `error`, `data` and `metadata` null although they should be filled.
    pub null_fields: f64,
}

/// Faults of lists, drawn anew for every request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListFaults {
    /// Extract job lists that say `is_capped` and understate `page_count`.
    pub capped: f64,
    /// Lists whose `page_count` is simply wrong: 0, too small or too large.
    pub lying_page_count: f64,
    /// Pages that start some items too early or too late.
    pub shifting_pages: f64,
}

impl Faults {
    /// Nothing goes wrong.
    pub fn none() -> Self {
        Self::default()
    }

    /// A quarter of [`Faults::harsh`].
    pub fn gentle() -> Self {
        Self::harsh().scaled(0.25)
    }

    /// The rates that the product must survive without losing or doubling anything.
    pub fn harsh() -> Self {
        Self {
            deliveries: DeliveryFaults {
                dropped: 0.20,
                repeated: 0.20,
                delayed: 0.20,
                delay_max_secs: 120.0,
                missigned: 0.05,
                null_job_id: 0.0,
            },
            api: ApiFaults {
                errors: 0.10,
                payment_required: 0.005,
                lost_answers: 0.05,
                lost_webhook_answers: 0.0,
                hangs: 0.02,
                slow_bodies: 0.02,
                cut_bodies: 0.02,
            },
            jobs: JobFaults {
                fail_retryable: 0.10,
                fail_final: 0.03,
                cancelled: 0.02,
                never_settle: 0.01,
                ..JobFaults::default()
            },
            lists: ListFaults::default(),
        }
    }

    /// Finds a preset by name: `none`, `gentle` or `harsh`.
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::none()),
            "gentle" => Some(Self::gentle()),
            "harsh" => Some(Self::harsh()),
            _ => None,
        }
    }

    /// Checks that all rates are probabilities and all holds are times.
    ///
    /// # Errors
    ///
    /// Names the first fault with another value.
    pub fn check(&self) -> Result<(), SimulatorError> {
        let Self { deliveries, api, jobs, lists } = self;
        let rates = [
            ("faults.deliveries.dropped", deliveries.dropped),
            ("faults.deliveries.repeated", deliveries.repeated),
            ("faults.deliveries.delayed", deliveries.delayed),
            ("faults.deliveries.missigned", deliveries.missigned),
            ("faults.deliveries.null_job_id", deliveries.null_job_id),
            ("faults.api.errors", api.errors),
            ("faults.api.payment_required", api.payment_required),
            ("faults.api.lost_answers", api.lost_answers),
            ("faults.api.lost_webhook_answers", api.lost_webhook_answers),
            ("faults.api.hangs", api.hangs),
            ("faults.api.slow_bodies", api.slow_bodies),
            ("faults.api.cut_bodies", api.cut_bodies),
            ("faults.jobs.fail_retryable", jobs.fail_retryable),
            ("faults.jobs.fail_final", jobs.fail_final),
            ("faults.jobs.cancelled", jobs.cancelled),
            ("faults.jobs.never_settle", jobs.never_settle),
            ("faults.jobs.vanished", jobs.vanished),
            ("faults.jobs.huge_results", jobs.huge_results),
            ("faults.jobs.null_fields", jobs.null_fields),
            ("faults.lists.capped", lists.capped),
            ("faults.lists.lying_page_count", lists.lying_page_count),
            ("faults.lists.shifting_pages", lists.shifting_pages),
        ];
        if let Some((name, _)) = rates.iter().find(|(_, rate)| !(0.0..=1.0).contains(rate)) {
            return Err(SimulatorError::Setting { name, expected: "a rate from 0 to 1" });
        }
        if !(0.0..=f64::MAX).contains(&deliveries.delay_max_secs) {
            let name = "faults.deliveries.delay_max_secs";
            return Err(SimulatorError::Setting { name, expected: "a number of seconds" });
        }
        if jobs.huge_bytes > HUGE_BYTES_MAX {
            let name = "faults.jobs.huge_bytes";
            return Err(SimulatorError::Setting { name, expected: "at most 268435456" });
        }
        Ok(())
    }

    /// Multiplies the rates of [`Faults::harsh`] kinds; sizes and holds stay.
    fn scaled(mut self, factor: f64) -> Self {
        for rate in [
            &mut self.deliveries.dropped,
            &mut self.deliveries.repeated,
            &mut self.deliveries.delayed,
            &mut self.deliveries.missigned,
            &mut self.api.errors,
            &mut self.api.payment_required,
            &mut self.api.lost_answers,
            &mut self.api.hangs,
            &mut self.api.slow_bodies,
            &mut self.api.cut_bodies,
            &mut self.jobs.fail_retryable,
            &mut self.jobs.fail_final,
            &mut self.jobs.cancelled,
            &mut self.jobs.never_settle,
        ] {
            *rate *= factor;
        }
        self
    }
}
