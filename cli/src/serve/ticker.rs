//! The ticks of the embedded server, and the removal of expired rows.

use std::sync::Arc;
use std::time::Duration;

use domain::ports::PortError;
use domain::tick::{Part, Term, TickPorts, tick};
use domain::time::{after, between};
use telemetry::tell;
use tokio::sync::watch;

use super::{Server, stopped};

/// Shortest pause between two ticks.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Longest tick: what takes longer, such as the comparison of a long history, goes on in the next
/// one, so that the sweep has its turn.
const TICK_MAX: Duration = Duration::from_mins(1);

pub(super) async fn run(server: Arc<Server>, mut stop: watch::Receiver<bool>) {
    let mut first = Part::default();
    loop {
        let wait = match ticked(&server, &mut first).await {
            Ok(wait) => wait,
            Err(error) => {
                // Only a claim can fail, and this server has none: it has the file to itself.
                tracing::warn!(error = %telemetry::Chain(&error), "a tick did not begin");
                server.settings.tick
            }
        };
        let wait = wait.max(PAUSE_MIN).min(server.settings.tick);
        tell::expired_removed(&server.metrics, &server.source.remove_expired().await);
        let pause = server.pipeline.clock.sleep(wait);
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            () = pause => {}
        }
    }
}

/// One tick; how long to wait for the next one. A pause of the account is waited for to its end: an
/// account that is paused again and again has few moments in which it can be asked, and the workers
/// would have them all.
async fn ticked(server: &Server, first: &mut Part) -> Result<Duration, PortError> {
    let clock = &*server.pipeline.clock;
    let now = clock.now();
    server.complaints.tell_due(now);
    let ports = TickPorts { steps: server.pipeline.ports(), webhooks: &*server.webhooks };
    let term = Term { until: after(now, TICK_MAX), claimed_until: None };
    let report = tick(ports, &server.settings.upkeep, first, term).await?;
    tell::ticked(&server.metrics, &report);
    let paused = report.paused_until.map(|until| between(clock.now(), until));
    Ok(paused.unwrap_or(server.settings.tick))
}
