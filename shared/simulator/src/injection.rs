//! Faults of answers: errors instead of an effect, and answers that travel badly.

use std::time::Duration;

use crate::answer::{Answer, Transport};
use crate::call::refuse;
use crate::config::duration;
use crate::dice::Key;
use crate::job::Kind;
use crate::platform::Platform;
use crate::route::Endpoint;

impl Platform {
    /// Draws an error that is answered instead of doing anything.
    pub(crate) fn injected_error(
        &mut self,
        endpoint: Endpoint<'_>,
        request: Key,
    ) -> Option<Answer> {
        let dice = self.dice;
        let faults = &self.config.faults.api;
        let pays = matches!(endpoint, Endpoint::Submit(Kind::Extract | Kind::Crawl));
        if pays && dice.happens("payment_required", request, faults.payment_required) {
            self.counters.count_refused("payment_required");
            let message = "The balance does not cover this request";
            return Some(refuse(endpoint, 402, "PAYMENT_REQUIRED", message));
        }
        if !dice.happens("api_error", request, faults.errors) {
            return None;
        }
        self.counters.count_refused("injected_error");
        let fails = |status: u16, code: &str, message: &str| {
            // Half of the calls without a documented error body answer the flat one after all.
            if endpoint.has_bare_errors() && dice.happens("bare_error", request, 0.5) {
                Answer::empty(status)
            } else {
                Answer::flat(status, code, message, true)
            }
        };
        let wait = self.config.retry_after();
        let throttled = || fails(429, "RATE_LIMITED", "Too many requests");
        Some(match dice.index("api_error_kind", request, 6) {
            0 => throttled(),
            1 => throttled().with_retry_after(wait.to_string()),
            2 => {
                let at = self.now.plus(Duration::from_secs(wait));
                throttled().with_retry_after(at.to_http_date())
            }
            3 => fails(500, "INTERNAL_ERROR", "Something went wrong"),
            4 => fails(502, "BILLING_UPSTREAM_ERROR", "The billing service answered with an error"),
            _ => fails(503, "SERVICE_UNAVAILABLE", "The service is not available for now"),
        })
    }

    /// Draws how the answer travels, and books a submission whose answer will not arrive.
    pub(crate) fn injected_transport(
        &mut self,
        endpoint: Endpoint<'_>,
        request: Key,
        accepted: bool,
    ) -> Transport {
        let dice = self.dice;
        let faults = self.config.faults.api.clone();
        let hang = Transport::Hang(duration(self.config.hang_max_secs));
        if accepted {
            let lost = dice.happens("lost_answer", request, faults.lost_answers);
            let hangs = dice.happens("hang", request, faults.hangs);
            if let Some(job) = self.jobs.last_mut() {
                job.answer_lost = lost || hangs;
            }
            return match (lost, hangs) {
                (true, _) => Transport::Lost,
                (false, true) => hang,
                (false, false) => Transport::Prompt,
            };
        }
        let writes_webhook = matches!(
            endpoint,
            Endpoint::CreateWebhook
                | Endpoint::UpdateWebhook(_)
                | Endpoint::DeleteWebhook(_)
                | Endpoint::RotateSecret(_)
        );
        if writes_webhook && dice.happens("lost_answer", request, faults.lost_webhook_answers) {
            return Transport::Lost;
        }
        if !endpoint.is_read() {
            return Transport::Prompt;
        }
        if dice.happens("hang", request, faults.hangs) {
            hang
        } else if dice.happens("slow_body", request, faults.slow_bodies) {
            Transport::Slow
        } else if dice.happens("cut_body", request, faults.cut_bodies) {
            Transport::Cut
        } else {
            Transport::Prompt
        }
    }
}
