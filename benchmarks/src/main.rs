//! Measures what docs/performance.md says: `cargo xtask bench NAME` builds and runs it.
//!
//! Each benchmark compares within one run, prints medians and the machine that it ran on, and
//! leaves nothing behind. Nothing here is a test: no build fails because a machine is slow.

#![expect(clippy::print_stdout, reason = "the figures are this program's output")]

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
    /// What the machine is: processor, cores, fdatasync
    Machine,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    println!("{}\n", machine::describe()?);
    match arguments.benchmark {
        Benchmark::Machine => Ok(()),
    }
}
