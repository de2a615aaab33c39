//! Runs the simulation of many seeds: `cargo run --release -p testkit --example simulate -- 0..1000`.
//!
//! Prints the seed, the promise and the shortest scenario found for the first one that is broken.

#![expect(clippy::print_stdout, reason = "what this program is for")]

use std::process::ExitCode;

use testkit::simulation::{Scenario, Untouched, simulate, tell};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seeds = arguments.next().and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse::<u64>().ok()?..to.parse::<u64>().ok()?)
    });
    let Some(seeds) = seeds.filter(|_| arguments.next().is_none()) else {
        println!("give a range of seeds, such as 0..1000");
        return ExitCode::FAILURE;
    };
    for seed in seeds.clone() {
        let scenario = Scenario::of(seed);
        if simulate(&scenario, &Untouched).broken.is_some() {
            println!("{}", tell(&scenario, &Untouched));
            return ExitCode::FAILURE;
        }
    }
    println!("{} seeds keep every promise", seeds.count());
    ExitCode::SUCCESS
}
