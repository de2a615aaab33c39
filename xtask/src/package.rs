//! The functions as they are deployed: built small, looked at, and laid beside the template.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::command::{output, program, root, run, say};
use crate::python::{environment, target};

/// cargo-lambda, zig, the SAM command line and what they need.
const TOOLS: &str = "xtask/requirements.txt";
/// What the tests of the template need.
const TESTS: &str = "tests/python/requirements.txt";
/// Each function's folder, and its name in the template.
const FUNCTIONS: [(&str, &str); 4] = [
    ("receiver", "Receiver"),
    ("worker", "Worker"),
    ("scheduler", "Scheduler"),
    ("rotator", "Rotator"),
];
/// The profile of Cargo.toml that makes small programs. It is not called `lambda`: cargo would
/// build in the folder where cargo-lambda lays its output down.
pub(crate) const PROFILE: &str = "function";
/// Where the standard library for arm64 must be.
const ARM64: &str = "aarch64-unknown-linux-gnu";

/// What is asked for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    /// Look at the template alone, and build nothing.
    check_only: bool,
    /// Build for arm64 instead of `x86_64`.
    arm64: bool,
}

/// Packages the functions.
pub(crate) fn package(rest: &[String]) -> Result<()> {
    let wanted = parse(rest)?;
    if wanted.arm64 {
        require_arm64()?;
    }
    let folder = target()?.join("package");
    let tools = Tools::install(&folder)?;
    check_template(&tools)?;
    check_tls()?;
    if wanted.check_only {
        return Ok(());
    }
    let zips = build(&tools, &folder, wanted)?;
    look_at(&zips, wanted)?;
    write_template(&folder, wanted)?;
    let built = build_with_sam(&tools, &folder, wanted)?;
    look_at(&built, wanted)?;
    say(&format!(
        "to deploy the zips: sam deploy --template-file {} --parameter-overrides Architecture={}",
        folder.join("template.yaml").display(),
        wanted.architecture()
    ));
    Ok(())
}

fn parse(rest: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted::default();
    for word in rest {
        match word.as_str() {
            "--check" => wanted.check_only = true,
            "--arm64" => wanted.arm64 = true,
            _ => bail!("`package` knows `--check` and `--arm64` only"),
        }
    }
    Ok(wanted)
}

impl Wanted {
    const fn architecture(self) -> &'static str {
        if self.arm64 { "arm64" } else { "x86_64" }
    }
}

/// The tools, and where they find each other.
struct Tools {
    path: OsString,
    build_folder: PathBuf,
}

impl Tools {
    fn install(folder: &Path) -> Result<Self> {
        let python = environment("package-python", TOOLS)?;
        let bin = python.parent().context("an interpreter lies in a folder")?;
        #[expect(clippy::disallowed_methods, reason = "where programs lie is the environment's")]
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(all)?;
        Ok(Self { path, build_folder: folder.join("target") })
    }

    /// A program that finds the tools, and builds where nobody else does.
    fn program(&self, name: &str) -> Command {
        let mut command = program(name);
        command
            .env("PATH", &self.path)
            .env("CARGO_TARGET_DIR", &self.build_folder)
            .env("SAM_CLI_TELEMETRY", "0")
            // Nothing is asked of AWS, but the tools want to know whom they do not ask.
            .env("AWS_DEFAULT_REGION", "eu-central-1");
        command
    }
}

/// cargo-lambda would have rustup fetch what is missing.
fn require_arm64() -> Result<()> {
    let folder = output(program("rustc").args(["--print", "target-libdir", "--target", ARM64]))?;
    if !Path::new(folder.trim()).is_dir() {
        bail!("the standard library for arm64 is needed: rustup target add {ARM64}");
    }
    Ok(())
}

