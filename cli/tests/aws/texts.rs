//! What a person reads when something is in the way.

use std::fmt::Write as _;

use queue_sqs::testing::SqsTrouble;
use results::testing::S3Trouble;

use crate::bench::{ended, quick};
use crate::cloudformation::{Known, Trouble};
use crate::scripted::{Reply, Scripted};
use crate::world::{KEY_SECRET, World};

/// The texts so far.
#[derive(Default)]
struct Texts(String);

impl Texts {
    /// Runs a verb, with further variables; an empty value removes one.
    async fn run(&mut self, world: &World, args: &[&str], variables: &[(&str, &str)]) {
        let mut command = world.command(args);
        for (name, value) in variables {
            if value.is_empty() {
                command.env_remove(name);
            } else {
                command.env(name, value);
            }
        }
        let ran = ended(command.spawn().unwrap()).await;
        let told = ran.err.replace(world.secrets.endpoint(), "ENDPOINT");
        writeln!(self.0, "$ gleaner {}  ({})\n{told}", args.join(" "), ran.code).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_released_texts() {
    let world = World::new(quick()).await;
    let mut texts = Texts::default();
    texts.run(&world, &["serve"], &[]).await;
    texts.run(&world, &["jobs", "--stack", "x"], &[("GLEANER_BACKEND", "")]).await;
    texts.run(&world, &["jobs"], &[("GLEANER_STACK", "")]).await;
    texts.run(&world, &["jobs"], &[("AWS_REGION", "")]).await;
    texts.run(&world, &["jobs"], &[("AWS_ACCESS_KEY_ID", "")]).await;
    let program = "[profile work]\nregion = eu-central-1\ncredential_process = /none/such\n";
    world.folder.write("config", program);
    let profile =
        [("AWS_CONFIG_FILE", "config"), ("AWS_PROFILE", "work"), ("AWS_ACCESS_KEY_ID", "")];
    texts.run(&world, &["jobs"], &profile).await;
    texts.run(&world, &["jobs"], &[("AWS_PROFILE", "other"), ("AWS_ACCESS_KEY_ID", "")]).await;
    texts.run(&world, &["jobs", "--stack", "absent"], &[]).await;
    let status = "ROLLBACK_COMPLETE";
    world.stacks.deploy("failed", Known { status, outputs: [].into() });
    texts.run(&world, &["jobs", "--stack", "failed"], &[]).await;
    let denied = "User: arn:aws:iam::123456789012:user/me is not authorized to perform: \
                  cloudformation:DescribeStacks on resource: x";
    world.stacks.plan([Trouble::Refuse(403, "AccessDenied", denied)]);
    texts.run(&world, &["jobs"], &[]).await;
    let expired = "The security token included in the request is expired";
    world.stacks.plan([Trouble::Refuse(403, "ExpiredToken", expired)]);
    texts.run(&world, &["jobs"], &[]).await;
    for (code, message) in [
        (
            "AccessDeniedException",
            "User: arn:aws:iam::123456789012:user/me is not authorized to perform: \
             dynamodb:Scan on resource: x",
        ),
        ("ResourceNotFoundException", "Requested resource not found"),
    ] {
        let body = format!(r#"{{"__type":"x#{code}","message":"{message}"}}"#);
        let table = Scripted::start(move |_, _| Reply::Answer(400, "", body.clone())).await;
        texts.run(&world, &["jobs"], &[("AWS_ENDPOINT_URL_DYNAMODB", &table.url)]).await;
    }
    world.bucket.plan([S3Trouble::DENIED]);
    texts.run(&world, &["results", "list"], &[]).await;
    world.queue.plan([SqsTrouble::Refuse { status: 400, code: "QueueDoesNotExist" }]);
    texts.run(&world, &["poll", "--once"], &[]).await;
    world.secrets.forbid(KEY_SECRET, true);
    texts.run(&world, &["webhooks", "list"], &[]).await;
    world.secrets.forbid(KEY_SECRET, false);
    world.secrets.create(KEY_SECRET);
    texts.run(&world, &["webhooks", "list"], &[]).await;
    insta::assert_snapshot!("errors", texts.0);
}
