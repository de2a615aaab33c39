//! What people and shells read: help, exit codes, completions.

use crate::bench::Folder;

async fn shown(args: &[&str]) -> String {
    Folder::new("http://127.0.0.1:9").run(args).await.expect(0).out
}

#[tokio::test]
async fn help_is_a_released_text() {
    for verb in ["submit", "extract", "poll", "results", "jobs"] {
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

#[tokio::test]
async fn completions_know_the_verbs() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = shown(&["completions", shell]).await;
        assert!(script.contains("submit") && script.contains("redrive"), "{shell}");
    }
}