/// Has the template judged by SAM, and by the tests, which translate it and lint what comes out.
fn check_template(tools: &Tools) -> Result<()> {
    run(tools.program("sam").args(["validate", "--lint", "--template", "template.yaml"]))?;
    let python = environment("python", TESTS)?;
    let mut tests = program(python);
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    for entry in std::fs::read_dir(root().join("tests/python"))? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("test_template") && path.extension().is_some_and(|it| it == "py") {
            tests.arg(path);
        }
    }
    run(tests.env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// One provider of TLS in each function: a second one is half a megabyte for nothing, and the first
/// to be chosen at run time, or to break with a new toolchain.
fn check_tls() -> Result<()> {
    for (name, _) in FUNCTIONS {
        let tree = output(program("cargo").args([
            "tree",
            "--locked",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--package",
            name,
        ]))?;
        let others = other_tls(&tree);
        if !others.is_empty() {
            bail!("`{name}` has another provider of TLS: {}", others.join(", "));
        }
    }
    Ok(())
}

/// Providers of TLS other than ours among the crates of a tree.
fn other_tls(tree: &str) -> Vec<&str> {
    let crates = tree.lines().filter_map(|line| line.split(' ').next());
    crates.filter(|name| matches!(*name, "aws-lc-rs" | "openssl-sys" | "native-tls")).collect()
}

/// Builds a zip of each function; returns them.
fn build(tools: &Tools, folder: &Path, wanted: Wanted) -> Result<Vec<PathBuf>> {
    let mut cargo = tools.program("cargo");
    cargo.args(["lambda", "build", "--locked", "--profile", PROFILE, "--output-format", "zip"]);
    cargo.arg("--skip-target-check");
    if wanted.arm64 {
        cargo.arg("--arm64");
    }
    for (name, _) in FUNCTIONS {
        cargo.args(["--package", name]);
    }
    run(&mut cargo)?;
    let mut zips = Vec::new();
    for (name, _) in FUNCTIONS {
        let zip = folder.join(format!("{name}.zip"));
        let made = tools.build_folder.join("lambda").join(name).join("bootstrap.zip");
        std::fs::copy(&made, &zip).with_context(|| made.display().to_string())?;
        zips.push(zip);
    }
    Ok(zips)
}

/// Checks that Lambda can run what was built, and tells sizes.
fn look_at(files: &[PathBuf], wanted: Wanted) -> Result<()> {
    let mut look = program("python3");
    look.arg("tests/python/artefacts.py").arg(wanted.architecture()).args(files);
    run(look.env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Writes the template that takes the zips instead of folders.
fn write_template(folder: &Path, wanted: Wanted) -> Result<()> {
    let template = std::fs::read_to_string(root().join("template.yaml"))?;
    let template = with_zips(&template, wanted.architecture())?;
    std::fs::write(folder.join("template.yaml"), template)?;
    Ok(())
}

/// The template with zips in place of folders, and this architecture by default.
fn with_zips(template: &str, architecture: &str) -> Result<String> {
    let mut changes = BTreeMap::new();
    for (name, _) in FUNCTIONS {
        changes.insert(format!("CodeUri: functions/{name}"), format!("CodeUri: {name}.zip"));
    }
    changes.insert("Default: arm64".to_owned(), format!("Default: {architecture}"));
    let mut template = template.to_owned();
    for (old, new) in changes {
        if template.matches(&old).count() != 1 {
            bail!("`{old}` does not stand once in template.yaml");
        }
        template = template.replace(&old, &new);
    }
    Ok(template)
}

/// Builds as `sam build` does for users; returns the programs.
fn build_with_sam(tools: &Tools, folder: &Path, wanted: Wanted) -> Result<Vec<PathBuf>> {
    let built = folder.join("sam");
    run(tools
        .program("sam")
        .args(["build", "--template", "template.yaml", "--build-dir"])
        .arg(&built)
        .arg("--parameter-overrides")
        .arg(format!("Architecture={}", wanted.architecture())))?;
    Ok(FUNCTIONS.iter().map(|(_, name)| built.join(name).join("bootstrap")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_wanted_is_read() {
        assert_eq!(parse(&[]).unwrap(), Wanted::default());
        assert_eq!(
            parse(&words(&["--arm64", "--check"])).unwrap(),
            Wanted { check_only: true, arm64: true }
        );
        assert!(parse(&words(&["--arm"])).is_err());
    }

    /// DP-05: one provider of TLS in the tree.
    #[test]
    fn a_second_provider_of_tls_is_noticed() {
        assert!(other_tls("worker v0.0.0 (/w)\nring v0.17.14\nstringmatch v1.0.0\n").is_empty());
        assert_eq!(other_tls("worker v0.0.0\naws-lc-rs v1.19.0\n"), ["aws-lc-rs"]);
        assert_eq!(other_tls("openssl-sys v0.9.110\n"), ["openssl-sys"]);
    }

    /// DP-02: the zips are deployed for the architecture that they were built for.
    #[test]
    fn the_packaged_template_takes_the_zips() {
        let template = std::fs::read_to_string(root().join("template.yaml")).unwrap();
        let packaged = with_zips(&template, "x86_64").unwrap();
        assert!(packaged.contains("CodeUri: receiver.zip"));
        assert!(packaged.contains("CodeUri: worker.zip"));
        assert!(packaged.contains("CodeUri: scheduler.zip"));
        assert!(!packaged.contains("CodeUri: functions/"));
        assert!(packaged.contains("Default: x86_64"));
        assert!(!packaged.contains("Default: arm64"));
        assert!(with_zips(&packaged, "x86_64").is_err());
    }
}
