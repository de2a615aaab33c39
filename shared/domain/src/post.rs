//! A paid POST, written down before it is made.

use serde::{Deserialize, Serialize};

use crate::limits::{Limits, SEARCHES_MIN};
use crate::time::{Timestamp, after, before};

/// One paid POST of a decision: enough to find its job again when the answer is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Post {
    /// Names the call that may make the POST; random. Nobody else may.
    pub token: String,
    /// How many POSTs this decision has had, this one included.
    pub number: u32,
    /// When this POST was intended.
    pub intended_at: Timestamp,
    /// When the decision's first POST was intended.
    pub since: Timestamp,
    /// After this instant the POST may not be begun.
    pub begin_before: Timestamp,
    /// How often its job was looked for without a decision.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub searches: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_none_yet(searches: &u32) -> bool {
    *searches == 0
}

impl Post {
    /// The first POST of a decision.
    pub fn first(token: String, now: Timestamp, limits: &Limits) -> Self {
        Self {
            token,
            number: 1,
            intended_at: now,
            since: now,
            begin_before: after(now, limits.post_begin),
            searches: 0,
        }
    }

    /// The next POST of the same decision, after the one before was proved not accepted.
    #[must_use]
    pub fn next(&self, token: String, now: Timestamp, limits: &Limits) -> Self {
        Self {
            number: self.number.saturating_add(1),
            since: self.since,
            ..Self::first(token, now, limits)
        }
    }

    /// From when on the job list can prove that the POST was not accepted.
    pub fn recover_from(&self, limits: &Limits) -> Timestamp {
        after(self.begin_before, limits.post_timeout.saturating_add(limits.adoption_margin))
    }

    /// The window of `created_at` in which the POST's job would lie, clocks being a margin apart.
    pub fn window(&self, limits: &Limits) -> (Timestamp, Timestamp) {
        (before(self.intended_at, limits.clock_slack()), self.recover_from(limits))
    }

    /// The POST after one more search that decided nothing.
    #[must_use]
    pub fn searched(&self) -> Self {
        Self { searches: self.searches.saturating_add(1), ..self.clone() }
    }

    /// Whether the search for the POST's job has lasted too long, the present one included. Time
    /// alone does not tell: a machine that was off all night has hardly looked.
    pub fn is_ambiguous(&self, now: Timestamp, limits: &Limits) -> bool {
        let is_old = after(self.intended_at, limits.ambiguous_after) <= now;
        is_old && self.searches.saturating_add(1) >= SEARCHES_MIN
    }
}
