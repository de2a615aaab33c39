//! How soon results are had, and for how many calls: 200 jobs submitted at once, by a clock that
//! costs nothing. The platform is the simulator in this process; bulk and single polling are the
//! product's, the fixed loop is what people write first.

mod strategies;
mod world;

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::figures::{median, percentile};
use crate::table::markdown;

/// Jobs submitted at once.
const JOBS: u32 = 200;
/// Median of the log-normal durations, in seconds, and their sigma.
const MEDIAN_SECS: f64 = 60.0;
const SIGMA: f64 = 1.0;

#[derive(Args)]
pub(crate) struct Polling {
    /// Seeds: each draws other durations, and other chance for the pauses
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
}

/// A way of waiting for all jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    /// `gleaner poll`: the job lists, in rounds.
    Bulk,
    /// A GET for each open job every three seconds.
    FixedLoop,
    /// `gleaner poll ID...`: each job with full-jitter pauses.
    Single,
}

impl Strategy {
    const ALL: [Self; 3] = [Self::Bulk, Self::FixedLoop, Self::Single];

    const fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk (`gleaner poll`)",
            Self::FixedLoop => "fixed loop, 3 s",
            Self::Single => "full jitter, one by one (`gleaner poll ID...`)",
        }
    }
}

/// What one strategy came to with one seed.
#[derive(Debug)]
struct Outcome {
    /// GETs of a job, for its status or its result.
    gets: u32,
    list_pages: u32,
    /// From a job's end at the platform until its result is stored, in seconds, per job.
    lateness: Vec<f64>,
    /// When the last result was stored.
    last: Duration,
}

impl Outcome {
    fn calls_a_job(&self) -> f64 {
        f64::from(self.gets + self.list_pages) / f64::from(JOBS)
    }
}

impl Polling {
    pub(crate) fn run(&self) -> Result<()> {
        println!(
            "{JOBS} jobs submitted at once, log-normal durations with a median of {MEDIAN_SECS} s \
             and a sigma of {SIGMA}, {} seeds: the middle seed's figure, and the worst one's.\n",
            self.seeds
        );
        let rows: Result<Vec<_>> =
            Strategy::ALL.into_iter().map(|strategy| row(strategy, self.seeds)).collect();
        let heading = [
            "strategy",
            "calls a job",
            "GETs a job",
            "list pages a job",
            "late p50",
            "late p90",
            "late max",
            "last result",
        ];
        print!("{}", markdown(&heading, &rows?));
        Ok(())
    }
}

/// One strategy with all seeds.
fn row(strategy: Strategy, seeds: u32) -> Result<Vec<String>> {
    let outcomes: Result<Vec<_>> =
        (1..=seeds).map(|seed| strategies::wait_for_all(strategy, seed.into())).collect();
    let mut outcomes = outcomes?;
    let jobs = f64::from(JOBS);
    let mut cells = vec![strategy.name().to_owned()];
    let mut cell = |unit: &str, figure: &dyn Fn(&mut Outcome) -> Option<f64>| -> Result<()> {
        let values: Option<Vec<f64>> = outcomes.iter_mut().map(figure).collect();
        let mut values = values.context("no job was waited for")?;
        let middle = median(&mut values).context("no seed")?;
        let worst = percentile(&mut values, 1.0).context("no seed")?;
        cells.push(format!("{middle:.2}{unit} ({worst:.2})"));
        Ok(())
    };
    cell("", &|outcome| Some(outcome.calls_a_job()))?;
    cell("", &|outcome| Some(f64::from(outcome.gets) / jobs))?;
    cell("", &|outcome| Some(f64::from(outcome.list_pages) / jobs))?;
    for share in [0.5, 0.9, 1.0] {
        cell(" s", &|outcome| percentile(&mut outcome.lateness, share))?;
    }
    cell(" s", &|outcome| Some(outcome.last.as_secs_f64()))?;
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a list page a job, and half of the results within three seconds: a property of the
    /// algorithm, whatever the machine.
    #[test]
    fn bulk_polling_is_cheap_and_soon() {
        for seed in 1..=20 {
            let mut outcome = strategies::wait_for_all(Strategy::Bulk, seed).unwrap();
            let calls = outcome.calls_a_job();
            let late = median(&mut outcome.lateness).unwrap();
            assert!(calls <= 1.5 && late <= 3.0, "seed {seed}: {calls} calls a job, {late} s late");
            assert_eq!(outcome.gets, JOBS, "a result is asked for once, when it is there");
        }
    }

    #[test]
    fn every_strategy_gets_every_result() {
        for strategy in Strategy::ALL {
            let outcome = strategies::wait_for_all(strategy, 1).unwrap();
            assert_eq!(outcome.lateness.len(), 200, "{strategy:?}");
            assert!(outcome.lateness.iter().all(|late| (0.0..600.0).contains(late)));
        }
    }

    #[test]
    fn one_seed_is_one_history() {
        let run = || strategies::wait_for_all(Strategy::Single, 3).unwrap();
        let (one, other) = (run(), run());
        assert_eq!((one.gets, one.lateness), (other.gets, other.lateness));
    }
}
