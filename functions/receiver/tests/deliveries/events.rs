//! Every file of events/receiver, fed to the function as Lambda does, gets the answer that
//! events/README.md promises.

use std::collections::BTreeMap;

use super::rig::{SECRET, event, events, request, rig, secret};
use domain::job::{JobId, JobKey, Kind};
use receiver::Answer;
use serde_json::Value;
use telemetry::Counter;

/// The answers by file, as the table of the page says.
fn promised() -> BTreeMap<String, String> {
    let page = std::fs::read_to_string(events().join("README.md")).unwrap();
    let rows = page.lines().filter(|line| line.contains("](receiver/"));
    rows.map(|row| {
        let file = row.split_once("](receiver/").unwrap().1.split_once(')').unwrap().0;
        let answer = row.trim_end_matches(['|', ' ']).rsplit_once('|').unwrap().1.trim();
        (file.to_owned(), answer.to_owned())
    })
    .collect()
}

/// FD-01, FD-03, FD-04, FD-05, FD-06: every front door, a balancer with multi-value headers alone
/// among them.
#[tokio::test]
async fn every_file_gets_the_answer_that_is_promised() {
    let promised = promised();
    let files = std::fs::read_dir(events().join("receiver")).unwrap();
    let mut names: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, promised.keys().cloned().collect::<Vec<_>>(), "files and table");
    for name in names {
        let wanted = promised.get(&name).unwrap();
        let request = request(&event(&name));
        if wanted.starts_with("an error") {
            assert!(request.is_err(), "{name}");
            continue;
        }
        let rig = rig(vec![secret(SECRET)]);
        let Answer(response) = rig.receiver.answer(&request.unwrap()).await;
        assert_eq!(response.status().as_str(), wanted, "{name}");
        let accepted = rig.metrics.read(Counter::DeliveriesAccepted);
        assert_eq!(rig.ledger.writes(), accepted, "{name}");
        assert_eq!(rig.queue.sent(), accepted, "{name}");
    }
}

/// PL-07: each event type is a job of its own kind; one that nobody knows is counted, and no job.
#[tokio::test]
async fn each_kind_of_job_is_announced_as_such() {
    for (name, kind) in [
        ("http-api.json", Kind::Extract),
        ("http-api-named-stage.json", Kind::Batch),
        ("http-api-crawl.json", Kind::Crawl),
    ] {
        let event = event(name);
        let body: Value = serde_json::from_str(event["body"].as_str().unwrap()).unwrap();
        let id = body.pointer("/data/job_id").unwrap().as_str().unwrap();
        let rig = rig(vec![secret(SECRET)]);
        rig.receiver.answer(&request(&event).unwrap()).await;
        let key = JobKey::new(kind, JobId::parse(id).unwrap());
        assert!(rig.ledger.entry(&key).is_some(), "{name}");
    }
    let rig = rig(vec![secret(SECRET)]);
    rig.receiver.answer(&request(&event("unknown-event.json")).unwrap()).await;
    assert_eq!((rig.metrics.read(Counter::DeliveriesIgnored), rig.ledger.writes()), (1, 0));
}
