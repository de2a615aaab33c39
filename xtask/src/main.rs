//! The project's own commands: `cargo xtask check`, `cargo xtask test`, `cargo xtask tidy`.

mod bench;
mod command;
mod e2e;
mod fuzz;
mod package;
mod python;
mod tidy;
mod traps;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::command::{cargo, has, say};

/// The command line with the backend that only a feature brings.
const CLI_ON_AWS: &[&str] = &["--package", "gleaner", "--features", "aws-testing"];

const HELP: &str = "\
usage: cargo xtask COMMAND

  check   format, lints, docs, tidy, and licences where cargo-deny is installed
  test    all tests: Rust, then in Python environments the official client, DuckDB, and the functions
          on an emulator of AWS; --no-python leaves the latter out
  bench   the figures of docs/performance.md, in the release profile; `bench help` names them
  e2e-aws the template and the functions on an emulator of AWS, from submission to stored results
          --jobs N, 100 by default; --faults adds a run in which calls of the services fail
  fuzz    searches for inputs that break a parser, with nightly and cargo-fuzz;
          `fuzz [TARGET]... [--seconds N]`, see fuzz/README.md
  package the functions for AWS: zips in a profile of their own, looked at, with a template that
          takes them; then `sam build`, as users run it
          --check judges the template alone; --arm64 builds for arm64
  tidy    the house rules that no lint knows
  docs    rewrites the generated pages";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    match run(&command, &rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: &str, rest: &[String]) -> Result<()> {
    match command {
        "check" => check(),
        "test" => test(rest),
        "bench" => bench::measure(rest),
        "e2e-aws" => e2e::command(rest),
        "fuzz" => fuzz::search(rest),
        "package" => package::package(rest),
        "tidy" => tidy::run(),
        "docs" => docs(),
        "" | "help" | "--help" => {
            say(HELP);
            Ok(())
        }
        other => bail!("`{other}` is no command\n{HELP}"),
    }
}

fn check() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    cargo(
        &[&["clippy", "--all-targets", "--locked"], CLI_ON_AWS, &["--", "-D", "warnings"]].concat(),
    )?;
    command::run(
        command::program("cargo")
            .args(["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    tidy::run()?;
    if has("cargo-deny") {
        cargo(&["deny", "--locked", "check", "bans", "licenses", "sources"])?;
    } else {
        say("cargo-deny is not installed: licences and sources are not checked");
    }
    Ok(())
}

fn test(rest: &[String]) -> Result<()> {
    let with_python = match rest {
        [] => true,
        [only] if only == "--no-python" => false,
        _ => bail!("`test` knows `--no-python` only"),
    };
    // The binary is what the Python tests and the process tests run.
    cargo(&["build", "--locked", "--package", "gleaner"])?;
    dynamodb()?;
    if has("cargo-nextest") {
        cargo(&["nextest", "run", "--workspace", "--locked"])?;
        cargo(&[&["nextest", "run", "--locked", "--lib", "--test", "aws"], CLI_ON_AWS].concat())?;
    } else {
        cargo(&["test", "--workspace", "--locked", "--lib", "--bins", "--tests"])?;
        cargo(&[&["test", "--locked", "--lib", "--test", "aws"], CLI_ON_AWS].concat())?;
    }
    cargo(&["test", "--workspace", "--locked", "--doc"])?;
    if with_python {
        python::run_tests()?;
        e2e::run_tests(e2e::Wanted::ALL)?;
    } else {
        say("left out: the official client, DuckDB and the emulator of AWS");
    }
    Ok(())
}

/// Builds the server that stands in for DynamoDB, which the tests that need it would do one by one.
fn dynamodb() -> Result<()> {
    let folder = python::target()?.join("dynamodb-server");
    let mut build = command::program("cargo");
    build.args(["build", "--quiet", "--locked", "--manifest-path", "tests/dynamodb/Cargo.toml"]);
    command::run(build.arg("--target-dir").arg(folder))
}

fn docs() -> Result<()> {
    let page = command::output(
        command::program("cargo")
            .args(["run", "--quiet", "--locked", "--package", "gleaner", "--"])
            .args(["settings", "--markdown"]),
    )?;
    std::fs::write(command::root().join("docs/configuration.md"), page)?;
    traps::write(&tidy::files(&command::root())?)
}
