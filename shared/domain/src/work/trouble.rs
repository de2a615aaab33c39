//! What a call that went wrong means: for this job, or for the account.

use std::time::Duration;

use super::{Look, PutOff, Worked, jitter, put_off_with, settle};
use crate::entry::{Counters, DeadReason, Entry};
use crate::pause::Scope;
use crate::ports::{ApiError, ApiErrorKind, PortError};
use crate::steps::Ports;
use crate::time::after;

/// Deals with a GET that went wrong.
pub(super) async fn with(
    ports: Ports<'_>,
    entry: Entry,
    error: ApiError,
    look: Look,
) -> Result<Worked, PortError> {
    match error.kind {
        ApiErrorKind::Missing => missing(ports, entry, error, DeadReason::Gone).await,
        ApiErrorKind::Refused => missing(ports, entry, error, DeadReason::Denied).await,
        ApiErrorKind::Denied => denied(ports, entry, error, look).await,
        ApiErrorKind::PaymentRequired => {
            pause(ports, Scope::All, ports.limits.account_pause, &error).await?;
            later(ports, entry, error).await
        }
        ApiErrorKind::Throttled => {
            if let Some(wait) = error.retry_after {
                pause(ports, Scope::All, wait, &error).await?;
            }
            later(ports, entry, error).await
        }
        ApiErrorKind::TooLarge => {
            let said = Some(error.as_job_error());
            settle::die(ports, entry, DeadReason::TooLarge, said, None).await
        }
        ApiErrorKind::Unavailable | ApiErrorKind::Unreadable => later(ports, entry, error).await,
    }
}

/// Extends the account's pause.
pub(super) async fn pause(
    ports: Ports<'_>,
    scope: Scope,
    wait: Duration,
    error: &ApiError,
) -> Result<(), PortError> {
    let until = after(ports.clock.now(), wait.min(ports.limits.retry_after_clamp));
    ports.pauses.extend(ports.ledger, scope, until, error.kind.as_str()).await
}

/// Puts the row off; one whose own answers are the trouble is given up at its longest age.
pub(super) async fn later(
    ports: Ports<'_>,
    entry: Entry,
    error: ApiError,
) -> Result<Worked, PortError> {
    // Trouble of the account or the network ages no job; an answer that stays unusable does, and
    // so does one that is missing among many, else many would keep the account paused for ever.
    let reason = match error.kind {
        ApiErrorKind::Missing => Some(DeadReason::Gone),
        ApiErrorKind::Refused => Some(DeadReason::Denied),
        ApiErrorKind::Unreadable => Some(DeadReason::NeverSettled),
        _ => None,
    };
    let unusable = entry.counters.unusable.saturating_add(u32::from(reason.is_some()));
    // One bad answer says nothing of an old job that nobody could ask for meanwhile.
    let old = after(entry.first_seen, ports.limits.max_age) <= ports.clock.now()
        && unusable >= ports.limits.missing_looks_max;
    if let Some(reason) = reason.filter(|_| old) {
        let said = Some(error.as_job_error());
        return settle::die(ports, entry, reason, said, None).await;
    }
    let wait = jitter(ports, entry.counters.put_offs).max(error.retry_after.unwrap_or_default());
    let wait = wait.min(ports.limits.retry_after_clamp);
    let counters = Counters {
        put_offs: entry.counters.put_offs.saturating_add(1),
        unusable,
        sweeps: 0,
        ..entry.counters.clone()
    };
    put_off_with(ports, entry, wait, counters, PutOff::Trouble(error)).await
}

/// A job that is not there, or that the API refuses to speak of: a few looks, since reads may lag,
/// then it is given up. When most jobs are missing it is not the jobs that are wrong, and
/// everything pauses instead.
async fn missing(
    ports: Ports<'_>,
    entry: Entry,
    error: ApiError,
    reason: DeadReason,
) -> Result<Worked, PortError> {
    ports.looks.note(true);
    if ports.looks.is_suspicious() {
        pause(ports, Scope::All, ports.limits.account_pause, &error).await?;
        return later(ports, entry, error).await;
    }
    let missing = entry.counters.missing.saturating_add(1);
    let gone_for_good = error.status == Some(410);
    if gone_for_good || missing >= ports.limits.missing_looks_max {
        let said = Some(error.as_job_error());
        return settle::die(ports, entry, reason, said, None).await;
    }
    let counters = Counters { missing, sweeps: 0, ..entry.counters.clone() };
    let wait = ports.limits.missing_pause;
    put_off_with(ports, entry, wait, counters, PutOff::Trouble(error)).await
}

/// A refusal of the key: the account-level probe tells whether the key or the job is meant.
async fn denied(
    ports: Ports<'_>,
    entry: Entry,
    error: ApiError,
    look: Look,
) -> Result<Worked, PortError> {
    let Some(within) = look.within(ports.clock.now(), ports.limits.call_timeout) else {
        return later(ports, entry, error).await;
    };
    if ports.jobs.probe(within).await.is_err() {
        pause(ports, Scope::All, ports.limits.account_pause, &error).await?;
        return later(ports, entry, error).await;
    }
    let looks = entry.counters.missing.saturating_add(1);
    if looks >= ports.limits.missing_looks_max {
        let said = Some(error.as_job_error());
        return settle::die(ports, entry, DeadReason::Denied, said, None).await;
    }
    let counters = Counters { missing: looks, sweeps: 0, ..entry.counters.clone() };
    let wait = ports.limits.missing_pause;
    put_off_with(ports, entry, wait, counters, PutOff::Trouble(error)).await
}
