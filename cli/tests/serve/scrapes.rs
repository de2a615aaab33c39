//! Metrics for Prometheus, on an address of their own.

use std::collections::BTreeMap;

use serde_json::Value;
use tempfile::TempDir;
use testkit::faulty::Fault;

use super::http::{NAME, Request, V1, status};
use super::process::{Process, command, run};
use super::site::Site;

fn get(path: &'static str) -> Request {
    Request::unsigned(b"").by("GET").at(path)
}

/// The samples of a scrape by their series.
async fn scrape(site: &Site) -> BTreeMap<String, f64> {
    let answer = get("/metrics").answer(site.metrics_addr).await;
    assert_eq!(status(&answer), 200);
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        (series.to_owned(), value.parse().unwrap())
    };
    samples.map(sample).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scrape_tells_what_was_counted_and_how_far_behind_the_ledger_is() {
    let site = Site::new().await;
    assert_eq!(Request::v1().send(site.addr).await, 202);
    assert_eq!(Request::v1().send(site.addr).await, 202);
    assert_eq!(Request::unsigned(V1).header(NAME, "00".repeat(32)).send(site.addr).await, 401);
    assert_eq!(Request::signed(b"{}").send(site.addr).await, 400);
    let samples = scrape(&site).await;
    for (series, value) in [
        ("gleaner_deliveries_accepted_total", 1.0),
        ("gleaner_deliveries_repeated_total", 1.0),
        ("gleaner_deliveries_rejected_total", 1.0),
        ("gleaner_deliveries_unusable_total", 1.0),
        ("gleaner_delivery_duration_seconds_count", 4.0),
        ("gleaner_jobs_stored_total", 0.0),
        ("gleaner_starts_total", 1.0),
        ("gleaner_ticks_total", 1.0),
        ("gleaner_entries{state=\"received\"}", 1.0),
        ("gleaner_entries{state=\"stored\"}", 0.0),
        ("gleaner_entries_dead{reason=\"gone\"}", 0.0),
        ("gleaner_overdue_age_seconds", 0.0),
        ("gleaner_paused", 0.0),
        ("gleaner_queue_depth", 1.0),
    ] {
        assert_eq!(samples.get(series), Some(&value), "{series}");
    }
    assert!(samples.contains_key("gleaner_queue_age_seconds"));
    assert!(samples["process_start_time_seconds"] > 1.0e9);
    site.stop().await;
}

/// Strangers reach the receiver, and no metrics there; nor does anything else answer beside them.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_nowhere_else() {
    let site = Site::new().await;
    assert_eq!(get("/metrics").send(site.addr).await, 404);
    for path in ["/", "/metrics/", "/webhook", "/healthz"] {
        assert_eq!(get(path).send(site.metrics_addr).await, 404, "{path}");
    }
    assert_eq!(Request::v1().send(site.metrics_addr).await, 404);
    assert_eq!(Request::v1().at("/metrics").send(site.metrics_addr).await, 405);
    assert_eq!(site.rows().await, 0);
    site.stop().await;
}

/// Counters are told while the ledger is in trouble; what could not be read of it is left out, and
/// is neither zero nor as it was.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_measured_is_left_out() {
    const AGE: &str = "gleaner_overdue_age_seconds";
    let site = Site::new().await;
    assert_eq!(Request::v1().send(site.addr).await, 202);
    assert!(scrape(&site).await.contains_key(AGE));
    site.faults.fail_next(Fault::FailBefore);
    let samples = scrape(&site).await;
    assert_eq!(samples.get("gleaner_deliveries_accepted_total"), Some(&1.0));
    assert!(!samples.contains_key(AGE), "{samples:?}");
    assert!(scrape(&site).await.contains_key(AGE));
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_the_metrics_is_told() {
    let dir = TempDir::new().unwrap();
    let args = ["serve", "--json", "--without-webhooks", "--set", "metrics_listen=127.0.0.1:0"];
    let server = Process::start(command(dir.path(), &args)).await;
    assert_eq!(server.started["listening"], Value::Null);
    let url = server.started["metrics"].as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
    let answer = get("/metrics").answer(address.parse().unwrap()).await;
    assert!(answer.contains("\ngleaner_ticks_total "), "{answer}");
    let taken = format!("metrics_listen={address}");
    let other = TempDir::new().unwrap();
    let args = ["serve", "--without-webhooks", "--set", &taken];
    let (code, _, talk) = run(command(other.path(), &args)).await;
    assert_eq!(code, 71, "{talk}");
    assert!(talk.contains("set metrics_listen to another address"), "{talk}");
    let (code, talk) = server.terminate().await;
    assert_eq!(code, 0, "{talk}");
}
