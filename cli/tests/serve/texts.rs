//! The texts that people read: help and errors.

use tempfile::TempDir;

use super::process::{command, run};

async fn help(name: &str, args: &[&str]) {
    let dir = TempDir::new().unwrap();
    let (code, out, talk) = run(command(dir.path(), args)).await;
    assert_eq!((code, talk.as_str()), (0, ""));
    insta::assert_snapshot!(name, out);
}

#[tokio::test(flavor = "multi_thread")]
async fn help_texts() {
    help("help_serve", &["serve", "--help"]).await;
    help("help_settings", &["settings", "--help"]).await;
    help("help_webhooks", &["webhooks", "--help"]).await;
    help("help_webhooks_create", &["webhooks", "create", "--help"]).await;
    help("help_webhooks_ensure", &["webhooks", "ensure", "--help"]).await;
    help("help_webhooks_update", &["webhooks", "update", "--help"]).await;
    help("help_webhooks_delete", &["webhooks", "delete", "--help"]).await;
    help("help_rotate", &["rotate", "--help"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_in_force() {
    let dir = TempDir::new().unwrap();
    let (code, out, _) = run(command(dir.path(), &["settings"])).await;
    assert_eq!(code, 0);
    insta::assert_snapshot!("settings", out);
}

/// One process that fails, with the environment that makes it.
async fn error(name: &str, args: &[&str], environment: &[(&str, &str)], expected: i32) {
    let dir = TempDir::new().unwrap();
    let mut command = command(dir.path(), args);
    command.envs(environment.iter().copied());
    for (name, _) in environment.iter().filter(|(_, value)| *value == UNSET) {
        command.env_remove(name);
    }
    let (code, out, talk) = run(command).await;
    assert_eq!((code, out.as_str()), (expected, ""), "{talk}");
    insta::assert_snapshot!(name, talk);
}

/// Takes a variable out of the environment.
const UNSET: &str = "(unset)";

#[tokio::test(flavor = "multi_thread")]
async fn error_texts() {
    error("error_no_secret", &["serve"], &[], 78).await;
    error("error_no_key", &["webhooks", "list"], &[("GLEANER_API_KEY", UNSET)], 78).await;
    let key_file = ["webhooks", "list", "--api-key-file", "nowhere"];
    error("error_no_key_file", &key_file, &[], 78).await;
    let wrong = ["settings", "--set", "workers=none", "--set", "limits.backof_base=1s"];
    let environment = [("GLEANER_TICK", "15"), ("GLEANER_WORKRES", "4")];
    error("error_settings", &wrong, &environment, 78).await;
    error("error_set", &["settings", "--set", "workers"], &[], 64).await;
    error("error_secret_on_command_line", &["settings", "--set", "api_key=x"], &[], 78).await;
    error("error_no_url", &["webhooks", "create"], &[], 64).await;
    error("error_api_url", &["settings", "--api-url", "ftp://example.org"], &[], 78).await;
}
