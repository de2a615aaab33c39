//! Jobs from submission to their stored results, on a deployed stack.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::announce::{AnnouncePorts, announce};
use domain::entry::Cause;
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use ledger_dynamodb::DynamoLedger;
use queue_sqs::SqsQueue;
use simulator::{Config, Faults};
use system::{SystemClock, SystemRandom};

use crate::bench::{Ran, list, quick};
use crate::world::{World, ids};

/// Waiting as short as the simulator is quick.
const POLL: [&str; 5] = ["poll", "--base", "10ms", "--cap", "200ms"];

/// What the stack's receiver does with a verified delivery.
async fn deliver(world: &World, id: &str) {
    let config = world.config();
    let ledger = DynamoLedger::new(&config, &world.table, Arc::new(SystemClock));
    let queue = SqsQueue::new(&config, world.queue.queue_url()).unwrap();
    let ports = AnnouncePorts {
        entries: &ledger,
        queue: &queue,
        clock: &SystemClock,
        random: &SystemRandom,
        limits: &Limits::default(),
    };
    let key = JobKey::new(Kind::Extract, JobId::parse(id).unwrap());
    announce(ports, &key, Cause::Delivery, Some("delivery-1")).await.unwrap();
}

/// What was submitted here is announced by the receiver, worked by the command line, and shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_goes_from_submission_to_its_result() {
    let world = World::new(quick()).await;
    let text = "https://example.com/a\tmy-1\nhttps://example.com/b\tmy-2\n";
    world.folder.write("urls.txt", text);
    let dry = world.run(&["submit", "--file", "urls.txt", "--dry-run", "--json"]).await.expect(0);
    assert_eq!(dry.of_type("submission").len(), 2);
    let ran = world.run(&["submit", "--file", "urls.txt", "--json"]).await.expect(0);
    let sorted = |ran: &Ran| ids(ran, "submission").into_iter().collect::<BTreeSet<_>>();
    // The same list again is nothing new.
    let again = world.run(&["submit", "--file", "urls.txt", "--json"]).await.expect(0);
    assert_eq!(sorted(&again), sorted(&ran));
    assert_eq!(world.jobs().len(), 2);
    let rows = world.run(&["jobs", "--state", "expected", "--json"]).await.expect(0);
    assert_eq!(rows.of_type("job").len(), 2);
    let found = world.run(&["jobs", "show", "my-1", "--json"]).await.expect(0);
    let details = &found.of_type("job_details")[0];
    assert_eq!(details["url"], "https://example.com/a");
    let one = details["entry"]["key"]["job_id"].as_str().unwrap().to_owned();

    deliver(&world, &one).await;
    assert_eq!(world.queue.bodies().len(), 1, "the task waits for whoever takes it");
    let polled = world.run(&[&POLL[..], &["--json"]].concat()).await.expect(0);
    let summary = &polled.of_type("summary")[0];
    assert_eq!((&summary["stored"], &summary["open"]), (&2.into(), &0.into()), "{polled:?}");
    assert_eq!(world.queue.bodies(), Vec::<String>::new(), "worked and acknowledged");
    let counts = world.run(&["jobs", "counts", "--json"]).await.expect(0);
    let counts = &counts.of_type("counts")[0];
    assert_eq!(counts["jobs"], serde_json::json!({ "stored": 2 }));
    assert_eq!(counts["submissions"]["accepted"], 2);

    let listed = world.run(&["results", "list", "--json"]).await.expect(0).of_type("result");
    let mut references: Vec<_> = listed.iter().map(|row| row["ref"].as_str().unwrap()).collect();
    references.sort_unstable();
    assert_eq!(references, ["my-1", "my-2"]);
    let shown = world.run(&["results", "show", &one]).await.expect(0).json();
    assert_eq!((&shown[0]["ref"], &shown[0]["job"]["job_id"]), (&"my-1".into(), &one.into()));
    let place = world.run(&["results", "path", "my-1"]).await.expect(0).out;
    let key = place.trim().strip_prefix("s3://gleaner-results/").unwrap().to_owned();
    assert!(key.starts_with("team/prod/kind=extract/dt="), "{place}");
    assert_eq!(world.bucket.creations(&key), 1);
    assert_eq!(world.bucket.keys().len(), 2);
    // A result outlives its row.
    let unknown = world.run(&["results", "show", "nobody"]).await.expect(4);
    assert!(unknown.err.contains("there is no result of a job `nobody`"), "{}", unknown.err);
}

/// One id is waited for without the job lists; batches and crawls have parts.
#[tokio::test(flavor = "multi_thread")]
async fn batches_and_crawls_are_waited_for_and_shown() {
    let world = World::new(quick()).await;
    world.folder.write("urls.txt", list(60).0);
    let batch = world.run(&["submit", "--batch", "--file", "urls.txt", "--json"]).await.expect(0);
    let crawl = world
        .run(&["submit", "--crawl", "https://example.com/", "--limit", "3", "--json"])
        .await
        .expect(0);
    let [batch, crawl] = [ids(&batch, "submission"), ids(&crawl, "submission")];
    let waited = [&POLL[..], &[&batch[0], &crawl[0]], &["--json"]].concat();
    let waited = world.run(&waited).await.expect(0);
    assert!(waited.of_type("poll").iter().all(|row| row["outcome"] == "stored"), "{waited:?}");
    let items = world.run(&["results", "show", &batch[0]]).await.expect(0).json();
    assert_eq!(items.len(), 60);
    let places = world.run(&["results", "path", &batch[0], "--json"]).await.expect(0);
    let places = places.of_type("path");
    assert_eq!(places.len(), 3, "the manifest and two parts");
    for place in &places {
        let (key, path) = (place["key"].as_str().unwrap(), place["path"].as_str().unwrap());
        assert_eq!(path, format!("s3://gleaner-results/team/prod/{key}"));
    }
    world.run(&["results", "show", &crawl[0]]).await.expect(0);
}

/// DQ-10: one audited command works exactly one dead job again, through the queue.
#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_sends_the_task() {
    let mut faults = Faults::none();
    faults.jobs.fail_final = 1.0;
    let world = World::new(Config { faults, ..quick() }).await;
    let ran = world.run(&["submit", "https://example.com/a", "--json"]).await.expect(0);
    let id = &ids(&ran, "submission")[0];
    world.run(&POLL).await.expect(2);
    let ran = world.run(&["jobs", "redrive", id, "--json"]).await.expect(0);
    assert_eq!(ran.of_type("redriven")[0]["generation"], 1);
    assert_eq!(world.queue.bodies().len(), 1);
    world.run(&["jobs", "redrive", id]).await.expect(64);
    let listed = world.run(&["jobs", "--state", "received", "--json"]).await.expect(0);
    assert_eq!(ids(&listed, "job"), std::slice::from_ref(id));
}

/// Extracts at once, which is recorded nowhere, with the stack's key.
#[tokio::test(flavor = "multi_thread")]
async fn one_page_at_once_needs_the_key_alone() {
    let world = World::new(quick()).await;
    let ran = world.run(&["extract", "https://example.com/a"]).await.expect(0);
    assert!(ran.out.contains("<html"), "{ran:?}");
    let counts = world.run(&["jobs", "counts", "--json"]).await.expect(0);
    assert_eq!(counts.of_type("counts")[0]["jobs"], serde_json::json!({}));
}
