//! The tick: bulk polling of what is overdue, the sweep, and the removal of expired rows.

use std::sync::Arc;

use domain::poll::{Asked, bulk_poll};
use domain::sweep::sweep;
use tokio::sync::watch;

use super::{Chain, Server, stopped};

pub(super) async fn run(server: Arc<Server>, mut stop: watch::Receiver<bool>) {
    loop {
        tick(&server).await;
        let pause = server.pipeline.clock.sleep(server.settings.tick);
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            () = pause => {}
        }
    }
}

/// One tick. Trouble ends it; the next one goes on where this one stopped.
async fn tick(server: &Server) {
    let ports = server.pipeline.ports();
    let tally = &server.tally;
    server.complaints.tell_due(server.pipeline.clock.now());
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
    match sweep(ports, server.settings.tick_budget).await {
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
    match server.source.remove_expired().await {
        Ok(removed) => tally.add("rows_expired", removed),
        Err(error) => {
            tally.count("tick_errors");
            tracing::warn!(error = %Chain(&error), "expired rows could not be removed");
        }
    }
}
