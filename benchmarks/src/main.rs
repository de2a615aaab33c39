//! Measures what docs/performance.md says: `cargo xtask bench NAME` builds and runs it.
//!
//! Each benchmark compares within one run, prints medians and the machine that it ran on, and
//! leaves nothing behind. Nothing here is a test: no build fails because a machine is slow.

#![expect(clippy::print_stdout, reason = "the figures are this program's output")]

mod accept;
mod audit;
mod coldstart;
mod figures;
mod goal;
mod growth;
mod machine;
mod memory;
mod platform;
mod polling;
mod process;
mod reconcile;
mod served;
mod site;
mod steady;
mod table;
mod worker;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "benchmarks", about = "The figures of docs/performance.md, measured anew")]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Deliveries accepted per second, beside receivers in Python and a bare handler
    Accept(accept::Accept),
    /// Calls, time and memory of balancing the books of a million jobs
    Audit(audit::Audit),
    /// The bare handler that `accept` compares with
    #[command(hide = true)]
    BareReceiver,
    /// How a function starts on AWS Lambda, beside one that does nothing and one in Python
    Coldstart(coldstart::Coldstart),
    /// What accepting, working, sweeping and listing cost as the ledger grows
    Growth(growth::Growth),
    /// What the machine is: processor, cores, fdatasync
    Machine,
    /// Peak memory and API calls of crawls of 10,000 pages and 500 MB, killed and not
    Memory,
    /// Calls and lateness of polling for 200 jobs: bulk, a fixed loop, one by one
    Polling(polling::Polling),
    /// Calls, time and memory of comparing the job lists with a ledger of a million jobs
    Reconcile(reconcile::Reconcile),
    /// Memory of the server at rest after many deliveries
    Steady {
        /// How many
        #[arg(long, default_value_t = 100_000)]
        deliveries: u32,
    },
    /// Jobs that the workers store per second
    Worker {
        /// How many jobs
        #[arg(long, default_value_t = 10_000)]
        jobs: u32,
        /// Workers of the server; several for one row each
        #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32])]
        workers: Vec<u32>,
    },
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if matches!(arguments.benchmark, Benchmark::BareReceiver) {
        return accept::serve_bare();
    }
    println!("{}\n", machine::describe()?);
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    match arguments.benchmark {
        Benchmark::Accept(accept) => accept.run(),
        Benchmark::Audit(audit) => wait(audit.run(folder)),
        Benchmark::Coldstart(coldstart) => coldstart.run(folder),
        Benchmark::Growth(growth) => growth.run(),
        Benchmark::Machine | Benchmark::BareReceiver => Ok(()),
        Benchmark::Memory => wait(memory::run(folder)),
        Benchmark::Polling(polling) => polling.run(),
        Benchmark::Reconcile(reconcile) => wait(reconcile.run(folder)),
        Benchmark::Steady { deliveries } => wait(steady::run(folder, deliveries)),
        Benchmark::Worker { jobs, workers } => wait(worker::run(folder, jobs, &workers)),
    }
}

fn wait(measured: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measured)
}
