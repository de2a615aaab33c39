//! OB-01: nothing that a verb prints or logs on AWS shows a secret.

use domain::limits::Limits;
use domain::ports::SecretSource as _;
use secrets_aws::AwsSecrets;
use simulator::Config;
use std::sync::Arc;
use system::SystemClock;

use crate::bench::{Ran, ended, quick};
use crate::cloudformation::Trouble;
use crate::markers::{KEY, OLD_SECRET, SECRET, assert_none};
use crate::world::{BATCH, CRAWL, EXTRACT, KEY_SECRET, SECRET_KEY, SESSION_TOKEN, World};

/// A stack whose key is marked.
async fn marked() -> World {
    let world = World::new(Config { api_key: KEY.to_owned(), ..quick() }).await;
    world.secrets.put(KEY_SECRET, KEY).unwrap();
    world
}

/// Runs a verb at its most talkative in both forms, and looks through all that it says.
async fn run(world: &World, args: &[&str]) -> [Ran; 2] {
    let mut ran = Vec::new();
    for form in [&[][..], &["--json"]] {
        let mut command = world.command(&[&["--log", "trace"], form, args].concat());
        command.env("RUST_LOG", "trace").env("RUST_BACKTRACE", "1");
        let one = ended(command.spawn().unwrap()).await;
        let all = format!("{}{}", one.out, one.err);
        assert_none(&all, &[], &format!("{args:?}"));
        for secret in [SECRET_KEY, SESSION_TOKEN] {
            assert!(!all.contains(secret), "{args:?}: {all}");
        }
        assert!(!one.err.contains("panicked"), "{args:?}: {one:?}");
        ran.push(one);
    }
    ran.try_into().unwrap()
}

/// OB-01: every verb, with everything in order.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_verbs_on_aws_show_no_secret() {
    let world = marked().await;
    let created = run(&world, &["webhooks", "create"]).await;
    assert!(created.iter().all(|ran| ran.code == 0), "{created:?}");
    let names = [EXTRACT, BATCH, CRAWL].map(str::to_owned);
    let source = AwsSecrets::new(
        &world.config(),
        &names,
        Arc::new(SystemClock),
        Limits::default().previous_grace,
    );
    let held = source.load().await.unwrap().secrets;
    let mut said = Vec::from(created);
    for args in [
        &["submit", "https://example.com/a"][..],
        &["submit", "https://example.com/a", "--dry-run"],
        &["extract", "https://example.com/a"],
        &["poll", "--base", "10ms", "--cap", "200ms"],
        &["jobs"],
        &["jobs", "counts"],
        &["results", "list"],
        &["webhooks", "list"],
        &["doctor"],
        &["settings"],
        &["serve"],
    ] {
        said.extend(run(&world, args).await);
    }
    for ran in &said {
        let all = format!("{}{}", ran.out, ran.err);
        assert!(held.iter().all(|secret| !all.contains(secret.expose())), "{all}");
    }
}

/// OB-01: secrets that cannot be used, and services that refuse and repeat what they were given.
#[tokio::test(flavor = "multi_thread")]
async fn ob_01_trouble_on_aws_shows_no_secret() {
    let world = marked().await;
    for value in [format!("{KEY} {KEY}"), format!("{{\"{KEY}\":\"{KEY}\"}}"), format!("[{KEY}]")] {
        world.secrets.put(KEY_SECRET, value.as_str()).unwrap();
        for args in [&["extract", "https://example.com/a"][..], &["webhooks", "list"]] {
            assert!(run(&world, args).await.iter().all(|ran| ran.code == 65));
        }
    }
    // A key that is refused.
    world.secrets.put(KEY_SECRET, OLD_SECRET).unwrap();
    assert!(
        run(&world, &["extract", "https://example.com/a"]).await.iter().all(|ran| ran.code == 77)
    );
    world.secrets.put(KEY_SECRET, KEY).unwrap();
    for value in [SECRET, &format!("{SECRET}\n{SECRET}"), &format!("{{\"x\":\"{SECRET}\"}}")] {
        world.secrets.put(EXTRACT, value).unwrap();
        run(&world, &["webhooks", "list"]).await;
        run(&world, &["webhooks", "create"]).await;
    }
    let denied = "not authorized to perform: cloudformation:DescribeStacks";
    world.stacks.plan([Trouble::Refuse(403, "AccessDenied", denied); 2]);
    run(&world, &["jobs"]).await;
    world.stacks.plan([Trouble::Page; 8]);
    run(&world, &["jobs"]).await;
}
