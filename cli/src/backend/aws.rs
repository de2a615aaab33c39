//! Everything on AWS: the ledger in DynamoDB, the queue in SQS, results on S3, secrets in Secrets
//! Manager, and a stack of CloudFormation that tells where they are.

mod access;
mod advice;
mod held;
mod outputs;
mod stack;
mod vault;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_client::SdkConfig;
use domain::ports::{Clock, DeadLetterQueue, ErrorKind, PortError, Random as _, SlotId, VersionId};
use ledger_dynamodb::DynamoLedger;
use queue_sqs::{SqsDeadLetters, SqsQueue};
use results::{ObjectResults, S3Settings};
use scraper_api::{ApiKey, KeySource, KeyTrouble};
use secrets_aws::{ApiKeySource, AwsVault};
use settings::{Aws, Settings};

pub(super) use advice::advised;

use self::outputs::Outputs;
use self::vault::{SECRETS, Vault};
use super::{Begun, Held, Root, SetKey, Store, Tasks};
use crate::error::CliError;
use crate::exit::Exit;
use system::{SystemClock, SystemRandom};

/// Pause between two looks into the queue while there is nothing to do: short against a job, and
/// some thousand requests in a day.
const LOOK_PAUSE: Duration = Duration::from_secs(2);

/// The operation of the secrets that reads the API key, in errors.
const LOAD_API_KEY: &str = "load_api_key";

/// A deployed bundle as it is reached from here.
pub(super) struct Bundle {
    config: SdkConfig,
    table: String,
    queue_url: String,
    bucket: String,
}

/// What was found.
pub(super) struct Found {
    /// The settings, with those that the stack gives.
    pub(super) settings: Settings,
    /// Names of the settings that the stack gave.
    pub(super) from_stack: Vec<&'static str>,
    /// The bundle.
    pub(super) bundle: Bundle,
}

/// Finds region and credentials, and asks the stack, if there is one, for what is not set.
///
/// # Errors
/// When something is missing, or AWS refuses or does not answer.
pub(super) async fn find(settings: &Settings, named: &Aws) -> Result<Found, CliError> {
    let config = access::open(named.region.as_deref()).await?;
    let mut settings = settings.clone();
    let mut from_stack = Vec::new();
    if let Some(name) = &named.stack {
        let outputs = Outputs::of(name, stack::describe(&config, name).await?)?;
        from_stack = outputs.fill(&mut settings);
    }
    let settings::Backend::Aws(Aws {
        table: Some(table),
        queue_url: Some(queue_url),
        bucket: Some(bucket),
        ..
    }) = settings.backend.clone()
    else {
        return Err(CliError::new(Exit::Configuration, "the backend on AWS is not named in full")
            .hint("give --stack, or set `table`, `queue_url` and `bucket`"));
    };
    Ok(Found { settings, from_stack, bundle: Bundle { config, table, queue_url, bucket } })
}

