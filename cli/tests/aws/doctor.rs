//! `gleaner doctor` on a stack: each check green and broken.

use domain::signature::secret::Stage;
use queue_sqs::testing::SqsTrouble;
use results::testing::S3Trouble;
use simulator::Config;
use tokio::process::Command;

use crate::bench::quick;
use crate::clinic::{Diagnosis, diagnose};
use crate::cloudformation::{Known, Trouble};
use crate::markers::{KEY, SECRET, assert_none};
use crate::scripted::{Reply, Scripted};
use crate::world::{BATCH, EXTRACT, KEY_SECRET, STACK, World};

const DOCTOR: [&str; 2] = ["doctor", "--json"];

/// A receiver that refuses what nobody signed.
async fn receiver() -> Scripted {
    Scripted::start(|_, line| {
        let status = if line.starts_with("get /healthz ") { 200 } else { 401 };
        Reply::Answer(status, "", String::new())
    })
    .await
}

/// A stack with three webhooks and a receiver.
async fn healthy() -> (World, Scripted) {
    let (world, receiver) = (World::new(quick()).await, receiver().await);
    let mut outputs = world.outputs();
    outputs.insert("WebhookUrl", format!("{}/webhook", receiver.url));
    world.stacks.deploy(STACK, Known { status: "CREATE_COMPLETE", outputs });
    world.run(&["webhooks", "create"]).await.expect(0);
    (world, receiver)
}

async fn doctor(world: &World) -> Diagnosis {
    diagnose(world.command(&DOCTOR)).await
}

