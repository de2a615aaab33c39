//! Where everything is: by the stack's outputs, by settings, or not at all.

use std::collections::BTreeMap;

use crate::bench::{KEY, ended, quick};
use crate::cloudformation::{Known, Trouble};
use crate::world::{KEY_SECRET, REGION, STACK, WEBHOOK_URL, World};

/// The names and sources of the settings in force.
async fn in_force(world: &World, args: &[&str]) -> BTreeMap<String, (String, String)> {
    let ran = world.run(&[&["settings", "--json"], args].concat()).await.expect(0);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("none").to_owned();
    let rows = ran.of_type("setting").into_iter();
    rows.map(|row| (text(&row["name"]), (text(&row["value"]), text(&row["source"])))).collect()
}

/// What the stack gives is shown with where it comes from, and what is set goes before it.
#[tokio::test(flavor = "multi_thread")]
async fn settings_are_filled_from_the_stack() {
    let world = World::new(quick()).await;
    let settings = in_force(&world, &["--set", "bucket=my-own", "--set", "results_prefix=x"]).await;
    let from = |name: &str| {
        let (value, source) = &settings[name];
        (value.clone(), source.clone())
    };
    let stack = || format!("stack {STACK}");
    assert_eq!(from("backend"), ("aws".to_owned(), "GLEANER_BACKEND".to_owned()));
    assert_eq!(from("table"), (world.table.clone(), stack()));
    assert_eq!(from("queue_url"), (world.queue.queue_url().to_owned(), stack()));
    assert_eq!(from("api_url"), (world.platform.base_url(), stack()));
    assert_eq!(from("public_url"), (WEBHOOK_URL.to_owned(), stack()));
    assert_eq!(from("api_key_secret_id"), (KEY_SECRET.to_owned(), stack()));
    assert_eq!(from("webhook_secret_ids").1, stack());
    assert_eq!(from("bucket"), ("my-own".to_owned(), "--set".to_owned()));
    assert_eq!(from("results_prefix"), ("x".to_owned(), "--set".to_owned()));
    assert_eq!(from("api_key"), ("none".to_owned(), "default".to_owned()));
}

/// Settings that cannot be completed are shown as they are, with what is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn settings_without_their_stack_are_shown() {
    let world = World::new(quick()).await;
    let ran = world.run(&["settings", "--stack", "other"]).await.expect(78);
    assert!(ran.out.contains("stack = other  (--stack)"), "{}", ran.out);
    assert!(ran.err.contains("there is no stack `other` in eu-central-1"), "{}", ran.err);
}

/// Flags go before variables, and nothing else is needed.
#[tokio::test(flavor = "multi_thread")]
async fn flags_name_the_stack() {
    let world = World::new(quick()).await;
    let mut command = world.command(&[
        "jobs",
        "counts",
        "--backend",
        "aws",
        "--stack",
        STACK,
        "--region",
        REGION,
    ]);
    command
        .env_remove("GLEANER_BACKEND")
        .env("GLEANER_STACK", "other")
        .env("AWS_REGION", "us-east-1");
    ended(command.spawn().unwrap()).await.expect(0);
    assert_eq!(world.stacks.calls().len(), 1, "asked once");
}

/// Without a stack, settings say it all, and CloudFormation is not asked.
#[tokio::test(flavor = "multi_thread")]
async fn settings_alone_are_enough() {
    let world = World::new(quick()).await;
    let run = async |args: &[&str]| {
        let mut command = world.command(args);
        command.env_remove("GLEANER_STACK").env("GLEANER_API_URL", world.platform.base_url());
        command.env("GLEANER_API_KEY", KEY).env("GLEANER_TABLE", &world.table);
        command.env("GLEANER_QUEUE_URL", world.queue.queue_url());
        command.env("GLEANER_BUCKET", "gleaner-results");
        ended(command.spawn().unwrap()).await
    };
    run(&["submit", "https://example.com/a"]).await.expect(0);
    run(&["poll", "--base", "10ms", "--cap", "200ms"]).await.expect(0);
    let keys = world.bucket.keys();
    assert!(keys.len() == 1 && keys[0].starts_with("kind=extract/"), "{keys:?}");
    let place = run(&["results", "list", "--json"]).await.expect(0).of_type("result");
    assert_eq!(place[0]["key"], keys[0].as_str());
    assert_eq!((world.stacks.calls().len(), world.secrets.seen().len()), (0, 0));
    // A secret of a webhook has no place then.
    let ran = run(&["webhooks", "create", "--url", "https://example.org/"]).await.expect(78);
    assert!(ran.err.contains("give --stack, or name the secrets"), "{}", ran.err);
}