impl Bundle {
    /// Ledger, queue and results. Nothing is asked of AWS yet.
    ///
    /// # Errors
    /// When a name cannot be right.
    pub(super) fn store(&self, settings: &Settings) -> Result<Store, CliError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ledger = DynamoLedger::new(&self.config, &self.table, Arc::clone(&clock));
        let queue = SqsQueue::new(&self.config, &self.queue_url).map_err(|error| {
            CliError::new(Exit::Configuration, "the queue cannot be used").because(error)
        })?;
        let dead_letters = self.dead_letters(settings, &queue)?;
        let prefix = prefix(settings);
        let results = S3Settings::new(&self.config, &self.bucket, prefix)
            .and_then(|place| ObjectResults::on_s3(&place, clock))
            .map_err(|error| {
                CliError::new(Exit::Configuration, "the bucket cannot be used").because(error)
            })?;
        let slash = if prefix.is_empty() { "" } else { "/" };
        Ok(Store {
            settings: settings.clone(),
            ledger: Arc::new(ledger),
            queue: Arc::new(queue.clone()),
            tasks: Arc::new(queue),
            dead_letters,
            results: Arc::new(results),
            root: Root::Bucket(format!("s3://{}/{prefix}{slash}", self.bucket)),
        })
    }

    /// The dead-letter queue, if its URL is known.
    fn dead_letters(
        &self,
        settings: &Settings,
        queue: &SqsQueue,
    ) -> Result<Option<Arc<dyn DeadLetterQueue>>, CliError> {
        let url = named(settings).and_then(|aws| aws.dead_letter_queue_url.as_deref());
        let opened = url.map(|url| SqsDeadLetters::new(&self.config, url, queue)).transpose();
        let opened = opened.map_err(|error| {
            let text = "the dead-letter queue cannot be used";
            CliError::new(Exit::Configuration, text).because(error)
        })?;
        Ok(opened.map(|letters| Arc::new(letters) as Arc<dyn DeadLetterQueue>))
    }

    /// The API key: the one that is set, or the one in the secret.
    ///
    /// # Errors
    /// When there is none, or it is none, or it cannot be read.
    pub(super) async fn api_key(&self, settings: &Settings) -> Result<ApiKey, CliError> {
        match self.key_secret(settings) {
            Some(secret) => Ok(secret.read().await?),
            None => SetKey::of(settings).load(),
        }
    }

    /// Where the API key is read again.
    pub(super) fn keys(&self, settings: &Settings) -> Arc<dyn KeySource> {
        match self.key_secret(settings) {
            Some(secret) => Arc::new(secret),
            None => Arc::new(SetKey::of(settings)),
        }
    }

    /// The secret that holds the API key, unless another place is set.
    fn key_secret(&self, settings: &Settings) -> Option<KeySecret> {
        let id = named(settings)?.api_key_secret_id.as_deref()?;
        let is_elsewhere = SetKey::of(settings).is_set();
        (!is_elsewhere).then(|| KeySecret(ApiKeySource::new(&self.config, id)))
    }

    /// How many tasks are in the dead-letter queue.
    ///
    /// # Errors
    /// When the queue cannot be asked.
    pub(super) async fn count_dead_letters(
        &self,
        settings: &Settings,
    ) -> Result<Option<u64>, CliError> {
        let url = named(settings).and_then(|aws| aws.dead_letter_queue_url.as_deref());
        let Some(url) = url else { return Ok(None) };
        let queue = SqsQueue::new(&self.config, url).map_err(|error| {
            CliError::new(Exit::Configuration, "the dead-letter queue cannot be used")
                .because(error)
        })?;
        Ok(Some(queue.count_waiting().await?))
    }

    /// The signing secrets, in every stage.
    pub(super) async fn held(&self, settings: &Settings) -> Vec<Held> {
        let ids = named(settings).and_then(|aws| aws.webhook_secret_ids.clone());
        held::read(&self.config, &ids.unwrap_or_default(), settings.limits.previous_grace).await
    }

    /// The signing secrets as a rotation sees them.
    pub(super) fn secrets(&self, settings: &Settings) -> AwsVault {
        let ids = named(settings).and_then(|aws| aws.webhook_secret_ids.clone());
        AwsVault::new(&self.config, &ids.unwrap_or_default())
    }

    /// Has Secrets Manager begin a rotation.
    ///
    /// # Errors
    /// When it refuses, or does not answer.
    pub(super) async fn begin_rotation(
        &self,
        settings: &Settings,
        slot: &SlotId,
    ) -> Result<Begun, CliError> {
        let version = VersionId::parse(&SystemRandom.token())
            .map_err(|error| CliError::new(Exit::Bug, "no name for a version").because(error))?;
        let begun = self.secrets(settings).begin_rotation(slot, &version).await?;
        Ok(match begun {
            secrets_aws::Begun::Now => Begun::Now,
            secrets_aws::Begun::NotConfigured => Begun::NotConfigured,
            secrets_aws::Begun::UnderWay => Begun::UnderWay,
        })
    }

    /// The signing secrets.
    pub(super) fn vault(&self, settings: &Settings) -> Vault {
        let ids = named(settings).and_then(|aws| aws.webhook_secret_ids.clone());
        Vault::new(&self.config, ids.unwrap_or_default())
    }
}

/// What the keys of results begin with.
fn prefix(settings: &Settings) -> &str {
    named(settings).and_then(|aws| aws.results_prefix.as_deref()).unwrap_or_default()
}

/// What the settings name of AWS.
fn named(settings: &Settings) -> Option<&Aws> {
    match &settings.backend {
        settings::Backend::Aws(aws) => Some(aws),
        settings::Backend::Embedded => None,
    }
}

/// The API key in Secrets Manager.
struct KeySecret(ApiKeySource);

impl KeySecret {
    async fn read(&self) -> Result<ApiKey, PortError> {
        let text = self.0.load().await?;
        ApiKey::parse(text.expose()).map_err(|error| {
            PortError::new(SECRETS, LOAD_API_KEY, ErrorKind::Corrupt).with_source(error)
        })
    }
}

#[async_trait]
impl KeySource for KeySecret {
    async fn load(&self) -> Result<Option<ApiKey>, KeyTrouble> {
        Ok(Some(self.read().await?))
    }
}

#[async_trait]
impl Tasks for SqsQueue {
    async fn wait(&self, longest: Duration) -> Result<(), PortError> {
        SystemClock.sleep(longest.min(LOOK_PAUSE)).await;
        Ok(())
    }

    async fn count_waiting(&self) -> Result<u64, PortError> {
        let depth = self.depth().await?;
        Ok(depth.visible.saturating_add(depth.held).saturating_add(depth.delayed))
    }
}
