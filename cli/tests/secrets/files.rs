//! Files and variables that hold a secret and cannot be used.

use std::os::unix::fs::PermissionsExt as _;

use crate::bench::Folder;
use crate::markers::{BODY, KEY, OLD_SECRET, QUERY, SECRET};
use crate::watched::{run, run_with};

fn folder() -> Folder {
    Folder::new("http://127.0.0.1:9")
}

/// OB-01: settings files with secrets in them, in their place or in a wrong one.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_settings_files_are_not_quoted() {
    let folder = folder();
    for text in [
        format!("api_key = \"{KEY}\"\n"),
        format!("api_key = {KEY}\n"),
        format!("api_key = [\"{KEY}\"]\n"),
        format!("api_key = \"{KEY}\napi_key = '{KEY}"),
        format!("api_key: {KEY}\n"),
        format!("webhook_secret = \"{SECRET}\"\nwebhook_secret_previous = \"{OLD_SECRET}\"\n"),
        format!("webhook_secret = {{ secret = \"{SECRET}\" }}\n"),
        format!("{SECRET}\n"),
        format!("workers = 1\nworkers = \"{SECRET}\"\n"),
        format!("[limits\nx = \"{SECRET}\"\n"),
        format!("public_url = \"https://user:{KEY}@example.org/\"\n"),
        format!("public_url = \"https://example.org/?key={KEY}\"\n"),
        format!("public_url = [\"https://user:{KEY}@example.org/?token={QUERY}\"]\n"),
        format!("# {KEY}\n\"unfinished"),
    ] {
        folder.write("own.toml", &text);
        for verb in [&["settings"][..], &["jobs"], &["serve"], &["webhooks", "list"]] {
            let ran = run(&folder, &[&["--config", "own.toml"], verb].concat(), &[]).await;
            assert!(ran.iter().all(|ran| ran.code == 78), "{text}: {ran:?}");
        }
    }
    folder.write("own.toml", [KEY.as_bytes(), b"\xff"].concat());
    let ran = run(&folder, &["--config", "own.toml", "settings"], &[]).await;
    assert!(ran.iter().all(|ran| ran.code == 78), "{ran:?}");
}

/// OB-01: variables with secrets in them, in their place or in a wrong one.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_variables_are_not_quoted() {
    let folder = folder();
    let spaced = format!("{KEY} {KEY}");
    let long = KEY.repeat(100);
    let json = format!(r#"{{"{SECRET}":"{SECRET}"}}"#);
    let longer = SECRET.repeat(400);
    let with_user = format!("https://user:{KEY}@example.org/");
    let with_query = format!("https://example.org/?token={QUERY}");
    for (name, value, code) in [
        ("GLEANER_API_KEY", spaced.as_str(), 78),
        ("GLEANER_API_KEY", &long, 78),
        ("GLEANER_API_KEYS", KEY, 78),
        ("GLEANER_SECRET", SECRET, 78),
        ("GLEANER_WEBHOOK_SECRET", &json, 78),
        ("GLEANER_WEBHOOK_SECRET", &longer, 78),
        ("GLEANER_WEBHOOK_SECRET_PREVIOUS", &json, 78),
        ("GLEANER_API_URL", &with_user, 78),
        ("GLEANER_PUBLIC_URL", &with_user, 78),
        ("GLEANER_PUBLIC_URL", &with_query, 78),
        ("GLEANER_LOG", SECRET, 64),
    ] {
        for verb in [&["poll", "j1"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            if name == "GLEANER_LOG" {
                let mut command = folder.command(verb);
                let ran = crate::bench::ended(command.env(name, value).spawn().unwrap()).await;
                assert_eq!(ran.code, code, "{ran:?}");
                crate::watched::assert_silent(&ran, &[], name);
                continue;
            }
            let ran = run_with(&folder, &[(name, value)], verb, &[]).await;
            assert!(ran.iter().all(|ran| ran.code == code), "{name}={value}: {ran:?}");
        }
    }
    // Values that are right are shown by nobody either.
    let all = [("GLEANER_WEBHOOK_SECRET", SECRET), ("GLEANER_WEBHOOK_SECRET_PREVIOUS", OLD_SECRET)];
    for args in [&["settings"][..], &["settings", "--markdown"], &["jobs"], &["webhooks", "list"]] {
        run_with(&folder, &all, args, &[]).await;
    }
}

/// OB-01: key files that hold no usable key, or that others may read.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_key_files_are_not_quoted() {
    let folder = folder();
    let args = ["--api-key-file", "key", "poll", "j1", "--max-wait", "1s"];
    let bytes = [KEY.as_bytes(), b"\xff"].concat();
    for (content, mode) in [
        (format!("{KEY} {KEY}").into_bytes(), 0o600),
        (format!("{KEY}\n{SECRET}").into_bytes(), 0o600),
        (KEY.repeat(300).into_bytes(), 0o600),
        (bytes, 0o600),
        (format!("{KEY}\n").into_bytes(), 0o644),
    ] {
        let path = folder.write("key", &content);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let ran = run(&folder, &args, &[]).await;
        assert!(ran.iter().all(|ran| ran.code == 78), "{ran:?}");
    }
}

/// OB-01: lists that cannot be used are told by their lines, without the queries of URLs.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_lists_are_told_without_queries() {
    let folder = folder();
    let lines = [
        format!("example.com/?token={QUERY}"),
        format!("ftp://user:{KEY}@example.com/"),
        format!("user:{KEY}@example.com/?token={QUERY}"),
        format!("https://example.com/\tref\t{BODY}"),
        format!("https://example.com/\t{}", BODY.repeat(20)),
        format!("https://example.com/\u{1}{BODY}"),
    ];
    for list in lines.iter().cloned().chain([lines.join("\n")]) {
        folder.write("urls.txt", &list);
        let ran = run(&folder, &["submit", "--file", "urls.txt"], &[]).await;
        assert!(ran.iter().all(|ran| ran.code == 65), "{list}: {ran:?}");
    }
    for line in &lines[..3] {
        for verb in ["submit", "extract"] {
            let ran = run(&folder, &[verb, line], &[]).await;
            assert!(ran.iter().all(|ran| ran.code == 64), "{line}: {ran:?}");
        }
    }
    let _ = std::fs::create_dir(folder.path().join("folder"));
    for args in [&["submit", "--file", "folder"][..], &["--config", "folder", "settings"]] {
        let ran = run(&folder, args, &[]).await;
        assert!(ran.iter().all(|ran| ran.code != 0), "{ran:?}");
    }
}

/// OB-01: the simulator's settings hold a key as well.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_settings_of_the_simulator_are_not_quoted() {
    let folder = folder();
    for (name, text) in [
        ("own.toml", format!("api_key = {KEY}\n")),
        ("own.toml", format!("speed = \"{KEY}\"\n")),
        ("own.toml", format!("api_key = [\"{KEY}\"]\n")),
        ("own.toml", format!("[webhooks]\nsignature = \"{KEY}\"\n")),
        ("own.json", format!(r#"{{"api_key":["{KEY}"]}}"#)),
        ("own.json", format!(r#"{{"speed":"{KEY}"}}"#)),
        ("own.json", format!(r#"{{"webhooks":{{"signature":"{KEY}"}}}}"#)),
        ("own.json", format!(r#"{{"api_key":"{KEY}"#)),
        ("own.json", format!(r#"{{"faults":"{KEY}, expected {SECRET}"}}"#)),
    ] {
        folder.write(name, &text);
        let ran = run(&folder, &["simulate", "--config", name], &[]).await;
        assert!(ran.iter().all(|ran| ran.code == 78), "{text}: {ran:?}");
    }
}
