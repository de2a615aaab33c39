//! What something costs: processor time of the whole process, and time as its callers see it.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::figures::{median, percentile};

/// What one block of calls cost.
#[derive(Debug)]
pub(super) struct Block {
    /// What the cost is shared by: calls, or rows.
    pub(super) units: usize,
    /// Processor time of all threads, a checkpoint that fell into it included.
    pub(super) cpu: Duration,
    /// How long each unit took, in microseconds.
    pub(super) waits: Vec<f64>,
}

/// Begins a block.
#[derive(Debug)]
pub(super) struct Meter {
    cpu: Duration,
}

impl Meter {
    pub(super) fn start() -> Self {
        Self { cpu: cpu() }
    }

    /// Ends the block, whose units took so long each.
    pub(super) fn end(self, waits: Vec<f64>) -> Block {
        Block { units: waits.len(), cpu: cpu().saturating_sub(self.cpu), waits }
    }
}

/// Processor time of this process so far, user and system, of all its threads.
fn cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(spent.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(spent.tv_nsec).unwrap_or(0))
}

/// How long something takes, in microseconds.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(super) async fn wait<T, E>(
    work: impl Future<Output = std::result::Result<T, E>>,
) -> std::result::Result<(f64, T), E> {
    let begun = Instant::now();
    let value = work.await?;
    Ok((begun.elapsed().as_secs_f64() * 1e6, value))
}

/// Calls something so many times, one after the other.
pub(super) async fn block<T, E, F>(calls: usize, mut call: impl FnMut() -> F) -> Result<Block>
where
    F: Future<Output = std::result::Result<T, E>>,
    E: Into<anyhow::Error>,
{
    let meter = Meter::start();
    let mut waits = Vec::with_capacity(calls);
    for _ in 0..calls {
        let (wait, _) = wait(call()).await.map_err(Into::into)?;
        waits.push(wait);
    }
    Ok(meter.end(waits))
}

/// All blocks of one kind on one file.
#[derive(Debug, Default)]
pub(super) struct Figures {
    cpu: Vec<f64>,
    waits: Vec<f64>,
}

impl Figures {
    pub(super) fn add(&mut self, block: Block) {
        #[expect(clippy::cast_precision_loss, reason = "far fewer units than 2^52")]
        let units = block.units.max(1) as f64;
        self.cpu.push(block.cpu.as_secs_f64() * 1e6 / units);
        self.waits.extend(block.waits);
    }

    /// Processor time of one unit, in microseconds: the median over the blocks.
    pub(super) fn cpu(&mut self) -> f64 {
        median(&mut self.cpu).unwrap_or_default()
    }

    /// How long one unit took, in microseconds: the median.
    pub(super) fn median(&mut self) -> f64 {
        median(&mut self.waits).unwrap_or_default()
    }

    /// How long 99 of 100 units took at most, in microseconds.
    pub(super) fn p99(&mut self) -> f64 {
        percentile(&mut self.waits, 0.99).unwrap_or_default()
    }
}
