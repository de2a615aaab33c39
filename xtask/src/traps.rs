//! docs/traps.md: which test shows which known trap. Tests name traps in their doc comments, and
//! the page's last column is made from them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::command::root;

/// Families of traps: two letters, a hyphen and two digits; `S` and two digits for the last one.
const FAMILIES: [&str; 11] = ["FD", "SG", "PL", "DQ", "WK", "SC", "SM", "CL", "SQ", "DP", "OB"];
/// A row whose trap has no test says why, beginning so.
const REASON: &str = "not ";

/// Checks that the page is as the tests say, and that each trap has a test or a reason.
pub(crate) fn check(files: &[PathBuf], findings: &mut Vec<String>) -> Result<()> {
    let (old, new) = pages(files)?;
    if old != new {
        findings.push("docs/traps.md is not current: run `cargo xtask docs`".to_owned());
    }
    for line in new.lines() {
        if let Some((id, _, last)) = row(line)
            && last.is_empty()
        {
            findings.push(format!("docs/traps.md: {id} has neither a test nor a reason"));
        }
    }
    Ok(())
}

/// Writes the page anew.
pub(crate) fn write(files: &[PathBuf]) -> Result<()> {
    std::fs::write(page(), pages(files)?.1).context("docs/traps.md")
}

fn page() -> PathBuf {
    root().join("docs/traps.md")
}

/// The page as it is and as it should be.
fn pages(files: &[PathBuf]) -> Result<(String, String)> {
    let old = std::fs::read_to_string(page()).context("docs/traps.md")?;
    let tests = tests(files)?;
    let mut new = String::new();
    for line in old.lines() {
        match row(line) {
            None => new.push_str(line),
            Some((id, title, last)) => {
                let named = named(id, title, &tests);
                let reason = if last.starts_with(REASON) { last } else { "" };
                let last = match (named, reason) {
                    (Some(named), "") => named,
                    // Part of a trap can be shown while the rest has a reason.
                    (Some(named), reason) => {
                        let reason = reason.split(" Shown so far: ").next().unwrap_or(reason);
                        format!("{reason} Shown so far: {named}")
                    }
                    (None, reason) => reason.to_owned(),
                };
                new.push_str(&format_row(id, title, &last));
            }
        }
        new.push('\n');
    }
    Ok((old, new))
}

/// The tests of a trap; where none names it, those of the traps that its title refers to.
fn named(id: &str, title: &str, tests: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
    let of = |id: &str| tests.get(id).into_iter().flatten();
    let mut found: BTreeSet<&String> = of(id).collect();
    if found.is_empty() {
        found = traps_in(title).flat_map(|id| of(&id).collect::<Vec<_>>()).collect();
    }
    let list = found.into_iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join(", ");
    (!list.is_empty()).then_some(list)
}

fn format_row(id: &str, title: &str, last: &str) -> String {
    format!("| {id} | {title} | {last} |")
}

/// The cells of a row that begins with a trap's id.
fn row(line: &str) -> Option<(&str, &str, &str)> {
    let cells = line.strip_prefix("| ")?.strip_suffix('|')?;
    let (id, rest) = cells.split_once(" | ")?;
    let (title, last) = rest.split_once(" |")?;
    is_trap(id).then_some((id, title, last.trim()))
}

fn is_trap(word: &str) -> bool {
    let digits = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    match word.split_once('-') {
        Some((family, number)) => FAMILIES.contains(&family) && digits(number),
        None => word.strip_prefix('S').is_some_and(digits),
    }
}

/// Tests by the traps that their doc comments name.
fn tests(files: &[PathBuf]) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let extension = file.extension().and_then(|extension| extension.to_str());
        let text = match extension {
            Some("rs" | "py") => std::fs::read_to_string(file)?,
            _ => continue,
        };
        let owner = owner(file);
        let mut named: BTreeSet<String> = BTreeSet::new();
        for line in text.lines() {
            let line = line.trim();
            if let Some(comment) = line.strip_prefix("///").or_else(|| line.strip_prefix("# ")) {
                named.extend(traps_in(comment));
            } else if let Some(name) = function(line) {
                for trap in std::mem::take(&mut named) {
                    found.entry(trap).or_default().insert(format!("{owner}: {name}"));
                }
            } else if !line.starts_with("#[") && !line.starts_with('@') {
                named.clear();
            }
        }
    }
    Ok(found)
}

fn traps_in(comment: &str) -> impl Iterator<Item = String> + '_ {
    comment
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .filter(|word| is_trap(word))
        .map(ToOwned::to_owned)
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let rest = ["fn ", "async fn ", "pub fn ", "pub async fn ", "def "]
        .iter()
        .find_map(|keyword| line.strip_prefix(keyword))?;
    rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
}

/// The crate that a file belongs to: its folder below `shared`, or its first folder.
fn owner(file: &Path) -> String {
    let path = file.strip_prefix(root()).unwrap_or(file);
    let mut parts = path.iter().filter_map(|part| part.to_str());
    match parts.next() {
        Some("shared") => parts.next().unwrap_or_default().to_owned(),
        first => first.unwrap_or_default().to_owned(),
    }
}
