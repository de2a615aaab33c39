//! The tick: recovery of lost answers, bulk polling of what is overdue, the sweep, and the removal
//! of expired rows.

use std::sync::Arc;
use std::time::Duration;

use domain::pause::Scope;
use domain::poll::{Asked, bulk_poll};
use domain::sweep::{recover_due, sweep};
use domain::time::between;
use telemetry::tell;
use tokio::sync::watch;

use super::{Server, stopped};

/// Shortest pause between two ticks.
const PAUSE_MIN: Duration = Duration::from_millis(10);

pub(super) async fn run(server: Arc<Server>, mut stop: watch::Receiver<bool>) {
    let mut first = Part::Recovery;
    loop {
        let clock = &*server.pipeline.clock;
        let begun = clock.now();
        first = tick(&server, first).await;
        tell::tick(&server.metrics, between(begun, clock.now()));
        let wait = pause_left(&server).await.unwrap_or(server.settings.tick);
        let wait = wait.max(PAUSE_MIN).min(server.settings.tick);
        tell::expired_removed(&server.metrics, &server.source.remove_expired().await);
        let pause = clock.sleep(wait);
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            () = pause => {}
        }
    }
}

/// What is left of a pause of the account. The next tick comes at its end: an account that is
/// paused again and again has few moments in which it can be asked, and the workers would have
/// them all.
async fn pause_left(server: &Server) -> Option<Duration> {
    let pipeline = &server.pipeline;
    let now = pipeline.clock.now();
    let pause = pipeline.pauses.active(&*pipeline.ledger, Scope::All, now).await;
    // What cannot be read is no pause here; whoever calls the API reads it again.
    pause.ok().flatten().map(|pause| between(now, pause.until))
}

/// The parts of a tick, in their order: lost answers first, since rows wait for them; lists before
/// single jobs, since they answer for many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Recovery,
    BulkPolling,
    Sweep,
}

impl Part {
    /// All parts, this one first.
    const fn and_others(self) -> [Self; 3] {
        match self {
            Self::Recovery => [Self::Recovery, Self::BulkPolling, Self::Sweep],
            Self::BulkPolling => [Self::BulkPolling, Self::Sweep, Self::Recovery],
            Self::Sweep => [Self::Sweep, Self::Recovery, Self::BulkPolling],
        }
    }
}

/// One tick; says which part is to be the first of the next. Trouble ends a part, which goes on in
/// its next turn where it stopped. A part that a pause of the account keeps from its turn has the
/// first one after it, so that none waits for ever.
async fn tick(server: &Server, first: Part) -> Part {
    server.complaints.tell_due(server.pipeline.clock.now());
    for part in first.and_others() {
        if pause_left(server).await.is_some() {
            return part;
        }
        let (metrics, budget) = (&*server.metrics, server.settings.tick_budget);
        let ports = server.pipeline.ports();
        match part {
            Part::Recovery => tell::swept(metrics, &recover_due(ports, budget).await),
            Part::BulkPolling => tell::polled(metrics, &bulk_poll(ports, Asked::Due).await),
            Part::Sweep => tell::swept(metrics, &sweep(ports, budget).await),
        }
    }
    Part::Recovery
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whichever part a pause kept from its turn, the others come after it, each once.
    #[test]
    fn each_part_has_its_turn() {
        let all = [Part::Recovery, Part::BulkPolling, Part::Sweep];
        for first in all {
            let parts = first.and_others();
            assert_eq!(parts.first(), Some(&first));
            assert!(all.iter().all(|part| parts.contains(part)));
        }
    }
}
