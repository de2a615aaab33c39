//! Builds the product and the benchmarks as users build them, and runs a benchmark.

use anyhow::Result;

use crate::command::{cargo, program, run};
use crate::python::{environment, target};

/// The Python programs that the accept benchmark compares with.
const REQUIREMENTS: &str = "benchmarks/python/requirements.txt";

/// Runs a benchmark with its arguments.
pub(crate) fn measure(arguments: &[String]) -> Result<()> {
    cargo(&["build", "--release", "--locked", "--package", "gleaner", "--package", "benchmarks"])?;
    let mut benchmarks = program(target()?.join("release/benchmarks"));
    benchmarks.args(arguments);
    if arguments.first().is_some_and(|name| name == "accept") {
        benchmarks.arg("--python").arg(environment("benchmarks-python", REQUIREMENTS)?);
    }
    run(&mut benchmarks)
}
