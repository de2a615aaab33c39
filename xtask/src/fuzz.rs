//! Fuzzing: the targets of `fuzz/`, one after the other, with the nightly toolchain.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::command::{has, program, root, run, say};

/// How long each target runs unless told otherwise, in seconds.
const SECONDS: u64 = 60;
/// Longest time for one input, in seconds; the slowest seed takes a hundredth of one.
const TIMEOUT_SECONDS: u64 = 10;
/// Most memory of one target, in MiB: bodies inflate to 64 MiB and objects to 256 MiB.
const MEMORY_MIB_MAX: u64 = 2_048;

/// The targets, and the words that their inputs are made of.
const TARGETS: [(&str, &str); 13] = [
    ("answers", "json"),
    ("content", "json"),
    ("envelope", "json"),
    ("gzip", "none"),
    ("header", "header"),
    ("lines", "names"),
    ("names", "names"),
    ("retry_after", "times"),
    ("rows", "json"),
    ("scheme", "scheme"),
    ("secrets_file", "json"),
    ("sources", "settings"),
    ("task", "json"),
];

/// Runs the targets that are named, or all; `--seconds` is for each of them.
pub(crate) fn search(rest: &[String]) -> Result<()> {
    let (names, seconds) = parse(rest)?;
    if !has("cargo-fuzz") {
        bail!("cargo-fuzz is needed: cargo install cargo-fuzz --locked");
    }
    for (target, words) in TARGETS {
        if names.is_empty() || names.contains(&target) {
            fuzz(target, words, seconds)?;
        }
    }
    Ok(())
}

fn parse(rest: &[String]) -> Result<(Vec<&str>, u64)> {
    let mut names = Vec::new();
    let mut seconds = SECONDS;
    let mut rest = rest.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        if word == "--seconds" {
            let number = rest.next().and_then(|number| number.parse().ok());
            seconds = number.filter(|seconds| *seconds > 0).context("--seconds wants a number")?;
        } else if TARGETS.iter().any(|(target, _)| *target == word) {
            names.push(word);
        } else {
            let known: Vec<_> = TARGETS.iter().map(|(target, _)| *target).collect();
            bail!("`{word}` is no target; there are {}", known.join(", "));
        }
    }
    Ok((names, seconds))
}

fn fuzz(target: &str, words: &str, seconds: u64) -> Result<()> {
    let fuzz = root().join("fuzz");
    // What is found goes into the first folder; the seeds stay as people wrote them.
    let grown = fuzz.join("target/corpus").join(target);
    std::fs::create_dir_all(&grown)?;
    let mut command = program("nice");
    // Our code has no unsafe blocks, so an address sanitizer would only make it slow.
    command
        .args(["-n", "19", "cargo", "+nightly", "fuzz", "run", "--sanitizer", "none", target])
        .arg(&grown)
        .arg(fuzz.join("corpus").join(target));
    let crashes = fuzz.join("crashes").join(target);
    if crashes.is_dir() {
        command.arg(crashes);
    }
    command.arg("--").arg("-print_final_stats=1").arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-timeout={TIMEOUT_SECONDS}"));
    command.arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"));
    let dictionary = fuzz.join("dictionaries").join(format!("{words}.dict"));
    if dictionary.is_file() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    say(&format!("{target}: {seconds} s, beginning with {} inputs", count(&grown)?));
    run(&mut command).with_context(|| {
        format!(
            "an input that breaks `{target}` lies in fuzz/artifacts/{target}; see fuzz/README.md"
        )
    })
}

fn count(folder: &Path) -> Result<usize> {
    Ok(std::fs::read_dir(folder)?.count())
}