/// What is not named at all is told before anything is asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_not_named_is_refused() {
    let world = World::new(quick()).await;
    let mut command = world.command(&["jobs"]);
    command.env_remove("GLEANER_STACK").env("GLEANER_TABLE", "table");
    let ran = ended(command.spawn().unwrap()).await.expect(78);
    let text = "`aws` needs `stack`, or else `queue_url`, `bucket`, which nothing says";
    assert!(ran.err.contains(text), "{}", ran.err);
}

/// A flag of AWS with the embedded backend means another ledger than the one that would be used.
#[tokio::test(flavor = "multi_thread")]
async fn flags_of_aws_want_the_backend_on_aws() {
    let world = World::new(quick()).await;
    for flags in [["--stack", STACK], ["--region", REGION]] {
        let mut command =
            world.command(&[&["submit", "https://example.com/"], &flags[..]].concat());
        command.env_remove("GLEANER_BACKEND").env("GLEANER_API_KEY", KEY);
        let ran = ended(command.spawn().unwrap()).await.expect(64);
        assert!(ran.err.contains("add --backend aws"), "{}", ran.err);
        assert_eq!(world.jobs().len(), 0);
    }
}

/// The embedded server is none of AWS.
#[tokio::test(flavor = "multi_thread")]
async fn serve_is_for_one_machine() {
    let world = World::new(quick()).await;
    let ran = world.run(&["serve"]).await.expect(78);
    assert!(ran.err.contains("`serve` is the server of one machine"), "{}", ran.err);
    assert!(ran.err.contains("there the functions receive, work and sweep"), "{}", ran.err);
    assert!(!world.folder.path().join("gleaner-data").exists());
}

/// Stacks that are not there, not ready, or not ours.
#[tokio::test(flavor = "multi_thread")]
async fn a_stack_must_be_there_and_ready_and_ours() {
    let world = World::new(quick()).await;
    let deploy = |name: &str, status, outputs: &[(&'static str, &str)]| {
        let outputs = outputs.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        world.stacks.deploy(name, Known { status, outputs });
    };
    deploy("failed", "ROLLBACK_COMPLETE", &[]);
    deploy("early", "CREATE_IN_PROGRESS", &[]);
    deploy("foreign", "CREATE_COMPLETE", &[("Table", "a-table"), ("Site", "x")]);
    for (name, said, hint) in [
        ("absent", "there is no stack `absent` in eu-central-1", "check --stack and --region"),
        ("failed", "has no outputs; its status is ROLLBACK_COMPLETE", "see its events"),
        ("early", "has no outputs; its status is CREATE_IN_PROGRESS", "wait until its deployment"),
        ("foreign", "lacks the outputs QueueUrl, Bucket", "Gleaner's template.yaml"),
    ] {
        let ran = world.run(&["jobs", "--stack", name]).await.expect(78);
        assert!(ran.err.contains(said), "{name}: {}", ran.err);
        assert!(ran.err.contains(hint), "{name}: {}", ran.err);
    }
}

/// A stack is asked again where that may help, and not where it cannot.
#[tokio::test(flavor = "multi_thread")]
async fn trouble_with_the_stack_is_told_with_what_to_do() {
    let world = World::new(quick()).await;
    let throttled = Trouble::Refuse(400, "Throttling", "Rate exceeded");
    let broken = Trouble::Refuse(503, "ServiceUnavailable", "Try later.");
    world.stacks.plan([throttled, broken, Trouble::Reset]);
    world.run(&["jobs"]).await.expect(0);
    assert_eq!(world.stacks.calls().len(), 4, "asked until it answered");
    world.stacks.plan([throttled; 4]);
    let ran = world.run(&["jobs"]).await.expect(75);
    assert!(ran.err.contains("AWS makes us wait"), "{}", ran.err);
    world.stacks.plan([Trouble::Page; 4]);
    let ran = world.run(&["jobs"]).await.expect(75);
    assert!(ran.err.contains("AWS gave no usable answer"), "{}", ran.err);
    let denied = "User: arn:aws:iam::123456789012:user/me is not authorized to perform: \
                  cloudformation:DescribeStacks";
    for (code, text, exit) in [
        ("AccessDenied", "need cloudformation:DescribeStacks on the stack", 77),
        ("ExpiredToken", "have expired: sign in again", 77),
        ("InvalidClientTokenId", "`aws sts get-caller-identity` shows whose they are", 77),
        ("SignatureDoesNotMatch", "a clock that is wrong has the same effect", 77),
    ] {
        let calls = world.stacks.calls().len();
        world.stacks.plan([Trouble::Refuse(403, code, denied)]);
        let ran = world.run(&["jobs"]).await.expect(exit);
        assert!(ran.err.contains(text) && ran.err.contains(code), "{code}: {}", ran.err);
        assert_eq!(world.stacks.calls().len(), calls + 1, "{code}: asked once");
    }
}
