//! Gauges that are read from the ledger, each within a bounded cost.

use domain::pause::Scope;
use domain::steps::Ports;
use domain::time::between;

use crate::catalogue::Gauge;
use crate::metrics::Metrics;

/// Rows read to find the one that is most overdue: the first may be one that does not decode.
const OVERDUE_ROWS: u32 = 10;

/// Measures how overdue the ledger is and whether the account is left alone. What cannot be read
/// stays unmeasured, so that an alarm sees data missing, and not zero.
pub async fn measure(metrics: &Metrics, ports: Ports<'_>) {
    let now = ports.clock.now();
    if let Ok(page) = ports.ledger.list_due(now, None, OVERDUE_ROWS).await {
        match page.items.first() {
            Some(entry) => {
                let age = entry.due_at.map_or(0, |due_at| between(due_at, now).as_secs());
                metrics.set(Gauge::OverdueAge, age);
            }
            // Rows that do not decode are overdue, and nobody knows for how long.
            None if !page.unreadable.is_empty() => {}
            None => metrics.set(Gauge::OverdueAge, 0),
        }
    }
    // A pause of all calls is one of the paying ones, too.
    if let Ok(pause) = ports.pauses.active(ports.ledger, Scope::Paying, now).await {
        metrics.set(Gauge::Paused, u64::from(pause.is_some()));
    }
}

#[cfg(test)]
mod tests;
