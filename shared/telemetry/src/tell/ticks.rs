//! Ticks and their parts.

use std::time::Duration;

use domain::poll::BulkPolled;
use domain::ports::PortError;
use domain::sweep::Swept;

use crate::catalogue::{Counter, Timing};
use crate::metrics::Metrics;
use crate::text::Chain;

/// Tells that a tick came to its end.
pub fn tick(metrics: &Metrics, took: Duration) {
    metrics.count(Counter::Ticks);
    metrics.time(Timing::Tick, took);
}

/// Tells what a sweep, or the recovery of lost answers before it, did.
pub fn swept(metrics: &Metrics, swept: &Result<Swept, PortError>) {
    let swept = match swept {
        Ok(swept) => swept,
        Err(error) => {
            metrics.count(Counter::TickTroubles);
            tracing::warn!(error = %Chain(error), "the sweep ended early");
            return;
        }
    };
    for (counter, count) in [
        (Counter::TasksSwept, swept.sent),
        (Counter::JobsDead, swept.dead),
        (Counter::IntentsAdopted, swept.adopted),
        (Counter::IntentsNotAccepted, swept.not_accepted),
        (Counter::IntentsAmbiguous, swept.ambiguous),
        (Counter::RowsUnreadable, swept.unreadable),
    ] {
        metrics.add(counter, u64::from(count));
    }
    if swept.dead > 0 {
        tracing::warn!(entries = swept.dead, "given up by the sweep");
    }
    if swept.ambiguous > 0 {
        tracing::warn!(intents = swept.ambiguous, "submissions given up as ambiguous");
    }
    if swept.unreadable > 0 {
        let first = swept.first_unreadable.as_deref();
        tracing::error!(rows = swept.unreadable, first, "rows of the ledger do not decode");
    }
}

/// Tells what bulk polling found.
pub fn polled(metrics: &Metrics, polled: &Result<BulkPolled, PortError>) {
    match polled {
        Ok(polled) => {
            metrics.add(Counter::ListPages, u64::from(polled.pages));
            metrics.add(Counter::JobsAnnounced, u64::from(polled.announced));
            if let Some(error) = &polled.trouble {
                metrics.count(Counter::ListTroubles);
                let error = Chain(error);
                tracing::warn!(%error, "a job list could not be read whole");
            }
        }
        Err(error) => {
            metrics.count(Counter::TickTroubles);
            tracing::warn!(error = %Chain(error), "bulk polling ended early");
        }
    }
}

/// Tells how many expired rows were removed.
pub fn expired_removed(metrics: &Metrics, removed: &Result<u64, PortError>) {
    match removed {
        Ok(removed) => metrics.add(Counter::RowsExpired, *removed),
        Err(error) => {
            metrics.count(Counter::TickTroubles);
            tracing::warn!(error = %Chain(error), "expired rows could not be removed");
        }
    }
}
