//! `gleaner demo` and `gleaner simulate` as a newcomer meets them.

use std::process::Stdio;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::process::{command, run};

/// What the simulator says, line by line, until it ends with its standard input.
async fn simulate(dir: &TempDir, args: &[&str]) -> Vec<String> {
    let all = [&["simulate", "--listen", "127.0.0.1:0", "--end-with-stdin"], args].concat();
    let mut child = command(dir.path(), &all).stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = vec![lines.next_line().await.unwrap().unwrap()];
    drop(child.stdin.take());
    while let Some(line) = lines.next_line().await.unwrap() {
        said.push(line);
    }
    assert!(child.wait().await.unwrap().success());
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn the_simulator_says_how_to_use_it() {
    let dir = TempDir::new().unwrap();
    let said = simulate(&dir, &[]).await;
    let url = said[0].strip_prefix("listening on ").unwrap();
    assert_eq!(said[1], format!("export GLEANER_API_URL={url}"));
    assert_eq!(said[2], "export GLEANER_API_KEY=simulated-key");
    // A key of one's own is not shown.
    std::fs::write(dir.path().join("simulator.toml"), "api_key = \"hush-hush\"\n").unwrap();
    let said = simulate(&dir, &["--config", "simulator.toml"]).await;
    assert!(said[2].starts_with("export GLEANER_API_KEY=... "), "{said:?}");
    assert!(!said.concat().contains("hush-hush"), "{said:?}");
    assert_eq!(simulate(&dir, &["--json"]).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_says_that_its_folder_is_gone() {
    let dir = TempDir::new().unwrap();
    let args = ["demo", "--jobs", "1", "--faults", "none", "--speed", "1000"];
    let (code, out, talk) = run(command(dir.path(), &args)).await;
    assert_eq!(code, 0, "{talk}");
    assert!(out.trim_end().ends_with("(removed; --dir keeps them)"), "{out}");
    let kept = [&args[..], &["--dir", "kept", "--json"]].concat();
    let (code, out, talk) = run(command(dir.path(), &kept)).await;
    assert_eq!(code, 0, "{talk}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["dir"], "kept");
    assert!(dir.path().join("kept/ledger.db").exists());
}

/// A corpus that cannot be used is one error, before anything starts.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_corpus_is_told_before_anything_starts() {
    let dir = TempDir::new().unwrap();
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    for corpus in ["nowhere", "empty"] {
        let args = ["demo", "--dir", "made", "--corpus", corpus];
        let (code, out, talk) = run(command(dir.path(), &args)).await;
        assert_eq!((code, out.as_str()), (64, ""), "{talk}");
        assert!(talk.contains("--corpus") && talk.contains(corpus), "{talk}");
        assert_eq!(talk.matches("error:").count(), 1, "{talk}");
        assert!(!dir.path().join("made").exists());
    }
}

/// Verbs that read no settings neither offer nor take their flags; others take them on either side.
#[tokio::test(flavor = "multi_thread")]
async fn settings_are_flags_of_the_verbs_that_read_them() {
    let dir = TempDir::new().unwrap();
    for verb in ["demo", "simulate", "completions", "exit-codes"] {
        let (_, out, _) = run(command(dir.path(), &[verb, "--help"])).await;
        for flag in ["--data-dir", "--api-url", "--api-key-file", "--set ", "Settings:"] {
            assert!(!out.contains(flag), "{verb} {flag}: {out}");
        }
        let own = if verb == "completions" { &["bash"][..] } else { &[] };
        let (flag, verb) = (&["--data-dir", "x"][..], &[verb][..]);
        for args in [[flag, verb, own].concat(), [verb, flag, own].concat()] {
            let (code, out, talk) = run(command(dir.path(), &args)).await;
            assert_eq!((code, out.as_str()), (64, ""), "{args:?}: {talk}");
            assert!(talk.contains("reads no settings: leave --data-dir out"), "{talk}");
        }
    }
    for args in [["--data-dir", "x", "jobs"], ["jobs", "--data-dir", "x"]] {
        let (code, _, talk) = run(command(dir.path(), &args)).await;
        assert_eq!(code, 4, "{talk}");
        assert!(talk.contains("there is no ledger in `x`"), "{talk}");
    }
}
