//! The one call that an ended pause for account trouble admits.
//!
//! All calls are proved by an account-level endpoint, which costs nothing. That the account can pay
//! again is proved by nothing but a paid POST: the first one after the pause is the probe, and tells
//! by [`paid`] that it was accepted.

use crate::pause::{Admission, Pause, Scope};
use crate::ports::{ApiErrorKind, PortError};
use crate::steps::Ports;
use crate::time::{Timestamp, after};
use crate::work::Look;

/// The pause that keeps calls of this scope from being made now. If this call is the one that an
/// ended pause admits, the account is asked first.
///
/// # Errors
/// Those of the ledger.
pub(crate) async fn held(
    ports: Ports<'_>,
    scope: Scope,
    look: Look,
) -> Result<Option<Pause>, PortError> {
    let (now, hold) = (ports.clock.now(), ports.limits.probe_hold());
    match ports.pauses.admit(ports.ledger, scope, now, hold).await? {
        Admission::Open | Admission::Probe(Scope::Paying) => Ok(None),
        Admission::Paused(pause) => Ok(Some(pause)),
        Admission::Probe(Scope::All) => {
            if let Some(pause) = probe(ports, look).await? {
                return Ok(Some(pause));
            }
            // The way is free; whether it is for paying calls is a matter of its own.
            let now = ports.clock.now();
            match ports.pauses.admit(ports.ledger, scope, now, hold).await? {
                Admission::Open | Admission::Probe(_) => Ok(None),
                Admission::Paused(pause) => Ok(Some(pause)),
            }
        }
    }
}

/// Asks an account-level endpoint; the pause that goes on unless it answers.
async fn probe(ports: Ports<'_>, look: Look) -> Result<Option<Pause>, PortError> {
    let (limits, now) = (ports.limits, ports.clock.now());
    let answer = match look.within(now, limits.call_timeout) {
        Some(within) => ports.jobs.probe(within).await.map_err(|error| error.kind),
        // There is no time to find out.
        None => Err(ApiErrorKind::Unavailable),
    };
    let now = ports.clock.now();
    let kind = match answer {
        Ok(()) => return lifted(ports, now).await,
        Err(kind) => kind,
    };
    let (until, why) = (after(now, limits.account_pause), kind.as_str());
    match kind {
        ApiErrorKind::Denied | ApiErrorKind::PaymentRequired => {
            ports.pauses.extend(ports.ledger, Scope::All, until, why).await?;
        }
        // Silence and trouble of the platform decide nothing: the probe's own time goes on.
        ApiErrorKind::Throttled | ApiErrorKind::Unavailable => {}
        // The key was taken; that the endpoint is not as it was must not stop everything.
        ApiErrorKind::Missing
        | ApiErrorKind::Refused
        | ApiErrorKind::TooLarge
        | ApiErrorKind::Unreadable => return lifted(ports, now).await,
    }
    Ok(Some(Pause { until, why: why.to_owned(), unproved: true }))
}

async fn lifted(ports: Ports<'_>, now: Timestamp) -> Result<Option<Pause>, PortError> {
    ports.pauses.lift(ports.ledger, Scope::All, now).await?;
    Ok(None)
}

/// Tells that a paid POST was accepted: if it was the probe, the pause of paying calls is over.
///
/// The job is there whatever becomes of this, so that an error is nobody's: the pause then ends by
/// another probe.
pub(crate) async fn paid(ports: Ports<'_>) {
    drop(ports.pauses.lift(ports.ledger, Scope::Paying, ports.clock.now()).await);
}

#[cfg(test)]
mod tests;
