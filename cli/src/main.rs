//! The `gleaner` binary: parses the command line, runs one verb, and exits with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    gleaner::run(std::env::args_os())
}
