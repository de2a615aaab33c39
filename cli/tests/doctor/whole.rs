//! A healthy machine, and one of which nothing is known yet.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use crate::bench::{Bench, Folder, quick};
use crate::doctor;

/// A running server, and the URL of its receiver.
async fn serve(folder: &Folder) -> (Child, String) {
    let args = ["serve", "--json", "--listen", "127.0.0.1:0"];
    let mut command = folder.command(&args);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().expect("it starts");
    let started: Value = serde_json::from_str(&line).unwrap();
    (child, started["listening"].as_str().unwrap().to_owned())
}

/// With everything in its place nothing is complained of, and nothing is left behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_machine_is_all_green() {
    let bench = Bench::new(quick()).await;
    let create = ["webhooks", "create", "--json", "--url", "http://127.0.0.1:9/webhook"];
    let created = bench.run(&create).await.expect(0).of_type("webhook");
    let (_server, url) = serve(&bench.folder).await;
    for webhook in &created {
        let id = webhook["id"].as_str().unwrap();
        bench.run(&["webhooks", "update", id, "--url", &url]).await.expect(0);
    }
    let jobs = bench.books().len();
    let diagnosis = doctor(&bench.folder, &[("GLEANER_PUBLIC_URL", &url)]).await;
    assert_eq!(diagnosis.complaints(), Vec::<&Value>::new());
    diagnosis
        .expect("folder", "ok", "can be written")
        .expect("disk", "ok", "MiB are free")
        .expect("ledger", "ok", "can be read and written")
        .expect("queue", "ok", "0 tasks wait")
        .expect("results", "ok", "can be read and written")
        .expect("due", "ok", "jobs are due: none")
        .expect("due", "ok", "submissions are due: none")
        .expect("pauses", "ok", "no calls are paused")
        .expect("jobs", "ok", "0 are open")
        .expect("api", "ok", "answered within")
        .expect("clock", "ok", "agree")
        .expect("key", "ok", "it is accepted")
        .expect("secrets", "ok", "is that of webhook")
        .expect("webhooks", "ok", "extract_completed is delivered by webhook")
        .expect("webhooks", "ok", "3 of at most 10")
        .expect("receiver", "ok", "/healthz answers 200")
        .expect("receiver", "ok", "an unsigned delivery");
    assert_eq!((diagnosis.of("secrets").len(), diagnosis.of("receiver").len()), (3, 2));
    // No task, no job, no file.
    assert_eq!(bench.books().len(), jobs);
    let counts = bench.run(&["jobs", "counts", "--json"]).await.expect(0).of_type("counts");
    assert_eq!(counts[0]["jobs"], serde_json::json!({}));
    let files: BTreeSet<_> = std::fs::read_dir(bench.folder.path().join("gleaner-data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(files.iter().all(|name| !name.contains("doctor")), "{files:?}");
}

/// Before the first verb there is nothing wrong, only nothing there.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_folder_is_no_failure() {
    let bench = Bench::new(quick()).await;
    let diagnosis = doctor(&bench.folder, &[]).await;
    diagnosis
        .expect("folder", "warning", "there is no data folder")
        .expect("ledger", "skipped", "there is no ledger")
        .expect("secrets", "skipped", "nothing asks for one")
        .expect("webhooks", "skipped", "polling alone")
        .expect("receiver", "skipped", "no `public_url` is set");
    assert_eq!(diagnosis.complaints().len(), 1);
    assert!(!bench.folder.path().join("gleaner-data").exists(), "nothing is made");
}

/// A person reads lines, and each finding keeps to its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_reads_one_line_a_finding_and_one_of_advice() {
    let bench = Bench::new(quick()).await;
    let ran = bench.run(&["doctor"]).await.expect(0);
    let lines: Vec<_> = ran.out.lines().collect();
    assert!(lines[0].starts_with("ok       settings     set are"), "{}", ran.out);
    let at = lines.iter().position(|line| line.starts_with("warning  folder")).unwrap();
    assert!(lines[at + 1].starts_with("                      do: `submit`"), "{}", ran.out);
    assert!(lines.last().unwrap().starts_with("failed 0, warnings 1, ok "), "{}", ran.out);
}
