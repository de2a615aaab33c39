//! docs/traps.md names a test for each known trap; each of these tests is there.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::command::root;

/// Checks that each test that the page names is a function of a source file.
pub(crate) fn check(files: &[PathBuf], findings: &mut Vec<String>) -> Result<()> {
    let page = root().join("docs/traps.md");
    let text = std::fs::read_to_string(&page).context("docs/traps.md")?;
    let tests = tests(files)?;
    for (number, line) in text.lines().enumerate() {
        let Some(row) = line.strip_prefix("| ") else { continue };
        let mut cells = row.split('|').map(str::trim);
        let (Some(id), Some(named)) = (cells.next(), cells.next()) else { continue };
        if !is_trap(id) {
            continue;
        }
        let names: Vec<_> = named.split('`').skip(1).step_by(2).collect();
        if names.is_empty() && !named.starts_with("not ") {
            findings.push(format!("docs/traps.md:{}: {id} names no test", number + 1));
        }
        for name in names {
            let function = name.rsplit("::").next().unwrap_or(name);
            if !tests.contains(function) {
                findings.push(format!("docs/traps.md:{}: {id}: no test `{name}`", number + 1));
            }
        }
    }
    Ok(())
}

/// `SG-01`, `S17`: letters, then digits.
fn is_trap(id: &str) -> bool {
    let letters = id.chars().take_while(char::is_ascii_uppercase).count();
    let rest = id.get(letters..).unwrap_or_default();
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    letters > 0 && !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit())
}

/// Names of all functions: tests are functions, in Rust and in Python.
fn tests(files: &[PathBuf]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for file in files {
        let extension = file.extension().and_then(|extension| extension.to_str());
        let keyword = match extension {
            Some("rs") => "fn ",
            Some("py") => "def ",
            _ => continue,
        };
        let text = std::fs::read_to_string(file)?;
        for line in text.lines() {
            let Some((_, after)) = line.split_once(keyword) else { continue };
            let is_name = |character: &char| character.is_ascii_alphanumeric() || *character == '_';
            names.insert(after.chars().take_while(is_name).collect());
        }
    }
    Ok(names)
}
