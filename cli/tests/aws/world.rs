//! All services, a platform, and the binary with a backend on AWS.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_client::{Patience, SdkConfig};
use domain::ports::Clock;
use queue_sqs::testing::FakeSqs;
use results::testing::{BUCKET, FakeS3};
use secrets_aws::testing::FakeSecretsManager;
use simulator::{Config, Detail, Running};
use system::SystemClock;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::bench::{Folder, KEY, Ran, ended};
use crate::cloudformation::{FakeCloudFormation, Known};
use crate::dynamodb;

pub(crate) const REGION: &str = "eu-central-1";
/// The credentials that the services know; they are all of one account.
pub(crate) const ACCESS_KEY: &str = "AKIDMARKER";
pub(crate) const SECRET_KEY: &str = "skMarker88ab-SecretAccess-m2Vx4d";
pub(crate) const SESSION_TOKEN: &str = "marker-session-token";
/// The stack.
pub(crate) const STACK: &str = "gleaner";
/// Its secrets, named as CloudFormation names them.
pub(crate) const KEY_SECRET: &str = "ApiKeySecret-Qy2rT5w8ZxCv";
pub(crate) const EXTRACT: &str = "ExtractWebhookSecret-a1B2c3D4e5F6";
pub(crate) const BATCH: &str = "BatchWebhookSecret-g7H8i9J0k1L2";
pub(crate) const CRAWL: &str = "CrawlWebhookSecret-m3N4o5P6q7R8";
/// Where the stack's receiver is.
pub(crate) const WEBHOOK_URL: &str = "http://127.0.0.1:9/webhook";

/// A deployed stack, and somebody at the command line.
pub(crate) struct World {
    pub(crate) folder: Folder,
    pub(crate) platform: Running,
    pub(crate) table: String,
    pub(crate) queue: FakeSqs,
    pub(crate) bucket: FakeS3,
    pub(crate) secrets: FakeSecretsManager,
    pub(crate) stacks: FakeCloudFormation,
}

impl World {
    /// A stack whose secrets hold the API key and no signing secret yet.
    pub(crate) async fn new(config: Config) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let clock = Arc::new(simulator::SystemClock);
        let platform = simulator::start(listener, config, clock).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let world = Self {
            folder: Folder::new(&platform.base_url()),
            table: dynamodb::table().await,
            queue: FakeSqs::start(Arc::clone(&clock), Patience::WORKER).await.unwrap(),
            bucket: FakeS3::start().await.unwrap(),
            secrets: FakeSecretsManager::start(clock).await.unwrap(),
            stacks: FakeCloudFormation::start().await,
            platform,
        };
        world.secrets.put(KEY_SECRET, KEY).unwrap();
        let outputs = world.outputs();
        world.stacks.deploy(STACK, Known { status: "CREATE_COMPLETE", outputs });
        world
    }

    /// What the template gives out. The secrets are made anew.
    pub(crate) fn outputs(&self) -> BTreeMap<&'static str, String> {
        let hooks = [EXTRACT, BATCH, CRAWL].map(|name| self.secrets.create(name));
        [
            ("WebhookUrl", WEBHOOK_URL.to_owned()),
            ("Table", self.table.clone()),
            ("QueueUrl", self.queue.queue_url().to_owned()),
            ("DeadLetterQueueUrl", self.queue.dead_letter_queue_url().to_owned()),
            ("Bucket", BUCKET.to_owned()),
            ("ResultsPrefix", "team/prod".to_owned()),
            ("WebhookSecretIds", hooks.join(",")),
            ("ApiKeySecretId", KEY_SECRET.to_owned()),
            ("ApiUrl", self.platform.base_url()),
            ("Dashboard", "https://console.example.org/?a=1&b=2".to_owned()),
        ]
        .into()
    }

    /// The process before it runs, with what a person has in their environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.folder.command(args);
        // Both are the stack's to say.
        command.env_remove("GLEANER_API_KEY").env_remove("GLEANER_API_URL");
        command.envs([("GLEANER_BACKEND", "aws"), ("GLEANER_STACK", STACK)]);
        command.envs(self.variables());
        command
    }

    /// The variables of AWS.
    pub(crate) fn variables(&self) -> BTreeMap<&'static str, String> {
        [
            ("AWS_REGION", REGION),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_SESSION_TOKEN", SESSION_TOKEN),
            // Nobody is to be asked who is not here.
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("AWS_ENDPOINT_URL_CLOUDFORMATION", &self.stacks.endpoint),
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb::endpoint()),
            ("AWS_ENDPOINT_URL_S3", self.bucket.endpoint()),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", self.secrets.endpoint()),
            ("AWS_ENDPOINT_URL_SQS", self.queue.endpoint()),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into()
    }

    /// Runs the binary to its end.
    pub(crate) async fn run(&self, args: &[&str]) -> Ran {
        ended(self.command(args).spawn().unwrap()).await
    }

    /// The configuration of a function of the stack.
    pub(crate) fn config(&self) -> SdkConfig {
        let variables = self.variables();
        aws_client::from_environment(&|name| variables.get(name).cloned(), Patience::WORKER)
            .unwrap()
    }

    /// The platform's own books of all jobs.
    pub(crate) fn jobs(&self) -> Vec<serde_json::Value> {
        let books = self.platform.with_platform(|platform, now| {
            platform.roll(now);
            platform.books(Detail::Jobs)
        });
        books["jobs"].as_array().unwrap().clone()
    }
}

/// The ids in rows of a type.
pub(crate) fn ids(ran: &Ran, name: &str) -> Vec<String> {
    ran.of_type(name).iter().map(|row| row["job_id"].as_str().unwrap().to_owned()).collect()
}
