//! `gleaner settings`, and the page that is made of the table.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::process::{command, run};

#[tokio::test(flavor = "multi_thread")]
async fn settings_show_their_source_and_no_secret() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("gleaner.toml"), "workers = 3\n[limits]\nmax_age = \"72h\"\n")
        .unwrap();
    let args = ["settings", "--json", "--data-dir", "elsewhere", "--set", "tick=1s"];
    let mut command = command(dir.path(), &args);
    command.env("GLEANER_API_KEY", "hush-hush").env("GLEANER_WEBHOOK_SECRET", "hush-hush");
    let (code, out, talk) = run(command).await;
    assert_eq!((code, talk.as_str()), (0, ""));
    assert!(!out.contains("hush-hush"), "{out}");
    let rows: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), settings::table().count());
    assert!(rows.iter().all(|row| row["version"] == 1 && row["type"] == "setting"));
    for (name, value, source) in [
        ("data_dir", "elsewhere", "--data-dir"),
        ("tick", "1s", "--set"),
        ("api_url", "http://127.0.0.1:9", "GLEANER_API_URL"),
        ("api_key", "[redacted]", "GLEANER_API_KEY"),
        ("webhook_secret", "[redacted]", "GLEANER_WEBHOOK_SECRET"),
        ("workers", "3", "gleaner.toml"),
        ("limits.max_age", "72h", "gleaner.toml"),
        ("limits.retention", "90d", "default"),
    ] {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        assert_eq!((&row["value"], &row["source"]), (&value.into(), &source.into()), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_file_is_named_by_flag_or_variable() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("one.toml"), "workers = 1").unwrap();
    std::fs::write(dir.path().join("two.toml"), "workers = 2").unwrap();
    let mut by_variable = command(dir.path(), &["settings"]);
    by_variable.env("GLEANER_CONFIG", "one.toml");
    assert!(run(by_variable).await.1.contains("workers = 1  (one.toml)\n"));
    let mut by_flag = command(dir.path(), &["settings", "--config", "two.toml"]);
    by_flag.env("GLEANER_CONFIG", "one.toml");
    assert!(run(by_flag).await.1.contains("workers = 2  (two.toml)\n"));
    let missing = run(command(dir.path(), &["settings", "--config", "three.toml"])).await;
    assert_eq!(missing.0, 78);
    assert!(missing.2.contains("cannot read the settings file `three.toml`"), "{}", missing.2);
}

/// A ledger on AWS is never replaced by the one of this machine, which owes nothing that it knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_backend_on_aws_is_not_replaced_by_the_data_folder() {
    for verb in
        [&["serve"][..], &["poll"], &["submit", "https://e.org/"], &["jobs"], &["webhooks", "list"]]
    {
        let dir = TempDir::new().unwrap();
        let mut command = command(dir.path(), &[&["--set", "backend=aws"], verb].concat());
        command.env("GLEANER_API_KEY", "k").env("GLEANER_STACK", "gleaner");
        command.env("AWS_EC2_METADATA_DISABLED", "true");
        let (code, _, talk) = run(command).await;
        assert_eq!(code, 78, "{verb:?}: {talk}");
        let expected = match verb {
            ["serve"] => "`serve` is the server of one machine, and the backend is on AWS",
            _ if cfg!(feature = "aws") => "there is no AWS region",
            _ => {
                "this build has no backend on AWS\nhint: get it with `cargo install --path cli --features aws`"
            }
        };
        assert!(talk.contains(expected), "{verb:?}: {talk}");
        assert!(!dir.path().join("gleaner-data").exists(), "{verb:?}");
    }
}

/// The page in docs is what the table says. Write it anew with
/// `cargo run -p gleaner -- settings --markdown > docs/configuration.md`.
#[tokio::test(flavor = "multi_thread")]
async fn the_reference_page_is_up_to_date() {
    let dir = TempDir::new().unwrap();
    let (code, out, _) = run(command(dir.path(), &["settings", "--markdown"])).await;
    assert_eq!(code, 0);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    assert!(std::fs::read_to_string(page).unwrap() == out, "docs/configuration.md is out of date");
}
