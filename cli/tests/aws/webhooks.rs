//! Webhooks whose signing secrets go into the stack's secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::limits::Limits;
use domain::ports::SecretSource as _;
use domain::signature::secret::Secret;
use secrets_aws::AwsSecrets;
use secrets_aws::testing::SecretsTrouble;
use serde_json::Value;
use system::SystemClock;

use crate::bench::{Ran, quick};
use crate::cloudformation::Known;
use crate::world::{BATCH, CRAWL, EXTRACT, STACK, WEBHOOK_URL, World};

const CREATE: [&str; 3] = ["webhooks", "create", "--json"];

/// What the stack's receiver reads of a secret.
async fn held(world: &World, names: &[&str]) -> Vec<Secret> {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let source = AwsSecrets::new(
        &world.config(),
        &names,
        Arc::new(SystemClock),
        Limits::default().previous_grace,
    );
    source.load().await.unwrap().secrets
}

/// The rows of a run, by event.
fn rows(ran: &Ran) -> BTreeMap<String, Value> {
    let rows = ran.of_type("webhook").into_iter();
    rows.map(|row| (row["event"].as_str().unwrap_or_default().to_owned(), row)).collect()
}

fn puts(world: &World) -> Vec<String> {
    world.secrets.seen().into_iter().filter(|call| call.starts_with("Put")).collect()
}

async fn webhooks(world: &World) -> Vec<Value> {
    world.run(&["webhooks", "list", "--json"]).await.expect(0).of_type("webhook")
}

/// SM-08: each webhook has a secret of its own, in the secret that was made for its kind.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_go_where_the_receiver_reads_them() {
    let world = World::new(quick()).await;
    let ran = world.run(&CREATE).await.expect(0);
    let created = rows(&ran);
    assert_eq!(created.len(), 3);
    for (event, name) in
        [("extract_completed", EXTRACT), ("batch_completed", BATCH), ("crawl_completed", CRAWL)]
    {
        let row = &created[event];
        assert_eq!((&row["url"], &row["outcome"]), (&WEBHOOK_URL.into(), &"created".into()));
        let [secret] = held(&world, &[name]).await.try_into().unwrap();
        assert_eq!(secret.webhook_id(), row["id"].as_str());
        for text in [&ran.out, &ran.err] {
            assert!(!text.contains(secret.expose()), "{text}");
        }
        assert!(ran.err.contains(&format!("its signing secret is in `{name}")), "{}", ran.err);
    }
    let listed = webhooks(&world).await;
    assert!(listed.len() == 3 && listed.iter().all(|row| row["secret_known"] == true));
    // Nothing is left to be done.
    let again = rows(&world.run(&CREATE).await.expect(0));
    assert!(again.values().all(|row| row["outcome"] == "kept"), "{again:?}");
    assert_eq!(puts(&world).len(), 3);
}

/// Who asks for a secret sees it, and another URL is another webhook.
#[tokio::test(flavor = "multi_thread")]
async fn an_url_may_be_given() {
    let world = World::new(quick()).await;
    let own = "http://127.0.0.1:9/own";
    let args = [&CREATE[..], &["--event", "batch", "--url", own, "--show-secret"]].concat();
    let row = &rows(&world.run(&args).await.expect(0))["batch_completed"];
    let [secret] = held(&world, &[BATCH]).await.try_into().unwrap();
    assert_eq!((&row["url"], &row["secret"]), (&own.into(), &secret.expose().into()));
}

/// A stack without secrets for batches and crawls has webhooks for pages alone.
#[tokio::test(flavor = "multi_thread")]
async fn kinds_without_a_secret_are_left_out() {
    let world = World::new(quick()).await;
    let mut outputs = world.outputs();
    outputs.insert("WebhookSecretIds", world.secrets.create(EXTRACT));
    world.stacks.deploy(STACK, Known { status: "UPDATE_COMPLETE", outputs });
    let created = rows(&world.run(&CREATE).await.expect(0));
    assert_eq!(created.keys().collect::<Vec<_>>(), ["extract_completed"]);
    let ran = world.run(&[&CREATE[..], &["--event", "crawl"]].concat()).await.expect(78);
    assert!(ran.err.contains("there is no secret for the webhook of crawl jobs"), "{}", ran.err);
    assert!(ran.err.contains("name `crawl` in the stack's parameter WebhookKinds"), "{}", ran.err);
    assert_eq!(webhooks(&world).await.len(), 1, "nothing was registered in vain");
}

/// A secret that cannot be kept leaves no webhook behind whose deliveries nobody could verify.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_whose_secret_cannot_be_kept_is_deleted_again() {
    let world = World::new(quick()).await;
    let denied = SecretsTrouble::Refuse { status: 400, code: "AccessDeniedException" };
    let extract = [&CREATE[..], &["--event", "extract"]].concat();
    // The key and three secrets are read before anything is put.
    world.secrets.plan([SecretsTrouble::Pass; 4].into_iter().chain([denied]));
    let ran = world.run(&extract).await.expect(77);
    assert!(ran.err.contains("need secretsmanager:PutSecretValue on the secret"), "{}", ran.err);
    assert_eq!(webhooks(&world).await, Vec::<Value>::new());
    // The same call again finds everything as it was.
    world.run(&extract).await.expect(0);
    assert_eq!(webhooks(&world).await.len(), 1);
}

