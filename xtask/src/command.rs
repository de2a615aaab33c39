//! Running programs, each shown before it runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// A program, to be run in the workspace's root.
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Runs cargo.
pub(crate) fn cargo(arguments: &[&str]) -> Result<()> {
    run(program("cargo").args(arguments))
}

/// Shows a command and runs it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    say(&format!("$ {}", shown(command)));
    let status = command.status().with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs a command and returns what it prints.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}\n{said}", shown(command), output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Whether a program is on the path.
pub(crate) fn has(name: &str) -> bool {
    #[expect(clippy::disallowed_methods, reason = "where programs lie is the environment's to say")]
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(name).is_file())
}

/// Says a line to the person.
#[expect(clippy::print_stderr, reason = "this program talks to a person")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}
