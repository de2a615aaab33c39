//! The tick: recovery of lost answers, bulk polling of what is overdue, the sweep, and the removal
//! of expired rows.

use std::sync::Arc;
use std::time::Duration;

use domain::pause::Scope;
use domain::poll::{Asked, bulk_poll};
use domain::ports::{Clock as _, PortError};
use domain::sweep::{Swept, recover_due, sweep};
use domain::time::between;
use tokio::sync::watch;

use super::{Chain, Server, stopped};

/// Shortest pause between two ticks.
const PAUSE_MIN: Duration = Duration::from_millis(10);

pub(super) async fn run(server: Arc<Server>, mut stop: watch::Receiver<bool>) {
    loop {
        tick(&server).await;
        let wait = until_next(&server).await;
        let pause = server.pipeline.clock.sleep(wait);
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            () = pause => {}
        }
    }
}

/// How long until the next tick. A pause of the account that ends earlier ends the wait: an account
/// that is paused again and again has few moments in which lists can be asked, and the workers
/// would have them all.
async fn until_next(server: &Server) -> Duration {
    let pipeline = &server.pipeline;
    let now = pipeline.clock.now();
    let pause = pipeline.pauses.active(&*pipeline.ledger, Scope::All, now).await;
    // What cannot be read is no pause here; whoever calls the API reads it again.
    let left = pause.ok().flatten().map(|pause| between(now, pause.until));
    left.unwrap_or(server.settings.tick).max(PAUSE_MIN).min(server.settings.tick)
}

/// One tick. Trouble ends a part of it; the next one goes on where this one stopped. Lost answers
/// first, since rows wait for them; lists before single jobs, since they answer for many.
async fn tick(server: &Server) {
    let ports = server.pipeline.ports();
    let tally = &server.tally;
    server.complaints.tell_due(server.pipeline.clock.now());
    note(server, recover_due(ports, server.settings.tick_budget).await);
    match bulk_poll(ports, Asked::Due).await {
        Ok(polled) => {
            tally.add("bulk_pages", u64::from(polled.pages));
            tally.add("bulk_announced", u64::from(polled.announced));
            if let Some(error) = polled.trouble {
                tracing::warn!(%error, "a job list could not be read whole");
            }
        }
        Err(error) => {
            tally.count("tick_errors");
            tracing::warn!(error = %Chain(&error), "bulk polling ended early");
        }
    }
    note(server, sweep(ports, server.settings.tick_budget).await);
    match server.source.remove_expired().await {
        Ok(removed) => tally.add("rows_expired", removed),
        Err(error) => {
            tally.count("tick_errors");
            tracing::warn!(error = %Chain(&error), "expired rows could not be removed");
        }
    }
}

fn note(server: &Server, swept: Result<Swept, PortError>) {
    let tally = &server.tally;
    match swept {
        Ok(swept) => {
            tally.add("swept_sent", u64::from(swept.sent));
            tally.add("swept_dead", u64::from(swept.dead));
            tally.add("intents_adopted", u64::from(swept.adopted));
            if swept.unreadable > 0 {
                tracing::error!(rows = swept.unreadable, "rows of the ledger do not decode");
            }
        }
        Err(error) => {
            tally.count("tick_errors");
            tracing::warn!(error = %Chain(&error), "the sweep ended early");
        }
    }
}
