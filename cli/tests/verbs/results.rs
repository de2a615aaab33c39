//! `gleaner results`: what is stored is found, printed whole, and never taken on trust.

use std::path::Path;

use serde_json::Value;

use crate::bench::{Bench, ended, list, quick};
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// A stored extract job and a stored batch of 120 pages.
async fn stored() -> (Bench, String, String) {
    let bench = Bench::new(quick()).await;
    bench.folder.write("urls.txt", list(120).0);
    let id = |ran: crate::bench::Ran| {
        ran.expect(0).of_type("submission")[0]["job_id"].as_str().unwrap().to_owned()
    };
    let page = id(bench.run(&["submit", "https://example.com/a", "--ref", "mine", "--json"]).await);
    let batch = id(bench.run(&["submit", "--file", "urls.txt", "--batch", "--json"]).await);
    bench.run(&["poll", "--base", "10ms", "--cap", "200ms", "--max-wait", "1m"]).await.expect(0);
    (bench, page, batch)
}

#[tokio::test]
async fn results_are_listed_and_shown() {
    let (bench, page, batch) = stored().await;
    let rows = bench.run(&["results", "list", "--json"]).await.expect(0).of_type("result");
    let ids: Vec<_> = rows.iter().map(|row| row["job_id"].as_str().unwrap()).collect();
    assert_eq!(ids, [page.as_str(), batch.as_str()]);
    let dt = rows[0]["dt"].as_str().unwrap();
    let one = bench.run(&["results", "list", "--kind", "batch", "--dt", dt, "--json"]).await;
    assert_eq!(one.expect(0).json().len(), 1);
    let none = bench.run(&["results", "list", "--dt", "2001-01-01", "--json"]).await;
    assert_eq!(none.expect(0).json().len(), 0);
    let bounded = bench.run(&["results", "list", "--limit", "1", "--json"]).await.expect(0);
    assert_eq!(bounded.json().len(), 1);
    assert!(bounded.err.contains("there are more"), "{}", bounded.err);

    let shown = bench.run(&["results", "show", &page]).await.expect(0).json();
    assert_eq!((shown.len(), &shown[0]["ref"]), (1, &"mine".into()));
    assert_eq!(shown[0]["job"]["job_id"], page.as_str());
    let items = bench.run(&["results", "show", &batch]).await.expect(0).json();
    let mut urls: Vec<_> = items.iter().map(|item| item["item"]["url"].clone()).collect();
    urls.sort_by_key(ToString::to_string);
    let wanted: Vec<Value> = list(120).1.into_iter().map(Value::from).collect();
    assert_eq!(urls, wanted);
}

#[tokio::test]
async fn paths_are_absolute_and_exist() {
    let (bench, page, batch) = stored().await;
    for (id, files) in [(&page, 1), (&batch, 4)] {
        let out = bench.run(&["results", "path", id]).await.expect(0).out;
        assert_eq!(out.lines().count(), files, "{out}");
        assert!(out.lines().all(|path| Path::new(path).is_absolute() && Path::new(path).is_file()));
    }
}

/// CL-03: `| head -1` is no error, and no panic.
#[tokio::test]
async fn a_reader_may_go_away() {
    let (bench, _, batch) = stored().await;
    let mut child = bench.folder.command(&["results", "show", &batch]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().expect("a first line");
    drop(lines);
    let ran = ended(child).await.expect(0);
    assert_eq!(ran.err, "");
}

/// What the ledger has forgotten is found by its name.
#[tokio::test]
async fn results_outlive_the_ledger() {
    let (bench, page, batch) = stored().await;
    let data = bench.folder.path().join("gleaner-data");
    for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let _ = std::fs::remove_file(data.join(name));
    }
    // Any submission makes a new ledger.
    bench.run(&["submit", "https://example.com/new"]).await.expect(0);
    let shown = bench.run(&["results", "show", &page]).await.expect(0).json();
    assert_eq!(shown[0]["job_id"], page.as_str());
    assert_eq!(bench.run(&["results", "show", &batch]).await.expect(0).json().len(), 120);
}

/// Damaged and missing files are reported; what was printed before them is whole.
#[tokio::test]
async fn damage_is_reported() {
    let (bench, page, batch) = stored().await;
    let files = |out: String| out.lines().map(str::to_owned).collect::<Vec<_>>();
    let parts = files(bench.run(&["results", "path", &batch]).await.expect(0).out);
    std::fs::copy(&parts[1], &parts[2]).unwrap();
    let ran = bench.run(&["results", "show", &batch]).await.expect(65);
    assert_eq!(ran.json().len(), 50, "the first part is whole");
    assert!(ran.err.contains("is not the one that its manifest names"), "{}", ran.err);
    std::fs::remove_file(&parts[1]).unwrap();
    bench.run(&["results", "show", &batch]).await.expect(65);
    let file = files(bench.run(&["results", "path", &page]).await.expect(0).out).remove(0);
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    std::fs::write(&file, bytes).unwrap();
    bench.run(&["results", "show", &page]).await.expect(65);
}

/// What has no result says why.
#[tokio::test]
async fn what_is_not_stored_says_why() {
    let config = simulator::Config { speed: 0.01, ..simulator::Config::default() };
    let bench = Bench::new(config).await;
    let ran = bench.run(&["submit", "https://example.com/a", "--json"]).await.expect(0);
    let id = ran.of_type("submission")[0]["job_id"].as_str().unwrap().to_owned();
    let ran = bench.run(&["results", "show", &id]).await.expect(4);
    assert!(ran.err.contains("has no result yet"), "{}", ran.err);
    bench.run(&["results", "path", "nobody"]).await.expect(4);
}