/// DQ-02 for secrets: an answer that is lost is asked for again, and changes nothing the second
/// time; where all are lost, the next call begins anew.
#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_of_a_put_leave_one_webhook_with_its_secret() {
    let world = World::new(quick()).await;
    let extract = [&CREATE[..], &["--event", "extract"]].concat();
    world.secrets.plan([SecretsTrouble::Pass; 4].into_iter().chain([SecretsTrouble::LoseAnswer]));
    let row = &rows(&world.run(&extract).await.expect(0))["extract_completed"];
    assert_eq!(puts(&world).len(), 2);
    let [secret] = held(&world, &[EXTRACT]).await.try_into().unwrap();
    assert_eq!(secret.webhook_id(), row["id"].as_str());

    let world = World::new(quick()).await;
    world
        .secrets
        .plan([SecretsTrouble::Pass; 4].into_iter().chain([SecretsTrouble::LoseAnswer; 4]));
    let ran = world.run(&extract).await.expect(75);
    assert!(ran.err.contains("AWS gave no usable answer"), "{}", ran.err);
    assert_eq!(webhooks(&world).await, Vec::<Value>::new(), "nobody knows whether it is kept");
    let row = &rows(&world.run(&extract).await.expect(0))["extract_completed"];
    let held = held(&world, &[EXTRACT]).await;
    assert_eq!(held[0].webhook_id(), row["id"].as_str());
}

/// What somebody typed is not overwritten while it may be in use.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_may_be_in_use_is_left_alone() {
    let world = World::new(quick()).await;
    let extract = [&CREATE[..], &["--event", "extract"]].concat();
    let first = &rows(&world.run(&extract).await.expect(0))["extract_completed"].clone();
    let id = first["id"].as_str().unwrap();
    // The same secret, without its webhook's id, as the console's page shows it.
    let [secret] = held(&world, &[EXTRACT]).await.try_into().unwrap();
    world.secrets.put(EXTRACT, secret.expose()).unwrap();
    let ran = world.run(&extract).await.expect(78);
    assert!(ran.err.contains("holds a value that names no webhook"), "{}", ran.err);
    assert_eq!(webhooks(&world).await[0]["secret_known"], false);
    assert_eq!(held(&world, &[EXTRACT]).await[0].expose(), secret.expose());
    // Once no webhook is left that it could belong to, it is free.
    world.run(&["webhooks", "delete", id]).await.expect(0);
    let second = &rows(&world.run(&extract).await.expect(0))["extract_completed"];
    assert_ne!(second["id"], first["id"]);
    assert_eq!(held(&world, &[EXTRACT]).await[0].webhook_id(), second["id"].as_str());
}

/// A webhook that is deleted leaves its secret, since an empty one would refuse all deliveries.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_webhook_leaves_its_secret_until_the_next_one() {
    let world = World::new(quick()).await;
    let created = rows(&world.run(&CREATE).await.expect(0));
    let id = created["crawl_completed"]["id"].as_str().unwrap();
    let moved = ["webhooks", "update", id, "--url", "http://127.0.0.1:9/new", "--json"];
    assert_eq!(rows(&world.run(&moved).await.expect(0))["crawl_completed"]["secret_known"], true);
    // A webhook with a secret is there already, at another URL.
    let ran = world.run(&[&CREATE[..], &["--event", "crawl"]].concat()).await.expect(78);
    assert!(ran.err.contains(&format!("holds the one of webhook {id}")), "{}", ran.err);
    let ran = world.run(&["webhooks", "delete", id, "--json"]).await.expect(0);
    assert_eq!(ran.of_type("webhook")[0]["secret_known"], true);
    assert!(ran.err.contains("its signing secret stays in `CrawlWebhookSecret"), "{}", ran.err);
    assert_eq!(held(&world, &[CRAWL]).await[0].webhook_id(), Some(id));
    let again = rows(&world.run(&CREATE).await.expect(0));
    assert_eq!(again["crawl_completed"]["outcome"], "created");
    assert_eq!(again["extract_completed"]["outcome"], "kept");
}

/// A secret that somebody is deleting takes no new value.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_going_is_told_so() {
    let world = World::new(quick()).await;
    world.secrets.delete(BATCH);
    let ran = world.run(&CREATE).await.expect(78);
    assert!(ran.err.contains("it was marked for deletion"), "{}", ran.err);
    assert!(
        ran.err.contains("the secret (setting `webhook_secret_ids`) is not there"),
        "{}",
        ran.err
    );
    assert_eq!(world.secrets.seen().iter().filter(|call| call.starts_with("Put")).count(), 0);
}
