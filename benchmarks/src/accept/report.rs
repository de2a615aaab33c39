//! The table, and whether the goals are met.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use super::Measured;
use super::driver::count;
use super::receivers::Receiver;
use crate::figures::{median, percentile};
use crate::goal::Goal;
use crate::table::markdown;

/// The disk from which one fdatasync, in milliseconds, counts as slow.
const SLOW_SYNC_MS: f64 = 3.0;

/// Prints both.
pub(super) fn print(measured: &mut Measured, syncs: &mut [f64]) -> Result<()> {
    let sync = median(syncs).context("no sync was measured")?;
    let mut rows = Vec::new();
    let mut summary = BTreeMap::new();
    for ((connections, receiver), figures) in measured {
        let figures = Summary {
            rate: median(&mut figures.rates).context("no rate")?,
            p50: median(&mut figures.latencies).context("no latency")?,
            p99: percentile(&mut figures.latencies, 0.99).context("no latency")?,
            accepting: median(&mut figures.accepting).context("no processor time")?,
            refusing: median(&mut figures.refusing).context("no processor time")?,
            accepted: figures.accepted,
            rows: figures.rows,
            peak_mib: figures.peak_mib,
        };
        rows.push(figures.row(*connections, *receiver));
        summary.insert((*connections, *receiver), figures);
    }
    println!("{}", markdown(&HEADING, &rows));
    println!("fdatasync between the runs: median {sync:.2} ms\n");
    for goal in goals(&summary, sync) {
        println!("{}", goal.line());
    }
    Ok(())
}

const HEADING: [&str; 10] = [
    "connections",
    "receiver",
    "accepted/s",
    "p50 ms",
    "p99 ms",
    "CPU µs/accepted",
    "CPU µs/refused",
    "2xx",
    "rows after kill -9",
    "peak MiB",
];

/// The medians of one receiver at one number of connections.
#[derive(Clone, Copy, Debug)]
struct Summary {
    rate: f64,
    p50: f64,
    p99: f64,
    accepting: f64,
    refusing: f64,
    accepted: usize,
    rows: Option<usize>,
    peak_mib: f64,
}

impl Summary {
    fn row(&self, connections: usize, receiver: Receiver) -> Vec<String> {
        vec![
            connections.to_string(),
            receiver.name().to_owned(),
            format!("{:.0}", self.rate),
            format!("{:.2}", self.p50),
            format!("{:.2}", self.p99),
            format!("{:.1}", self.accepting),
            format!("{:.1}", self.refusing),
            self.accepted.to_string(),
            self.rows.map_or_else(|| "-".to_owned(), |rows| rows.to_string()),
            format!("{:.0}", self.peak_mib),
        ]
    }
}

/// The goals that can be judged by what was measured.
fn goals(summary: &BTreeMap<(usize, Receiver), Summary>, sync: f64) -> Vec<Goal> {
    let of = |connections, receiver| summary.get(&(connections, receiver));
    let mut goals = Vec::new();
    if let Some(ours) = of(256, Receiver::Ours) {
        let times = if sync >= SLOW_SYNC_MS { 200.0 } else { 50.0 };
        for (other, rate, refusing) in
            [(Receiver::First, times, 20.0), (Receiver::Tuned, 10.0, 8.0)]
        {
            let Some(theirs) = of(256, other) else { continue };
            let what = format!("at 256 connections, accepted/s beside {}", other.name());
            goals.push(Goal::at_least(what, ours.rate / theirs.rate, rate, "x"));
            let what = format!("server CPU of a refusal, {} beside ours", other.name());
            goals.push(Goal::at_least(what, theirs.refusing / ours.refusing, refusing, "x"));
        }
        goals.push(Goal::at_most("at 256 connections, p99".to_owned(), ours.p99, 60.0, " ms"));
    }
    if let (Some(ours), Some(bare)) = (of(32, Receiver::Ours), of(32, Receiver::Bare)) {
        let disk = count(32) / (2.0 * sync / 1e3);
        let what = format!(
            "at 32 connections, accepted/s beside the lesser of {disk:.0} by the disk and {:.0} \
             by bare axum",
            bare.rate
        );
        goals.push(Goal::at_least(what, 100.0 * ours.rate / disk.min(bare.rate), 60.0, " %"));
        goals.push(Goal::at_most("at 32 connections, p99".to_owned(), ours.p99, 25.0, " ms"));
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(rate: f64, refusing: f64) -> Summary {
        Summary {
            rate,
            p50: 1.0,
            p99: 61.0,
            accepting: 1.0,
            refusing,
            accepted: 10,
            rows: Some(10),
            peak_mib: 1.0,
        }
    }

    #[test]
    fn the_slower_of_disk_and_handler_bounds_us() {
        let mut all = BTreeMap::new();
        all.insert((32, Receiver::Ours), summary(6_000.0, 1.0));
        all.insert((32, Receiver::Bare), summary(20_000.0, 1.0));
        // 1.6 ms: the disk allows 10,000 a second.
        let lines: Vec<_> = goals(&all, 1.6).iter().map(Goal::line).collect();
        assert!(lines[0].starts_with("- met") && lines[0].contains("60.0 %"), "{lines:?}");
        assert!(lines[1].starts_with("- MISSED") && lines[1].contains("61.0 ms"), "{lines:?}");
        // 0.1 ms: the handler allows 20,000.
        assert!(goals(&all, 0.1)[0].line().contains("30.0 %"));
    }

    #[test]
    fn a_slow_disk_raises_the_bar() {
        let mut all = BTreeMap::new();
        all.insert((256, Receiver::Ours), summary(10_000.0, 10.0));
        all.insert((256, Receiver::First), summary(100.0, 200.0));
        let lines = |sync| goals(&all, sync).iter().map(Goal::line).collect::<Vec<_>>();
        assert!(lines(0.3)[0].starts_with("- met"));
        assert!(lines(3.0)[0].starts_with("- MISSED"));
        assert!(lines(0.3)[1].contains("20.0x") && lines(0.3)[1].starts_with("- met"));
    }
}
