//! How fast deliveries are accepted, beside receivers that others write.
//!
//! Every receiver is a process of its own on the same machine, gets the same signed deliveries over
//! the same connections, and must have each one on the disk before it answers with 2xx.

mod bare;
mod deliveries;
mod driver;
mod receivers;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

pub(crate) use self::bare::serve as serve_bare;

use self::deliveries::{Delivery, signed};
use self::driver::{Load, count, drive};
use self::receivers::Receiver;
use crate::machine::fdatasync;

/// Connections that are compared.
const CONNECTIONS: [usize; 2] = [32, 256];
/// More than any receiver accepts in a second on two cores.
const RATE_MAX: f64 = 60_000.0;
/// Share of a run that comes before what is measured, in which caches fill.
const WARM_UP: f64 = 0.25;

/// Options of `bench accept`.
#[derive(Args, Debug)]
pub(crate) struct Accept {
    /// Interpreter that has what benchmarks/python/requirements.txt names
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Receivers to measure; all of them by default
    #[arg(long, value_name = "RECEIVER", value_delimiter = ',')]
    only: Vec<Receiver>,
    /// Rounds, of which the medians are taken
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Length of each measurement, in seconds
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Folder on the disk to measure [default: the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// What was measured of one receiver at one number of connections.
#[derive(Debug, Default)]
struct Figures {
    /// Deliveries accepted a second, by round.
    rates: Vec<f64>,
    /// From request to 2xx, in milliseconds, of all rounds.
    latencies: Vec<f64>,
    /// The receiver's processor time for a delivery that it accepts, in microseconds, by round.
    accepting: Vec<f64>,
    /// The same for one that it refuses.
    refusing: Vec<f64>,
    /// Deliveries answered with 2xx.
    accepted: usize,
    /// Jobs found in the files afterwards; `None` if the receiver keeps none.
    rows: Option<usize>,
    /// Largest resident memory, in MiB.
    peak_mib: f64,
}

/// Figures by connections and receiver.
type Measured = BTreeMap<(usize, Receiver), Figures>;

impl Accept {
    /// Measures, and prints table and verdicts.
    pub(crate) fn run(&self) -> Result<()> {
        let receivers = self.receivers()?;
        let folder = self.folder.clone().unwrap_or_else(std::env::temp_dir);
        let most = self.seconds * RATE_MAX * (1.0 + WARM_UP);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let pool = signed(most.ceil() as usize)?;
        let mut measured = Measured::new();
        let mut syncs = Vec::new();
        for round in 0..self.rounds {
            for connections in CONNECTIONS {
                syncs.push(fdatasync(&folder)?.median);
                for place in 0..receivers.len() {
                    // Another one begins in each round, so that a busy minute hits all alike.
                    let next = receivers.iter().cycle().nth(round + place);
                    let receiver = *next.context("no receiver is to be measured")?;
                    say(&format!(
                        "round {} of {}, {connections} connections: {}",
                        round + 1,
                        self.rounds,
                        receiver.name()
                    ));
                    let figures = measured.entry((connections, receiver)).or_default();
                    self.measure(receiver, connections, &folder, &pool, figures)
                        .with_context(|| receiver.name())?;
                }
            }
        }
        report::print(&mut measured, &mut syncs)
    }

    fn receivers(&self) -> Result<Vec<Receiver>> {
        let mut receivers =
            if self.only.is_empty() { Receiver::ALL.to_vec() } else { self.only.clone() };
        if self.only.is_empty() && self.python.is_none() {
            receivers.retain(|receiver| !receiver.needs_python());
        }
        ensure!(self.rounds > 0, "one round at least is needed");
        ensure!((0.05..=60.0).contains(&self.seconds), "--seconds must be between 0.05 and 60");
        Ok(receivers)
    }

    /// One run of one receiver: warm up, accept, refuse, and count what is on the disk.
    fn measure(
        &self,
        receiver: Receiver,
        connections: usize,
        folder: &Path,
        pool: &[Delivery],
        figures: &mut Figures,
    ) -> Result<()> {
        let folder = tempfile::tempdir_in(folder)?;
        let running = receiver.start(folder.path(), self.python.as_deref())?;
        let process = &running.served.process;
        let load = Load {
            address: running.address,
            path: &running.path,
            connections,
            deliveries: pool,
            genuine: true,
            time: Duration::from_secs_f64(self.seconds * WARM_UP),
        };
        let warm = drive(load)?;
        warm.all(2)?;
        let rest = pool.get(warm.latencies.len()..).unwrap_or_default();
        let time = Duration::from_secs_f64(self.seconds);
        let (before, accepted) =
            (process.cpu_seconds()?, drive(Load { deliveries: rest, time, ..load })?);
        let between = process.cpu_seconds()?;
        accepted.all(2)?;
        let refused = drive(Load { genuine: false, time: time / 2, ..load })?;
        let after = process.cpu_seconds()?;
        refused.all(4)?;
        figures.peak_mib = figures.peak_mib.max(process.peak_mib()?);
        figures.rates.push(accepted.rate());
        figures.accepting.push((between - before) * 1e6 / count(accepted.latencies.len()));
        figures.refusing.push((after - between) * 1e6 / count(refused.latencies.len()));
        let answered = warm.accepted() + accepted.accepted();
        figures.accepted += answered;
        figures.latencies.extend(accepted.latencies);
        if let Some(rows) = running.end()? {
            ensure!(rows == answered, "{answered} were accepted, and {rows} are in the file");
            figures.rows = Some(figures.rows.unwrap_or_default() + rows);
        }
        Ok(())
    }
}

/// Tells whoever waits what is being measured.
#[expect(clippy::print_stderr, reason = "talk, beside the figures on standard output")]
fn say(text: &str) {
    eprintln!("{text}");
}
