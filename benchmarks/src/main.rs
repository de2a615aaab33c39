//! Measures what docs/performance.md says: `cargo xtask bench NAME` builds and runs it.
//!
//! Each benchmark compares within one run, prints medians and the machine that it ran on, and
//! leaves nothing behind. Nothing here is a test: no build fails because a machine is slow.

#![expect(clippy::print_stdout, reason = "the figures are this program's output")]

mod accept;
mod figures;
mod machine;
mod process;
mod served;
mod table;

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
    /// The bare handler that `accept` compares with
    #[command(hide = true)]
    BareReceiver,
    /// What the machine is: processor, cores, fdatasync
    Machine,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if matches!(arguments.benchmark, Benchmark::BareReceiver) {
        return accept::serve_bare();
    }
    println!("{}\n", machine::describe()?);
    match arguments.benchmark {
        Benchmark::Accept(accept) => accept.run(),
        Benchmark::Machine | Benchmark::BareReceiver => Ok(()),
    }
}