/// A run with one more variable.
async fn doctor_with(world: &World, name: &str, value: &str) -> Diagnosis {
    let mut command: Command = world.command(&DOCTOR);
    command.env(name, value);
    diagnose(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_stack_is_all_green() {
    let (world, receiver) = healthy().await;
    // The scheduler has not run yet: what it does, a person does here.
    let diagnosis = doctor(&world).await;
    diagnosis.expect("upkeep", "warning", "job lists were compared: never");
    diagnosis.expect("upkeep", "warning", "delivery logs were read: never");
    assert_eq!(diagnosis.complaints().len(), 2);
    for verb in ["reconcile", "replay"] {
        world.run(&[verb]).await.expect(0);
    }
    let before = receiver.calls();
    let diagnosis = doctor(&world).await;
    assert_eq!(diagnosis.complaints(), Vec::<&serde_json::Value>::new());
    diagnosis
        .expect("stack", "ok", "the outputs of the stack `gleaner` give")
        .expect("ledger", "ok", "can be read and written")
        .expect("queue", "ok", "0 tasks wait")
        .expect("results", "ok", "s3://")
        .expect("due", "ok", "jobs are due: none")
        .expect("upkeep", "ok", "delivery logs were read: ")
        .expect("jobs", "ok", "0 are open")
        .expect("dead-letters", "ok", "no task")
        .expect("key", "ok", "it is accepted")
        .expect("secrets", "ok", " old")
        .expect("webhooks", "ok", "crawl_completed is delivered")
        // An output of the stack is ours: nobody need ask for the probe.
        .expect("receiver", "ok", "is answered 401");
    // The HTTP API of a stack leads deliveries to the receiver and nothing else.
    assert_eq!((receiver.calls() - before, diagnosis.of("receiver").len()), (1, 1));
    // Nothing is sent, stored or put.
    assert!(world.bucket.keys().is_empty());
    let counts = world.run(&["jobs", "counts", "--json"]).await.expect(0).of_type("counts");
    assert_eq!(counts[0]["jobs"], serde_json::json!({}));
}

/// What AWS refuses fails the check that needs it, with the right that is missing.
#[tokio::test(flavor = "multi_thread")]
async fn what_aws_refuses_fails_its_own_check() {
    let (world, _receiver) = healthy().await;
    let denied = SqsTrouble::Refuse { status: 403, code: "AccessDeniedException" };
    world.queue.plan([denied]);
    let diagnosis = doctor(&world).await;
    diagnosis.expect("queue", "failed", "").expect("ledger", "ok", "").expect("key", "ok", "");
    world.bucket.plan([S3Trouble::DENIED]);
    doctor(&world).await.expect("results", "failed", "").expect("queue", "ok", "");
    let body = r#"{"__type":"x#AccessDeniedException","message":"not authorized"}"#;
    let table = Scripted::start(move |_, _| Reply::Answer(400, "", body.to_owned())).await;
    let diagnosis = doctor_with(&world, "AWS_ENDPOINT_URL_DYNAMODB", &table.url).await;
    for check in ["ledger", "due", "pauses", "jobs"] {
        diagnosis.expect(check, "failed", "");
    }
    diagnosis.expect("queue", "ok", "").expect("webhooks", "ok", "");
    let denied = "not authorized to perform: cloudformation:DescribeStacks";
    world.stacks.plan([Trouble::Refuse(403, "AccessDenied", denied)]);
    let diagnosis = doctor(&world).await;
    diagnosis.expect("stack", "failed", "AccessDenied");
    assert!(diagnosis.of("ledger").is_empty(), "nothing else is looked at");
    let diagnosis = doctor_with(&world, "GLEANER_STACK", "absent").await;
    diagnosis.expect("stack", "failed", "there is no stack `absent`");
}

/// SM-04, SM-05, SM-06: each stage of each secret is told, and none is shown.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_told_in_every_stage() {
    let (world, _receiver) = healthy().await;
    world.secrets.put_staged(EXTRACT, SECRET, &[Stage::Pending]).unwrap();
    let diagnosis = doctor(&world).await;
    diagnosis.expect("secrets", "ok", "the pending secret in `ExtractWebhookSecret");
    assert_none(&format!("{:?}", diagnosis.ran), &[], "doctor");
    // The value that was current becomes the previous one.
    world.secrets.put(EXTRACT, SECRET).unwrap();
    let diagnosis = doctor(&world).await;
    diagnosis
        .expect("secrets", "ok", "the previous secret in `ExtractWebhookSecret")
        .expect("secrets", "ok", "accepted until")
        .expect("secrets", "ok", "names no webhook");
    world.secrets.put(EXTRACT, format!("{{\"x\":\"{SECRET}\"}}").as_str()).unwrap();
    world.secrets.create(BATCH);
    let diagnosis = doctor(&world).await;
    diagnosis
        .expect("secrets", "failed", "ambiguous")
        .expect("secrets", "failed", "or it has no value")
        .expect("webhooks", "warning", "a secret that is here names no webhook");
    assert_none(&format!("{:?}", diagnosis.ran), &[], "doctor");
    world.secrets.forbid(EXTRACT, true);
    let diagnosis = doctor(&world).await;
    diagnosis.expect("secrets", "failed", "AccessDenied").expect("secrets", "ok", "CrawlWebhook");
}

/// The key's secret without a value, or with a value that is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_used_fails() {
    let world = World::new(Config { api_key: KEY.to_owned(), ..quick() }).await;
    world.secrets.put(KEY_SECRET, "another-key").unwrap();
    let diagnosis = doctor(&world).await;
    diagnosis.expect("api", "ok", "answered").expect("key", "failed", "");
    world.secrets.create(KEY_SECRET);
    doctor(&world).await.expect("key", "failed", "");
}

/// Tasks that no worker took are told.
#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_told() {
    let (world, _receiver) = healthy().await;
    world.queue.put_dead_letter("nobody's");
    world.queue.put_body("somebody's");
    let diagnosis = doctor(&world).await;
    diagnosis.expect("dead-letters", "warning", "1 tasks").expect("queue", "ok", "1 tasks wait");
    // Looking takes nothing away, and nobody's count of receipts goes up.
    assert!(world.queue.seen().iter().all(|call| !call.starts_with("Receive")));
    let mut outputs = world.outputs();
    outputs.remove("DeadLetterQueueUrl");
    world.stacks.deploy(STACK, Known { status: "UPDATE_COMPLETE", outputs });
    doctor(&world).await.expect("dead-letters", "skipped", "no dead-letter queue");
}
