//! A whole tick: its parts, what they found, and what they measured.

use domain::ports::ApiError;
use domain::reconcile::Reconciled;
use domain::replay::Replayed;
use domain::tick::{Outcome, Ran, TickReport};
use domain::time::between;

use super::rotations::retired;
use super::ticks::{polled, swept, tick};
use crate::catalogue::{Counter, Gauge};
use crate::metrics::Metrics;
use crate::text::Chain;

/// Tells what a tick did. One that another one kept from its work tells nothing but that.
pub fn ticked(metrics: &Metrics, report: &TickReport) {
    if report.ran == Ran::Elsewhere {
        tracing::info!("another run is at work");
        return;
    }
    for part in [&report.recovered, &report.swept].into_iter().flatten() {
        swept(metrics, part);
    }
    if let Some(part) = &report.polled {
        polled(metrics, part);
    }
    if let Some(part) = &report.replayed {
        replayed(metrics, part, report);
    }
    if let Some(part) = &report.reconciled {
        reconciled(metrics, part, report);
    }
    if let Some(part) = &report.retired {
        retired(metrics, part);
    }
    if let Some(error) = &report.claim {
        tracing::warn!(error = %Chain(error), "the run's claim ends by itself");
    }
    if report.cut.is_some() {
        metrics.count(Counter::TickTroubles);
    }
    tick(metrics, report.took());
    say(report);
}

/// One line for the whole: of a tick that found nothing a quiet one.
fn say(report: &TickReport) {
    let summary = report.summary();
    let (ran, took_ms) = (report.ran.as_str(), summary.took_ms);
    let counted = serde_json::to_string(&summary.counted).unwrap_or_default();
    let (gap, unknown, age_s) = (summary.gap, summary.gap_unknown, summary.gap_age_s);
    if summary.counted.is_empty() && gap == 0 && report.ran == Ran::Whole {
        tracing::debug!(took_ms, "tick ended without anything to do");
    } else {
        tracing::info!(ran, took_ms, gap, unknown, age_s, counted, "tick ended");
    }
}

fn replayed(metrics: &Metrics, part: &Outcome<Replayed>, report: &TickReport) {
    let did = &part.did;
    for (counter, count) in [
        (Counter::LogPages, did.pages),
        (Counter::JobsMissed, did.announced),
        (Counter::ListedUnreadable, did.unreadable),
        (Counter::RowsUnreadable, did.faulty),
    ] {
        metrics.add(counter, u64::from(count));
    }
    if let Some(age) = report.replay_age() {
        metrics.set(Gauge::ReplayAge, age.as_secs());
    }
    if let Some(checked) = &did.subscriptions {
        let wrong = checked.wrong().count();
        metrics.set(Gauge::SubscriptionsWrong, u64::try_from(wrong).unwrap_or(u64::MAX));
        for (kind, standing) in checked.wrong() {
            let standing = standing.as_str();
            tracing::warn!(job.kind = %kind, standing, "an event is not delivered to the receiver");
        }
    }
    found(report, "replay", did.announced, did.unknown, did.oldest);
    odd(did.unreadable, did.faulty, did.unsure);
    if let Some(error) = &did.trouble {
        list_trouble(metrics, error);
    }
    if let Some(error) = &part.error {
        metrics.count(Counter::TickTroubles);
        tracing::warn!(error = %Chain(error), "replay ended early");
    }
}

fn reconciled(metrics: &Metrics, part: &Outcome<Reconciled>, report: &TickReport) {
    let did = &part.did;
    for (counter, count) in [
        (Counter::ListPages, did.pages),
        (Counter::JobsListed, did.listed),
        (Counter::JobsMissed, did.announced),
        (Counter::JobsExpected, did.expected),
        (Counter::ListedUnreadable, did.unreadable),
        (Counter::RowsUnreadable, did.faulty),
    ] {
        metrics.add(counter, u64::from(count));
    }
    if let Some(age) = report.reconcile_age() {
        metrics.set(Gauge::ReconcileAge, age.as_secs());
    }
    found(report, "reconcile", did.announced, did.unknown, did.oldest);
    odd(did.unreadable, did.faulty, did.unsure);
    if let Some(error) = &did.trouble {
        list_trouble(metrics, error);
    }
    if let Some(error) = &part.error {
        metrics.count(Counter::TickTroubles);
        tracing::warn!(error = %Chain(error), "reconcile ended early");
    }
}

/// The gap: jobs that had finished, and that nobody had announced.
fn found(
    report: &TickReport,
    by: &'static str,
    jobs: u32,
    unknown: u32,
    oldest: Option<domain::time::Timestamp>,
) {
    if jobs > 0 {
        let age_s = oldest.map(|oldest| between(oldest, report.ended).as_secs());
        tracing::info!(by, jobs, unknown, age_s, "jobs that nobody had announced are announced");
    }
}

/// What could not be read, and what was let go.
fn odd(entries: u32, rows: u32, lists: u32) {
    if entries > 0 {
        tracing::warn!(entries, "entries of a list of the platform cannot be read");
    }
    if rows > 0 {
        tracing::error!(rows, "rows of the ledger do not decode");
    }
    if lists > 0 {
        tracing::warn!(lists, "a list of the platform never came to rest and is let go");
    }
}

fn list_trouble(metrics: &Metrics, error: &ApiError) {
    metrics.count(Counter::ListTroubles);
    tracing::warn!(error = %Chain(error), "a list of the platform could not be read whole");
}
