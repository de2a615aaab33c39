//! The table, and whether the goals are met.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use super::Measured;
use super::aws::Transport;
use super::functions::Function;
use super::start::Start;
use crate::figures::{median, percentile};
use crate::goal::Goal;
use crate::table::markdown;

const HEADING: [&str; 8] = [
    "services over",
    "function",
    "init ms",
    "first 2xx ms",
    "warm p50 ms",
    "warm p99 ms",
    "peak MiB",
    "zip MB",
];

/// Prints both.
pub(super) fn print(measured: &Measured, sizes: &BTreeMap<Function, u64>) -> Result<()> {
    let mut rows = Vec::new();
    let mut over_http = BTreeMap::new();
    for ((transport, function), starts) in measured {
        let summary = Summary::of(starts, *sizes.get(function).context("no size")?)?;
        rows.push(summary.row(*transport, *function));
        if *transport == Transport::Http {
            over_http.insert(*function, summary);
        }
    }
    println!("{}", markdown(&HEADING, &rows));
    for goal in goals(&over_http) {
        println!("{}", goal.line());
    }
    Ok(())
}

/// Medians of one function over one transport.
#[derive(Clone, Copy, Debug)]
struct Summary {
    init: f64,
    first: f64,
    p50: f64,
    p99: f64,
    peak_mib: f64,
    zip_mb: f64,
}

impl Summary {
    fn of(starts: &[Start], zip_bytes: u64) -> Result<Self> {
        let middle = |value: fn(&Start) -> f64| {
            median(&mut starts.iter().map(value).collect::<Vec<_>>()).context("no start")
        };
        let mut warm: Vec<f64> = starts.iter().flat_map(|start| start.warm.clone()).collect();
        #[expect(clippy::cast_precision_loss, reason = "far fewer bytes than 2^52")]
        let zip_mb = zip_bytes as f64 / 1e6;
        Ok(Self {
            init: middle(|start| start.init)?,
            first: middle(|start| start.first)?,
            p50: median(&mut warm).context("no warm delivery")?,
            p99: percentile(&mut warm, 0.99).context("no warm delivery")?,
            peak_mib: middle(|start| start.peak_mib)?,
            zip_mb,
        })
    }

    fn row(&self, transport: Transport, function: Function) -> Vec<String> {
        vec![
            transport.name().to_owned(),
            function.name().to_owned(),
            format!("{:.1}", self.init),
            format!("{:.1}", self.first),
            format!("{:.2}", self.p50),
            format!("{:.2}", self.p99),
            format!("{:.1}", self.peak_mib),
            format!("{:.2}", self.zip_mb),
        ]
    }
}

/// The goals that can be judged by what was measured over plain HTTP.
fn goals(summaries: &BTreeMap<Function, Summary>) -> Vec<Goal> {
    let Some(ours) = summaries.get(&Function::Receiver) else { return Vec::new() };
    let mut goals = Vec::new();
    if let Some(empty) = summaries.get(&Function::Empty) {
        let what = "init beside the empty function's".to_owned();
        goals.push(Goal::at_most(what, ours.init / empty.init, 3.0, "x"));
    }
    if let Some(python) = summaries.get(&Function::Python) {
        for (what, ratio, wanted) in [
            ("init, Python's beside ours", python.init / ours.init, 60.0),
            ("first 2xx, Python's beside ours", python.first / ours.first, 60.0),
            ("warm p50, Python's beside ours", python.p50 / ours.p50, 5.0),
        ] {
            goals.push(Goal::at_least(what.to_owned(), ratio, wanted, "x"));
        }
    }
    goals.push(Goal::at_most("peak memory".to_owned(), ours.peak_mib, 12.0, " MiB"));
    goals.push(Goal::at_most("zip".to_owned(), ours.zip_mb, 3.0, " MB"));
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(init: f64) -> Start {
        Start { init, first: init + 1.0, warm: vec![1.0, 2.0, 9.0], peak_mib: 12.1 }
    }

    #[test]
    fn goals_are_judged_by_medians() {
        let ours = Summary::of(&[start(5.0), start(6.0), start(50.0)], 2_900_000).unwrap();
        let empty = Summary::of(&[start(2.0)], 1_000_000).unwrap();
        let python = Summary::of(&[start(300.0)], 1_000_000).unwrap();
        let all = BTreeMap::from([
            (Function::Receiver, ours),
            (Function::Empty, empty),
            (Function::Python, python),
        ]);
        let lines: Vec<_> = goals(&all).iter().map(Goal::line).collect();
        let verdicts = ["met", "MISSED", "MISSED", "MISSED", "MISSED", "met"];
        assert_eq!(lines.len(), verdicts.len());
        for (line, verdict) in lines.iter().zip(verdicts) {
            assert!(line.starts_with(&format!("- {verdict} ")), "{line}");
        }
        assert!(lines[0].contains("3.0x") && lines[1].contains("50.0x"), "{lines:?}");
        assert_eq!(ours.row(Transport::Http, Function::Receiver)[4], "2.00");
    }
}
