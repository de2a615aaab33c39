//! docs/logging.md against the sources: each line with its level and fields, and each metric.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets something unexpected shall panic"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Levels by the macros that log at them.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];
/// Rows of the page for lines whose text is made while the program runs.
const MADE: [&str; 3] = [
    "the platform refuses the API key, the account is out of tokens, or the platform does not answer as it should",
    "_n_ deliveries rejected, or answered with 503, since then",
    "the data folder is on a network, or shared with another machine",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/logging.md")).unwrap()
}

/// One line that is logged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    text: String,
    level: String,
    fields: BTreeSet<String>,
}

/// The sources of the product, without tests.
fn sources() -> Vec<PathBuf> {
    let mut folders = vec![root().join("cli/src")];
    for group in ["functions", "shared"] {
        for member in std::fs::read_dir(root().join(group)).unwrap() {
            let member = member.unwrap().path();
            if !member.ends_with("simulator") && !member.ends_with("testkit") {
                folders.push(member.join("src"));
            }
        }
    }
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() && name != "tests" {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && name != "tests.rs"
            {
                files.push(path);
            }
        }
    }
    files
}

/// The arguments of a macro, from after its parenthesis to the one that closes it.
fn arguments(code: &str) -> Vec<String> {
    let mut arguments = vec![String::new()];
    let (mut depth, mut is_text, mut is_escaped) = (0, false, false);
    for c in code.chars() {
        if is_text {
            is_text = is_escaped || c != '"';
            is_escaped = c == '\\' && !is_escaped;
        } else {
            match c {
                '"' => is_text = true,
                '(' | '[' | '{' => depth += 1,
                ')' if depth == 0 => break,
                ')' | ']' | '}' => depth -= 1,
                ',' if depth == 0 => {
                    arguments.push(String::new());
                    continue;
                }
                _ => {}
            }
        }
        arguments.last_mut().unwrap().push(c);
    }
    let trimmed = arguments.into_iter().map(|argument| argument.trim().to_owned());
    trimmed.filter(|argument| !argument.is_empty()).collect()
}

/// The lines that a source logs.
fn lines(code: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for level in LEVELS {
        for call in code.split(&format!("tracing::{level}!(")).skip(1) {
            let arguments = arguments(call);
            // What follows the text is put into it.
            let Some(at) = arguments.iter().position(|argument| argument.starts_with('"')) else {
                continue;
            };
            let field = |argument: &String| {
                let name = argument.split('=').next().unwrap().trim();
                name.trim_start_matches(['%', '?']).to_owned()
            };
            lines.push(Line {
                text: arguments[at].trim_matches('"').to_owned(),
                level: level.to_owned(),
                fields: arguments[..at].iter().map(field).collect(),
            });
        }
    }
    lines
}

/// Everything that is logged, constants in place of their names.
fn logged() -> BTreeSet<Line> {
    let mut logged = BTreeSet::new();
    for file in sources() {
        let code = std::fs::read_to_string(&file).unwrap();
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for mut line in lines(code) {
            if let Some(name) = line.text.strip_prefix('{') {
                let name = name.trim_end_matches('}');
                let constant = format!("const {name}: &str = \"");
                // Texts that are made while the program runs have rows of their own.
                let Some(text) = code.split(&constant).nth(1) else { continue };
                text.split('"').next().unwrap().clone_into(&mut line.text);
            }
            logged.insert(line);
        }
    }
    logged
}

/// The page's rows.
fn documented() -> Vec<Line> {
    let page = page();
    let lines = page.split("\n## The lines\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let row = |row: &str| {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let fields = cells[2].split(',').map(|field| field.trim().trim_matches('`').to_owned());
        Line {
            text: cells[0].to_owned(),
            level: cells[1].to_owned(),
            fields: fields.filter(|field| !field.is_empty()).collect(),
        }
    };
    let rows = lines.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| line |"));
    rows.map(row).collect()
}

/// OB-01, OB-02: every line that is logged is on the page, with its level and its fields; a field
/// that nobody wrote down is one that nobody thought about.
#[test]
fn each_line_is_on_the_page_with_its_level_and_fields() {
    let documented = documented();
    let logged = logged();
    assert!(logged.len() > 40, "the sources are read: {logged:?}");
    for line in &logged {
        let row = documented.iter().find(|row| row.text == line.text && row.level == line.level);
        let Some(row) = row else { panic!("docs/logging.md lacks {line:?}") };
        assert!(row.fields.is_superset(&line.fields), "{line:?}: docs/logging.md has {row:?}");
    }
    for row in &documented {
        let said: Vec<_> = logged.iter().filter(|line| line.text == row.text).collect();
        let fields: BTreeSet<_> = said.iter().flat_map(|line| &line.fields).cloned().collect();
        let is_made = MADE.contains(&row.text.as_str());
        assert!(is_made || (!said.is_empty() && fields == row.fields), "nobody says {row:?}");
    }
}

#[test]
fn the_table_of_metrics_is_current() {
    let table = telemetry::markdown();
    let page = page();
    let is_there = page.ends_with(&table);
    assert!(is_there, "docs/logging.md shall end with\n{table}");
}

#[test]
fn calls_are_read_as_they_are_written() {
    let code = r#"
        tracing::warn!(job.id = %key.job_id, %error, n = f(1, "a,b\")"), "a, text; (1)");
        tracing::info!("alone");
    "#;
    let read = lines(code);
    let fields = ["error", "job.id", "n"].map(str::to_owned).into();
    let text = "a, text; (1)".to_owned();
    assert_eq!(read[0], Line { text, level: "warn".to_owned(), fields });
    assert_eq!((read[1].text.as_str(), read[1].fields.len()), ("alone", 0));
}
