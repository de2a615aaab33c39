//! What the platform was asked and what it answered, in numbers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::answer::{Answer, Transport};

/// Counts since the start.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counters {
    /// Calls by endpoint and by the status that was decided, sent or not.
    pub calls: BTreeMap<&'static str, BTreeMap<u16, u64>>,
    /// Calls for a page of results after the first.
    pub later_result_pages: u64,
    /// Calls by the way their answer travelled, where that was a fault.
    pub transport: BTreeMap<&'static str, u64>,
    /// Calls refused without any effect, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Webhook attempts and deliveries by what became of them.
    pub webhooks: BTreeMap<&'static str, u64>,
    /// Webhook attempts that were signed with the webhook's secret, by the status of the answer.
    pub genuine_answers: BTreeMap<u16, u64>,
    /// Webhook attempts that were signed with another one, by the status of the answer.
    pub missigned_answers: BTreeMap<u16, u64>,
    /// Synchronous extractions; they are no jobs and appear in no book.
    pub sync_extractions: u64,
    /// Synchronous extractions that were charged.
    pub sync_tokens: u64,
}

impl Counters {
    pub(crate) fn count_call(&mut self, endpoint: &'static str, answer: &Answer) {
        *self.calls.entry(endpoint).or_default().entry(answer.status).or_default() += 1;
        let fault = match answer.transport {
            Transport::Prompt | Transport::After(_) => return,
            Transport::Lost => "lost_answer",
            Transport::Hang(_) => "hang",
            Transport::Slow => "slow_body",
            Transport::Cut => "cut_body",
        };
        *self.transport.entry(fault).or_default() += 1;
    }

    pub(crate) fn count_refused(&mut self, reason: &'static str) {
        *self.refused.entry(reason).or_default() += 1;
    }

    pub(crate) fn count_delivery_answer(&mut self, missigned: bool, status: u16) {
        let answers =
            if missigned { &mut self.missigned_answers } else { &mut self.genuine_answers };
        *answers.entry(status).or_default() += 1;
    }

    pub(crate) fn count_webhook(&mut self, outcome: &'static str) {
        *self.webhooks.entry(outcome).or_default() += 1;
    }
}
