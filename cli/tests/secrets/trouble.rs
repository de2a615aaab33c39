//! A server in trouble: with its storage, with its secrets, and at its end.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::bench::{Folder, ended};
use crate::deliveries::{body, serve};
use crate::http::{NAME, Request, signature};
use crate::markers::{BODY, KEY, OLD_SECRET, PAGE, SECRET, assert_none};
use crate::scripted::{Reply, Scripted};
use crate::serving::Serving;
use crate::watched::{FORMS, assert_silent, command, run};

async fn platform() -> Scripted {
    Scripted::start(|_, line| {
        let path = line.split(' ').nth(1).unwrap();
        let name = path.rsplit('/').next().unwrap();
        let body = format!(
            r#"{{"job_id":"{name}","status":"completed","created_at":"2026-11-30T00:00:00Z",
            "data":{{"html":"{PAGE}","markdown":null}},"error":null}}"#
        );
        Reply::Answer(200, "", body)
    })
    .await
}

fn assert_talk(talk: &str) {
    assert_none(talk, &[], "the server");
    assert!(!talk.contains("panicked"), "{talk}");
}

/// OB-01: a results folder that cannot be written, a ledger that another program keeps locked, and
/// one that is damaged meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_trouble_with_storage_is_told_without_content() {
    let platform = platform().await;
    for form in FORMS {
        let folder = Folder::new(&platform.url);
        let mut server = Serving::start(serve(&folder, form)).await;
        let data = folder.path().join("gleaner-data");
        std::fs::remove_dir_all(data.join("results")).unwrap();
        std::fs::write(data.join("results"), BODY).unwrap();
        assert_eq!(Request::signed_with(&body("one")).send(server.addr).await, 202);
        server.wait_for("task failed").await;
        let other = rusqlite::Connection::open(data.join("ledger.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(Request::signed_with(&body("two")).send(server.addr).await, 503);
        server.wait_for("delivery could not be received").await;
        drop(other);
        for file in ["ledger.db", "ledger.db-wal"] {
            std::fs::write(data.join(file), BODY.repeat(4_096)).unwrap();
        }
        let (_, talk) = server.stop("TERM").await;
        assert_talk(&talk);
        // What is left is no ledger, and every verb says so.
        for args in [&["jobs"][..], &["poll", "one"], &["results", "list"], &["serve"]] {
            let ran = run(&folder, args, &[]).await;
            assert!(ran.iter().all(|ran| ran.code != 0 && !ran.err.is_empty()), "{ran:?}");
        }
    }
}

fn keep(path: &Path, text: &[u8]) {
    let partial = path.with_extension("new");
    std::fs::write(&partial, text).unwrap();
    std::fs::set_permissions(&partial, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::rename(&partial, path).unwrap();
}

/// Secrets files that cannot be used.
fn damaged() -> Vec<Vec<u8>> {
    let (own, old) = (SECRET, OLD_SECRET);
    let one = |secret: &str, stage: &str| {
        format!(r#"{{"version":1,"secrets":[{{"secret":"{secret}","stage":"{stage}"}}]}}"#)
    };
    let texts = [
        format!(r#"{{"version":1,"secrets":[{{"secret":"{own}","stage":"{old}"}}]}}"#),
        format!(r#"{{"version":1,"secrets":[{{"secret":["{own}"],"stage":"current"}}]}}"#),
        format!(r#"{{"version":1,"secrets":"{own}"}}"#),
        format!(r#"{{"version":1,"{own}":[]}}"#),
        format!(r#"{{"version":"{own}","secrets":[]}}"#),
        format!(r#"{{"version":1,"secrets":[{{"secret":"{own}""#),
        format!(r#"{{"secret":{{"x":"{own}"}}}}"#),
        format!(r#"{{"{own}":"{old}"}}"#),
        format!("{own}\n{old}\n"),
        format!("{own}\0"),
        one("", "current"),
        one(own, "previous"),
        one(&own.repeat(400), "current"),
        own.repeat(10_000),
    ];
    let mut files: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
    files.push([own.as_bytes(), b"\xff\xfe"].concat());
    files
}

/// OB-01: secrets files that cannot be used are told by their place, and never quoted.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_damaged_secrets_files_are_not_quoted() {
    let folder = Folder::new("http://127.0.0.1:9");
    let path = folder.path().join("own.json");
    let named = ["--set", "secrets_file=own.json"];
    for (position, file) in damaged().iter().enumerate() {
        keep(&path, file);
        let serve = [&["serve", "--listen", "127.0.0.1:0"], &named[..]].concat();
        let ran = run(&folder, &serve, &[]).await;
        assert!(ran.iter().all(|ran| ran.code == 78), "{position}: {ran:?}");
        run(&folder, &[&["webhooks", "list"], &named[..]].concat(), &[]).await;
    }
    keep(&path, SECRET.as_bytes());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let ran = run(&folder, &[&["serve"], &named[..]].concat(), &[]).await;
    assert!(ran.iter().all(|ran| ran.err.contains("chmod 600")), "{ran:?}");
}

/// OB-01: nor are they when they break while the server runs.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_secrets_that_break_meanwhile_are_not_quoted() {
    for form in FORMS {
        let folder = Folder::new("http://127.0.0.1:9");
        let path = folder.path().join("own.json");
        keep(&path, SECRET.as_bytes());
        let mut command = serve(&folder, form);
        command.env_remove("GLEANER_WEBHOOK_SECRET").env("GLEANER_SECRETS_FILE", "own.json");
        let mut server = Serving::start(command).await;
        keep(&path, format!(r#"{{"version":1,"secrets":["{OLD_SECRET}"]}}"#).as_bytes());
        let body = body("one");
        let forged = Request::unsigned(&body).header(NAME, signature(&body, OLD_SECRET));
        let refused = async {
            // At most one look per cool-down; without one, nobody knows better than 401.
            while forged.send(server.addr).await != 503 {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(std::time::Duration::from_secs(30), refused).await;
        waited.expect("the damage is noticed");
        server.wait_for("answered with 503").await;
        let (_, talk) = server.stop("INT").await;
        assert_talk(&talk);
    }
}

/// OB-01: a server that is killed in the middle of a delivery, and one that finds the port taken.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_the_end_is_silent() {
    let platform = platform().await;
    for (form, signal) in FORMS.into_iter().flat_map(|form| ["KILL", "ABRT"].map(|s| (form, s))) {
        let folder = Folder::new(&platform.url);
        let server = Serving::start(serve(&folder, form)).await;
        assert_eq!(Request::signed_with(&body("one")).send(server.addr).await, 202);
        let mut half = TcpStream::connect(server.addr).await.unwrap();
        let head = format!("POST /webhook HTTP/1.1\r\nhost: a\r\n{NAME}: {SECRET}\r\n");
        half.write_all(head.as_bytes()).await.unwrap();
        let address = server.addr.to_string();
        let mut second = command(&folder, form, &["serve", "--listen", &address]);
        second.env("GLEANER_WEBHOOK_SECRET", SECRET).env("GLEANER_DATA_DIR", "other");
        let ran = ended(second.spawn().unwrap()).await;
        assert_eq!(ran.code, 71, "{ran:?}");
        assert_silent(&ran, &[], "a second server");
        let (code, talk) = server.stop(signal).await;
        assert_eq!(code, None, "{talk}");
        assert_talk(&talk);
        assert_eq!(crate::disk::holders(folder.path(), &[KEY, SECRET]), Vec::<String>::new());
    }
}
