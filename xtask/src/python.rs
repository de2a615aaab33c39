//! The tests that other people's programs judge: the platform's official client and `DuckDB`.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::command::{has, output, program, root, run, say};

/// Runs `tests/python` in an environment of its own below the target folder.
pub(crate) fn run_tests() -> Result<()> {
    if !has("python3") {
        bail!("python3 is needed for the official client and DuckDB; --no-python leaves them out");
    }
    let python = environment("python", "tests/python/requirements.txt")?;
    let binary = target()?.join("debug/gleaner");
    say("the official client and DuckDB judge the simulator and the results");
    run(program(&python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/python"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("GLEANER_BINARY", binary))
}

/// Makes a Python environment of this name below the target folder that holds what the list of
/// requirements names, and returns its interpreter.
pub(crate) fn environment(name: &str, requirements: &str) -> Result<PathBuf> {
    let requirements = root().join(requirements);
    let wanted = std::fs::read_to_string(&requirements)?;
    let environment = target()?.join(name);
    let python = environment.join("bin/python");
    let installed = environment.join("installed.txt");
    // Installing takes a while, so it is done again only when the list changes.
    if std::fs::read_to_string(&installed).ok().as_deref() != Some(wanted.as_str()) {
        run(program("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        run(program(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
            .arg(&requirements))?;
        std::fs::write(&installed, wanted)?;
    }
    Ok(python)
}

/// Cargo's target folder, wherever it is set to be.
pub(crate) fn target() -> Result<PathBuf> {
    let metadata = output(program("cargo").args([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--locked",
    ]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let folder = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    Ok(PathBuf::from(folder.context("cargo names no target folder")?))
}
