//! What becomes of one unit of work: an extraction, a batch item or a crawl page.

use std::time::Duration;

use crate::dice::{Dice, Key};
use crate::faults::JobFaults;
use crate::moment::Moment;

/// The settings under which a job was accepted; later switches do not change its fate.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) dice: Dice,
    pub(crate) faults: JobFaults,
    /// Median duration of a unit, speed applied.
    pub(crate) median: Duration,
    pub(crate) sigma: f64,
    /// How long the tokens of a finished unit stay reserved, speed applied.
    pub(crate) settle: Duration,
    pub(crate) result_bytes: u32,
}

/// Why a unit failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) message: &'static str,
    pub(crate) retryable: bool,
}

/// How a unit ends when nobody interferes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Completed,
    Failed(&'static Failure),
    Cancelled,
    NeverSettles,
}

/// When a unit starts and ends, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) starts: Moment,
    pub(crate) ends: Moment,
    pub(crate) fate: Fate,
}

const fn failure(code: &'static str, message: &'static str, retryable: bool) -> Failure {
    Failure { code, message, retryable }
}

/// Codes of the contract whose names say that another try may help.
pub(crate) const RETRYABLE: [Failure; 6] = [
    failure("TEMPORARY_BLOCK", "The target blocked the request for now", true),
    failure("NETWORK_ERROR", "The connection to the target failed", true),
    failure("PROXY_ERROR", "The proxy did not answer", true),
    failure("TIMEOUT", "The target did not answer in time", true),
    failure("INTERNAL_ERROR", "The extraction broke off", true),
    failure("RATE_LIMITED", "The target limits the request rate", true),
];

/// Codes of the contract whose names say that no further try will help.
pub(crate) const FINAL: [Failure; 4] = [
    failure("PERMANENT_BLOCK", "The target refuses all requests", false),
    failure("UNPROCESSABLE_CONTENT", "The content cannot be converted", false),
    failure("AUTH_REQUIRED", "The target asks for a login", false),
    failure("INVALID_URL", "The host name does not exist", false),
];

/// What a cancelled job reports.
pub(crate) const CANCELLED: Failure = failure("CANCELLED", "The job was cancelled", false);

/// What becomes of a synchronous extraction that exceeds its budget.
pub(crate) const TIMED_OUT: Fate =
    Fate::Failed(&failure("TIMEOUT", "The extraction exceeded its time budget", true));

impl Rules {
    /// Draws how a unit ends. Only whole jobs can be cancelled or never settle by themselves.
    pub(crate) fn fate(&self, key: Key, whole_job: bool) -> Fate {
        let faults = &self.faults;
        let mut draw = self.dice.unit("fate", key);
        let mut falls_below = |rate: f64| {
            let hit = draw < rate;
            draw -= rate;
            hit
        };
        if falls_below(faults.fail_retryable) {
            return Fate::Failed(self.pick(&RETRYABLE, key));
        }
        if falls_below(faults.fail_final) {
            return Fate::Failed(self.pick(&FINAL, key));
        }
        if whole_job && falls_below(faults.cancelled) {
            return Fate::Cancelled;
        }
        if whole_job && falls_below(faults.never_settle) {
            return Fate::NeverSettles;
        }
        Fate::Completed
    }

    /// Draws start, end and fate of a unit that may start at `ready`.
    pub(crate) fn span(&self, key: Key, ready: Moment, whole_job: bool) -> Span {
        let fate = self.fate(key, whole_job);
        let took = self.dice.log_normal("duration", key, self.median, self.sigma);
        let starts = ready.plus(took.mul_f64(QUEUED_SHARE));
        let ends = if fate == Fate::NeverSettles { Moment::NEVER } else { ready.plus(took) };
        Span { starts, ends: ends.max(starts), fate }
    }

    fn pick(&self, failures: &'static [Failure], key: Key) -> &'static Failure {
        let index = self.dice.index("failure", key, failures.len());
        failures.get(index).unwrap_or(&CANCELLED)
    }
}

/// Share of a unit's duration that it spends queued.
const QUEUED_SHARE: f64 = 0.15;
