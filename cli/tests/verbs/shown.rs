//! What people and shells read: help, exit codes, completions.

use std::fmt::Write as _;

use crate::bench::Folder;
use crate::scripted::{Reply, Scripted, job};

async fn shown(args: &[&str]) -> String {
    Folder::new("http://127.0.0.1:9").run(args).await.expect(0).out
}

#[tokio::test]
async fn help_is_a_released_text() {
    for verb in ["submit", "extract", "poll", "results", "jobs", "explain", "audit"] {
        insta::assert_snapshot!(format!("help_{verb}"), shown(&[verb, "--help"]).await);
    }
}

/// CL-03: the codes are distinct, and their table is a released text.
#[tokio::test]
async fn exit_codes_are_a_released_table() {
    insta::assert_snapshot!("exit_codes", shown(&["exit-codes"]).await);
    let lines = shown(&["exit-codes", "--json"]).await;
    let mut codes: Vec<u64> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["code"].as_u64())
        .map(Option::unwrap)
        .collect();
    let count = codes.len();
    codes.dedup();
    assert_eq!((codes.len(), codes.is_sorted()), (count, true));
}

/// What a program reads: one versioned document per line. A change of it needs a new version.
#[tokio::test]
async fn machine_output_is_a_released_format() {
    let script = |_: usize, line: &str| match line.split(' ').next() {
        Some("post") => Reply::Answer(202, "", r#"{"job_id":"j1","status":"queued"}"#.to_owned()),
        _ => job("j1", "completed"),
    };
    let platform = Scripted::start(script).await;
    let folder = Folder::new(&platform.url);
    let mut text = String::new();
    for line in [
        "submit https://example.com/ --ref mine --run r --json",
        "submit https://example.com/ --ref mine --run r --json --dry-run",
        "poll j1 --json",
        "poll --json",
        "jobs --json",
        "jobs counts --json",
        "results list --json",
        "results path j1 --json",
    ] {
        let ran = folder.run(&line.split(' ').collect::<Vec<_>>()).await.expect(0);
        for mut document in ran.json() {
            if let Some(time) = document.get_mut("first_seen") {
                *time = "[time]".into();
            }
            writeln!(text, "$ gleaner {line}\n{document:#}").unwrap();
        }
    }
    let root = folder.path().canonicalize().unwrap();
    let text = text.replace(&root.display().to_string(), "[folder]");
    insta::assert_snapshot!("machine_output", text);
}

#[tokio::test]
async fn completions_know_the_verbs() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = shown(&["completions", shell]).await;
        assert!(script.contains("submit") && script.contains("redrive"), "{shell}");
    }
}
