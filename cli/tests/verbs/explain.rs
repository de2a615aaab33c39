//! `gleaner explain`: one job's story out of everything that is known of it.

use serde_json::Value;
use simulator::{Config, Faults};

use crate::bench::{Bench, Folder, Ran, quick};

fn story(ran: &Ran) -> Value {
    ran.of_type("explanation")[0].clone()
}

async fn submitted(bench: &Bench) -> String {
    let ran = bench.run(&["submit", "https://example.com/a", "--ref", "mine", "--json"]).await;
    ran.expect(0).of_type("submission")[0]["job_id"].as_str().unwrap().to_owned()
}

fn sources(story: &Value) -> Vec<&str> {
    let lines = story["timeline"].as_array().unwrap();
    lines.iter().map(|line| line["source"].as_str().unwrap()).collect()
}

fn remarks(story: &Value) -> String {
    story["remarks"].to_string()
}

#[tokio::test]
async fn a_job_is_explained_from_submission_to_result() {
    let bench = Bench::new(quick()).await;
    let id = submitted(&bench).await;
    let told = story(&bench.run(&["explain", &id, "--offline", "--json"]).await.expect(0));
    assert_eq!(told["state"], "expected");
    assert!(told["next_at"].is_string(), "{told}");
    assert_eq!(sources(&told), ["ledger"]);

    bench.run(&["poll", "--base", "10ms", "--cap", "100ms"]).await.expect(0);
    let told = story(&bench.run(&["explain", "mine", "--json"]).await.expect(0));
    assert_eq!((&told["job_id"], &told["state"]), (&Value::from(id.as_str()), &"stored".into()));
    assert!(told["present"].as_str().unwrap().starts_with("Stored as kind=extract/"), "{told}");
    assert!(sources(&told).contains(&"platform"), "{told}");
    assert_eq!(told["remarks"], Value::Array(Vec::new()));
    let ran = bench.run(&["explain", &id]).await.expect(0);
    assert!(ran.out.starts_with(&format!("extract {id}\n  Stored as ")), "{}", ran.out);
    assert!(ran.out.contains("received -> stored: a worker looked at it"), "{}", ran.out);
}

#[tokio::test]
async fn a_result_that_is_gone_or_changed_is_told() {
    let bench = Bench::new(quick()).await;
    let id = submitted(&bench).await;
    bench.run(&["poll", "--base", "10ms", "--cap", "100ms"]).await.expect(0);
    let path = bench.run(&["results", "path", &id]).await.expect(0).out;
    let path = path.trim_end();
    let kept = std::fs::read(path).unwrap();
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, &kept[1..]).unwrap();
    let told = story(&bench.run(&["explain", &id, "--json"]).await.expect(0));
    assert!(remarks(&told).contains("size or checksum differs"), "{told}");
    std::fs::remove_file(path).unwrap();
    let told = story(&bench.run(&["explain", &id, "--json"]).await.expect(0));
    assert!(remarks(&told).contains("not where the row says"), "{told}");
}

#[tokio::test]
async fn a_failure_is_told_in_the_platforms_words() {
    let mut faults = Faults::none();
    faults.jobs.fail_final = 1.0;
    let bench = Bench::new(Config { faults, ..quick() }).await;
    let id = submitted(&bench).await;
    bench.run(&["poll", "--base", "10ms", "--cap", "100ms"]).await.expect(2);
    let told = story(&bench.run(&["explain", &id, "--json"]).await.expect(0));
    let present = told["present"].as_str().unwrap();
    assert!(present.starts_with("Dead (failed): ") && present.contains("The platform said"));
}

/// A job of the account that was not submitted from here.
#[tokio::test]
async fn a_stranger_of_the_account_is_told_from_an_unknown_id() {
    let bench = Bench::new(quick()).await;
    let id = submitted(&bench).await;
    // Another ledger of the same account.
    let other = Folder::new(&bench.platform.base_url());
    other.run(&["submit", "https://example.com/b"]).await.expect(0);
    let told = story(&other.run(&["explain", &id, "--json"]).await.expect(0));
    assert_eq!(told["state"], Value::Null);
    assert!(told["present"].as_str().unwrap().contains("the platform says that it is"), "{told}");
    let told = story(&other.run(&["explain", "nobody", "--json"]).await.expect(0));
    let present = told["present"].as_str().unwrap();
    assert_eq!(present, "Neither the ledger nor the platform knows this job.");
    let ran = other.run(&["explain", "not an id"]).await.expect(4);
    assert!(ran.err.contains("the ledger knows no job"), "{}", ran.err);
}

/// What cannot be asked is told, and the rest is told all the same.
#[tokio::test]
async fn a_platform_that_is_away_ends_nothing() {
    let bench = Bench::new(quick()).await;
    let id = submitted(&bench).await;
    let away = ["explain", &id, "--json", "--set", "api_url=http://127.0.0.1:9"];
    let told = story(&bench.run(&away).await.expect(0));
    assert_eq!(told["state"], "expected");
    assert!(remarks(&told).contains("The platform could not be asked"), "{told}");
    assert!(remarks(&told).contains("The webhooks could not be listed"), "{told}");
}
