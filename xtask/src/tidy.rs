//! House rules that no lint knows. Each finding names the file and what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::command::{output, program, root, say};
use crate::traps;

/// Longest source file, in lines, tests in files of their own not counted: longer ones hide what
/// they hold.
const LINES_MAX: usize = 500;
/// Module names that say nothing.
const DULL_NAMES: [&str; 9] =
    ["utils", "util", "helpers", "helper", "common", "misc", "types", "manager", "service"];
/// Folders that are not ours.
const SKIPPED: [&str; 3] = ["target", ".git", "gleaner-data"];

/// Which of our crates may know which others; an edge that is not here is a finding.
const EDGES: [(&str, &[&str]); 24] = [
    ("domain", &[]),
    ("settings", &["domain"]),
    ("system", &["domain"]),
    ("tls", &[]),
    ("telemetry", &["domain", "settings"]),
    ("scraper-api", &["domain", "tls"]),
    ("results", &["domain", "tls"]),
    ("embedded", &["domain"]),
    ("aws-client", &["domain"]),
    ("ledger-dynamodb", &["aws-client", "domain"]),
    ("queue-sqs", &["aws-client", "domain"]),
    ("secrets-aws", &["aws-client", "domain"]),
    // The simulator knows nothing of the product that it tests.
    ("simulator", &["tls"]),
    ("testkit", &["domain", "simulator"]),
    // The API and its key are for the functions that ask for them.
    (
        "host",
        &["aws-client", "domain", "scraper-api", "secrets-aws", "settings", "system", "telemetry"],
    ),
    // It has neither results nor the API.
    (
        "receiver",
        &[
            "aws-client",
            "domain",
            "host",
            "ledger-dynamodb",
            "queue-sqs",
            "secrets-aws",
            "settings",
            "system",
            "telemetry",
        ],
    ),
    ("worker", FUNCTION),
    ("scheduler", FUNCTION),
    // It has neither the queue nor results.
    (
        "rotator",
        &[
            "aws-client",
            "domain",
            "host",
            "ledger-dynamodb",
            "secrets-aws",
            "settings",
            "system",
            "telemetry",
        ],
    ),
    (
        "gleaner",
        &[
            "aws-client",
            "domain",
            "embedded",
            "ledger-dynamodb",
            "queue-sqs",
            "results",
            "scraper-api",
            "secrets-aws",
            "settings",
            "simulator",
            "system",
            "telemetry",
            "tls",
        ],
    ),
    ("benchmarks", &["domain", "embedded", "gleaner", "simulator", "system", "testkit", "tls"]),
    ("empty-function", &[]),
    ("judge", &["gleaner"]),
    ("xtask", &[]),
];

/// What a function may know that asks the platform.
const FUNCTION: &[&str] = &[
    "aws-client",
    "domain",
    "host",
    "ledger-dynamodb",
    "queue-sqs",
    "results",
    "scraper-api",
    "settings",
    "system",
    "telemetry",
];

/// Crates that `domain` may use; everything else is somebody else's concern.
const DOMAIN_MAY_USE: [&str; 14] = [
    "async-trait",
    "base64",
    "flate2",
    "hex",
    "hmac",
    "httpdate",
    "jiff",
    "serde",
    "serde_json",
    "sha2",
    "subtle",
    "thiserror",
    "tokio",
    "url",
];

/// Checks all rules.
pub(crate) fn run() -> Result<()> {
    let mut findings = Vec::new();
    dependencies(&mut findings)?;
    default_build(&mut findings)?;
    let files = files(&root())?;
    for file in &files {
        source(file, &mut findings)?;
    }
    snapshots(&files, &mut findings)?;
    traps::check(&files, &mut findings)?;
    for finding in &findings {
        say(&format!("tidy: {finding}"));
    }
    if !findings.is_empty() {
        bail!("{} findings", findings.len());
    }
    Ok(())
}

/// Every edge between our crates is allowed, and `domain` uses what it may.
fn dependencies(findings: &mut Vec<String>) -> Result<()> {
    let metadata = output(program("cargo").args([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--locked",
    ]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata.get("packages").and_then(Value::as_array).context("no packages")?;
    let allowed: BTreeMap<_, _> = EDGES.into_iter().collect();
    let names: Vec<_> = packages.iter().filter_map(|package| text(package, "name")).collect();
    for package in packages {
        let Some(name) = text(package, "name") else { continue };
        let Some(may) = allowed.get(name) else {
            findings.push(format!("the crate `{name}` is not in xtask's table of edges"));
            continue;
        };
        for dependency in
            package.get("dependencies").and_then(Value::as_array).into_iter().flatten()
        {
            let Some(on) = text(dependency, "name") else { continue };
            // Tests may use the testkit and the simulator.
            if text(dependency, "kind") == Some("dev") {
                continue;
            }
            if names.contains(&on) && !may.contains(&on) {
                findings.push(format!("`{name}` may not depend on `{on}`"));
            }
            if name == "domain" && !DOMAIN_MAY_USE.contains(&on) && on != "uuid" {
                findings.push(format!("`domain` may not use `{on}`"));
            }
        }
    }
    Ok(())
}

/// Who installs the command line without naming a feature builds no client of AWS.
fn default_build(findings: &mut Vec<String>) -> Result<()> {
    let tree = output(program("cargo").args([
        "tree",
        "--locked",
        "--package",
        "gleaner",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
    ]))?;
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let is_of_aws = |name: &&str| name.starts_with("aws-");
    let found: BTreeSet<&str> = names.filter(is_of_aws).collect();
    for name in found {
        findings.push(format!("`gleaner` builds `{name}` without its feature `aws`"));
    }
    Ok(())
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// Rules about one source file.
fn source(file: &Path, findings: &mut Vec<String>) -> Result<()> {
    if file.extension().is_none_or(|extension| extension != "rs") {
        return Ok(());
    }
    let shown = shown(file);
    let text = std::fs::read_to_string(file)?;
    let is_test = shown.contains("/tests/") || shown.ends_with("tests.rs");
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().count();
    if lines > LINES_MAX && !is_test {
        findings.push(format!("{shown} has {lines} lines, at most {LINES_MAX}: split it"));
    }
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if DULL_NAMES.contains(&stem) {
        findings.push(format!("{shown}: name the module after what it holds"));
    }
    for (number, line) in text.lines().enumerate() {
        let unfinished = ["TO", "FIX"]
            .iter()
            .any(|word| line.contains(&format!("{word}DO")) || line.contains(&format!("{word}ME")));
        if unfinished {
            findings.push(format!("{shown}:{}: unfinished work", number + 1));
        }
        if line.trim_start().starts_with("#[ignore") {
            findings.push(format!("{shown}:{}: a test that nobody runs", number + 1));
        }
    }
    Ok(())
}

/// Every snapshot belongs to a source file that is still there.
fn snapshots(files: &[PathBuf], findings: &mut Vec<String>) -> Result<()> {
    for file in files {
        let name = file.to_string_lossy();
        if name.ends_with(".snap.new") {
            findings.push(format!("{}: a snapshot that nobody accepted", shown(file)));
        }
        if !name.ends_with(".snap") {
            continue;
        }
        let text = std::fs::read_to_string(file)?;
        let source = text.lines().find_map(|line| line.strip_prefix("source: "));
        match source {
            Some(source) if root().join(source).is_file() => {}
            _ => findings.push(format!("{}: its test is gone", shown(file))),
        }
    }
    Ok(())
}

fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

/// All files of the repository.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() {
                if !SKIPPED.contains(&name) {
                    folders.push(path);
                }
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
