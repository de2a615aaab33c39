//! Builds the product and the benchmarks as users build them, and runs a benchmark.

use anyhow::Result;

use crate::command::{cargo, program, run};
use crate::package::PROFILE;
use crate::python::{environment, target};

/// What the Python programs need that the accept benchmark compares with.
const SERVERS: &str = "benchmarks/python/requirements.txt";
/// What the function in Python needs that the coldstart benchmark compares with.
const FUNCTION: &str = "benchmarks/python/function-requirements.txt";

/// Runs a benchmark with its arguments.
pub(crate) fn measure(arguments: &[String]) -> Result<()> {
    cargo(&["build", "--release", "--locked", "--package", "gleaner", "--package", "benchmarks"])?;
    let mut benchmarks = program(target()?.join("release/benchmarks"));
    benchmarks.args(arguments);
    match arguments.first().map(String::as_str) {
        Some("accept") => {
            benchmarks.arg("--python").arg(environment("benchmarks-python", SERVERS)?);
        }
        Some("coldstart") => {
            cargo(&[
                "build",
                "--profile",
                PROFILE,
                "--locked",
                "--package",
                "receiver",
                "--package",
                "empty-function",
            ])?;
            benchmarks.arg("--functions").arg(target()?.join(PROFILE));
            benchmarks.arg("--python").arg(environment("benchmarks-function", FUNCTION)?);
        }
        _ => {}
    }
    run(&mut benchmarks)
}
