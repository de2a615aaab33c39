use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_client::Patience;
use domain::envelope::EventType;
use domain::limits::Limits;
use domain::ports::{Clock, NewWebhook, Webhooks as _};
use domain::rotate::Strategy;
use domain::testing::{ManualClock, MemoryLedger, MemoryWebhooks, SeededRandom};
use domain::time::{Timestamp, after};
use rotator::{Report, Rotator, StepError};
use secrets_aws::AwsVault;
use secrets_aws::testing::FakeSecretsManager;
use serde_json::Value;
use telemetry::Metrics;

/// The secret of the events.
pub(crate) const SECRET: &str = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:\
                                 ExtractWebhookSecret-8Kq2vX0bZr1T-a1B2c3";
/// Their version.
pub(crate) const VERSION: &str = "4f0b6a1e-7c52-4d0e-9a57-2f1f0f6f3c11";
const SECOND: Duration = Duration::from_secs(1);

/// A rotator of one subscription.
pub(crate) struct Rig {
    rotator: Rotator,
    name: String,
    pub(crate) fake: Arc<FakeSecretsManager>,
    pub(crate) webhooks: Arc<MemoryWebhooks>,
    pub(crate) metrics: Arc<Metrics>,
    clock: Arc<Brief>,
}

/// Short pauses pass at once; deadlines do not pass, as calls take true time.
struct Brief(ManualClock);

#[async_trait]
impl Clock for Brief {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn sleep(&self, duration: Duration) {
        if duration > 30 * SECOND {
            std::future::pending::<()>().await;
        }
        self.0.sleep(duration).await;
    }
}

fn new() -> NewWebhook {
    NewWebhook {
        url: "https://example.org/webhook".to_owned(),
        event_type: EventType::ExtractCompleted,
        description: Some("gleaner".to_owned()),
    }
}

impl Rig {
    /// The secret is named by its ARN.
    pub(crate) async fn new(strategy: Strategy) -> Self {
        Self::named(SECRET, strategy).await
    }

    /// The secret is named so.
    pub(crate) async fn named(name: &str, strategy: Strategy) -> Self {
        let clock = Arc::new(Brief(ManualClock::default()));
        let fake = Arc::new(FakeSecretsManager::start(clock.clone()).await.unwrap());
        let webhooks = Arc::new(MemoryWebhooks::new(clock.clone()));
        let created = webhooks.create(&new(), SECOND).await.unwrap();
        let secret = created.secret.with_webhook_id(created.webhook.id.as_str()).unwrap();
        fake.put(name, secret.to_stored().as_str()).unwrap();
        fake.let_rotate(name, true);
        let config = fake.config(Patience::WORKER).unwrap();
        let metrics = Arc::new(Metrics::for_flushes());
        let rotator = Rotator {
            vault: Arc::new(AwsVault::new(&config, &[name.to_owned()])),
            webhooks: webhooks.clone(),
            control: Arc::new(MemoryLedger::new()),
            clock: clock.clone(),
            random: Arc::new(SeededRandom::new(7)),
            limits: Limits::default(),
            strategy,
            metrics: metrics.clone(),
        };
        Self { rotator, name: name.to_owned(), fake, webhooks, metrics, clock }
    }

    /// The same, with another strategy.
    pub(crate) fn with(mut self, strategy: Strategy) -> Self {
        self.rotator.strategy = strategy;
        self
    }

    /// Begins the rotation of the events, as Secrets Manager does.
    pub(crate) fn begin(&self) {
        self.fake.begin_rotation_of(&self.name, VERSION).unwrap();
    }

    /// Fills the account with webhooks.
    pub(crate) async fn fill(&self) {
        while self.webhooks.create(&new(), SECOND).await.is_ok() {}
    }

    /// Hands an event over.
    pub(crate) async fn step(&self, event: &Value) -> Result<Report, StepError> {
        let deadline = after(self.clock.now(), 120 * SECOND);
        self.rotator.step(event, deadline).await
    }
}
