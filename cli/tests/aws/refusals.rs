//! What the services refuse, told with what to do.

use queue_sqs::testing::SqsTrouble;
use results::testing::S3Trouble;

use crate::bench::{Ran, ended, quick};
use crate::scripted::{Reply, Scripted};
use crate::world::World;

/// Runs a verb with a table that answers every call so.
async fn with_table(world: &World, args: &[&str], status: u16, code: &str) -> Ran {
    let body = format!(
        r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"User: me may not"}}"#
    );
    let table = Scripted::start(move |_, _| Reply::Answer(status, "", body.clone())).await;
    let mut command = world.command(args);
    command.env("AWS_ENDPOINT_URL_DYNAMODB", &table.url);
    ended(command.spawn().unwrap()).await
}

/// Each verb names the action that its credentials lack.
#[tokio::test(flavor = "multi_thread")]
async fn an_action_that_is_not_allowed_is_named() {
    let world = World::new(quick()).await;
    for (args, action) in [
        (&["jobs"][..], "dynamodb:Scan and dynamodb:BatchGetItem on the table"),
        (&["jobs", "counts"], "dynamodb:Scan on the table"),
        (&["jobs", "show", "a-job"], "dynamodb:GetItem on the table"),
        (&["submit", "https://example.com/"], "dynamodb:Query on the table's index/listing"),
        (&["poll"], "dynamodb:"),
    ] {
        let ran = with_table(&world, args, 400, "AccessDeniedException").await.expect(77);
        let text = format!("these credentials need {action}");
        assert!(ran.err.contains(&text), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("docs/iam.json lists all"), "{args:?}: {}", ran.err);
        assert!(!ran.err.contains("data folder"), "{args:?}: {}", ran.err);
    }
    assert_eq!(world.jobs().len(), 0, "nothing is paid for that could not be written down");
}

/// The other reasons for which a table refuses, and what it cannot do now.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_refuses_says_why() {
    let world = World::new(quick()).await;
    for (status, code, exit, text) in [
        (400, "ExpiredTokenException", 77, "the AWS credentials have expired"),
        (400, "UnrecognizedClientException", 77, "AWS does not take these credentials"),
        (
            400,
            "ResourceNotFoundException",
            78,
            "the table (setting `table`) is not there: the stack `gleaner`",
        ),
        (400, "ThrottlingException", 75, "AWS makes us wait"),
        (500, "InternalServerError", 75, "AWS gave no usable answer"),
        (400, "ValidationException", 70, "this is a bug in gleaner"),
    ] {
        let ran = with_table(&world, &["jobs"], status, code).await.expect(exit);
        assert!(ran.err.contains(text), "{code}: {}", ran.err);
        assert!(ran.err.contains(&format!("AWS answered {status} with {code}")), "{}", ran.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_refuses_says_why() {
    let world = World::new(quick()).await;
    for (status, code, exit, text) in [
        (403, "AccessDenied", 77, "s3:GetObject on the bucket's objects and s3:ListBucket"),
        (400, "ExpiredToken", 77, "the AWS credentials have expired"),
        (404, "NoSuchBucket", 78, "the bucket (setting `bucket`) is not there"),
        (301, "PermanentRedirect", 78, "region and account are others"),
    ] {
        world.bucket.plan([S3Trouble::Refuse { status, code }]);
        let ran = world.run(&["results", "list"]).await.expect(exit);
        assert!(ran.err.contains(text), "{code}: {}", ran.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_refuses_says_why() {
    let world = World::new(quick()).await;
    for (code, exit, text) in [
        ("AccessDeniedException", 77, "these credentials need sqs:ReceiveMessage on the queue"),
        ("QueueDoesNotExist", 78, "the queue (setting `queue_url`) is not there"),
    ] {
        world.queue.plan([SqsTrouble::Refuse { status: 400, code }]);
        let ran = world.run(&["poll", "--once"]).await.expect(exit);
        assert!(ran.err.contains(text), "{code}: {}", ran.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_at_the_other_end_is_told_so() {
    let world = World::new(quick()).await;
    let mut command = world.command(&["jobs"]);
    command.env("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:9");
    let ran = ended(command.spawn().unwrap()).await.expect(75);
    assert!(ran.err.contains("check the network and the region"), "{}", ran.err);
}
