//! Deliveries at once, in many orders.

use std::pin::Pin;
use std::time::Duration;

use super::bench::{Bench, SECRET, V1, extract, interleave};
use super::faults::{START, Start};
use crate::receive::Reception;
use crate::sweep::sweep;

/// DQ-03: 50 identical deliveries at once, from every row that there may be: exactly one message
/// (none where a task is under way already), all accepted.
#[test]
fn fifty_identical_deliveries_make_one_message() {
    for start in START {
        for seed in 0..40 {
            let bench = Bench::new();
            start.lay(&bench);
            bench.gate.yield_at_each_call();
            let headers = bench.signed(SECRET, V1);
            let deliveries = (0..50).map(|_| bench.receive(&headers, V1));
            let receptions = interleave(seed, deliveries);
            assert!(receptions.iter().all(|r| r.status() == 202), "{start:?} seed {seed}");
            let messages = u64::from(start != Start::Fresh);
            assert_eq!(bench.queue.sent(), messages, "{start:?} seed {seed}");
            let sent = receptions.iter().filter(|r| r.code() != "accepted_known").count();
            assert_eq!(u64::try_from(sent).unwrap(), messages, "{start:?} seed {seed}");
        }
    }
}

/// DQ-03: deliveries and a sweep at once lose nothing and agree on one row.
#[test]
fn deliveries_and_a_sweep_at_once_agree_on_one_row() {
    for seed in 0..200 {
        let bench = Bench::new();
        Start::Stale.lay(&bench);
        bench.gate.yield_at_each_call();
        let headers = bench.signed(SECRET, V1);
        let run = || async {
            sweep(bench.ports(), 10).await.unwrap();
            None
        };
        let deliver = || async { Some(bench.receive(&headers, V1).await) };
        let works: [Pin<Box<dyn Future<Output = Option<Reception>>>>; 4] =
            [Box::pin(run()), Box::pin(deliver()), Box::pin(deliver()), Box::pin(deliver())];
        let receptions = interleave(seed, works);
        assert!(receptions.iter().flatten().all(|r| r.status() == 202), "seed {seed}");
        // Whoever moves the row sends one task; the others see that it was moved.
        let row = bench.row(&extract("j1")).unwrap();
        let moves = row.version - Start::Stale.version();
        assert_eq!(bench.queue.sent(), moves, "seed {seed}");
        assert!((1..=2).contains(&moves), "seed {seed}");
        assert!(row.due_at.unwrap() > bench.now(), "seed {seed}");
        bench.clock.advance(Duration::from_secs(1));
        assert_eq!(bench.sweep(10).unwrap().sent, 0, "seed {seed}");
    }
}
