use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::announce::AnnouncePorts;
use domain::envelope::{EnvelopeFormat, EventType};
use domain::job::Kind;
use domain::keyring::Keyring;
use domain::limits::Limits;
use domain::looks::LookRate;
use domain::pause::Pauses;
use domain::ports::{
    ApiError, Clock as _, CreatedWebhook, DeliveryPage, Jobs as _, NewWebhook, SlotId, SubmitError,
    Webhook, WebhookChange, WebhookId, WebhookPage, Webhooks,
};
use domain::receive::{ReceivePorts, receive};
use domain::request::{FetchOptions, JobRequest};
use domain::rotate::RotatePorts;
use domain::signature::preset::Preset;
use domain::signature::secret::Secret;
use domain::steps::Ports;
use domain::testing::{
    EventClock, MemoryLedger, MemoryQueue, MemoryResults, MemoryVault, SeededRandom,
};
use domain::tick::TickPorts;
use domain::time::{Timestamp, between};
use simulator::{AttemptOutcome, Config};
use testkit::platform::{Delivery, PlatformJobs};

pub(crate) const URL: &str = "https://gleaner.example/webhook";
/// Receivers that keep secrets of their own, as environments of a function do.
const RECEIVERS: usize = 3;
/// Pause between two looks for deliveries that are due, while many are and later.
const LOOK: Duration = Duration::from_millis(10);
const LATER_LOOK: Duration = Duration::from_millis(250);

/// A deployment with one subscription, and the platform.
pub(crate) struct Site {
    pub(crate) clock: Arc<EventClock>,
    pub(crate) platform: Arc<PlatformJobs>,
    pub(crate) vault: Arc<MemoryVault>,
    pub(crate) ledger: MemoryLedger,
    pub(crate) limits: Limits,
    pub(crate) slot: SlotId,
    webhooks: Distant,
    queue: MemoryQueue,
    results: MemoryResults,
    random: SeededRandom,
    pauses: Pauses,
    looks: LookRate,
    receivers: Vec<Keyring>,
    pub(crate) tally: Mutex<Tally>,
}

/// What became of deliveries.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Answers to genuine deliveries, by status.
    pub(crate) answers: BTreeMap<u16, u32>,
    /// Jobs that a delivery told of.
    pub(crate) told: BTreeSet<String>,
    /// Jobs of which a delivery was refused.
    pub(crate) refused: BTreeSet<String>,
    /// When the last one was.
    pub(crate) refused_at: Option<Timestamp>,
}

impl Site {
    /// A site whose calls of the webhooks' API take this long each way.
    pub(crate) fn new(seed: u64, latency: Duration) -> Self {
        let clock = Arc::new(EventClock::default());
        let config = Config {
            seed,
            job_median_secs: 2.0,
            work_concurrency_limit: 100_000,
            result_bytes: 64,
            ..Config::default()
        };
        let platform = Arc::new(PlatformJobs::new(config, clock.clone()).unwrap());
        let vault = Arc::new(MemoryVault::new(clock.clone()));
        let new = NewWebhook {
            url: URL.to_owned(),
            event_type: EventType::completed(Kind::Extract),
            description: None,
        };
        let created = clock.run(platform.create(&new, LOOK)).unwrap().unwrap();
        let secret = created.secret.with_webhook_id(created.webhook.id.as_str()).unwrap();
        let slot = vault.make("extract");
        vault.type_in(&slot, &secret.to_stored());
        let limits = Limits::default();
        let scheme = || Preset::Geonode.scheme().unwrap();
        let keyring = |_| Keyring::new(vault.clone(), scheme(), &limits);
        Self {
            receivers: (0..RECEIVERS).map(keyring).collect(),
            webhooks: Distant { platform: platform.clone(), clock: clock.clone(), latency },
            queue: MemoryQueue::new(clock.clone()),
            ledger: MemoryLedger::new(),
            results: MemoryResults::new(),
            random: SeededRandom::new(seed),
            pauses: Pauses::default(),
            looks: LookRate::default(),
            tally: Mutex::default(),
            clock,
            platform,
            vault,
            limits,
            slot,
        }
    }

    /// Submits jobs at a rate, as long as it lasts.
    pub(crate) async fn submit(&self, per_second: u32, lasts: Duration) {
        let pause = Duration::from_secs(1) / per_second;
        let jobs = lasts.as_millis() / pause.as_millis();
        for number in 0..jobs {
            let url = format!("https://example.com/{number}");
            let request = JobRequest::extract(&url, FetchOptions::default()).unwrap();
            self.platform.submit(&request, self.limits.call_timeout).await.unwrap();
            self.clock.sleep(pause).await;
        }
    }

    /// Hands deliveries over as they fall due, first closely and then as long as it lasts.
    pub(crate) async fn deliver(&self, closely: Duration, lasts: Duration) {
        let began = self.clock.now();
        let mut turn = 0;
        loop {
            let passed = between(began, self.clock.now());
            if passed >= lasts {
                return;
            }
            for delivery in self.platform.due_deliveries() {
                turn += 1;
                let status = self.receive(turn, &delivery.headers, &delivery.body).await;
                self.platform.report(&delivery, AttemptOutcome::Answered(status));
                self.count(&delivery, status);
            }
            self.clock.sleep(if passed < closely { LOOK } else { LATER_LOOK }).await;
        }
    }

    /// Forged deliveries, at each receiver, as long as it lasts: each makes a receiver look at the
    /// secrets as soon as it may.
    pub(crate) async fn forge(&self, lasts: Duration) {
        let scheme = Preset::Geonode.scheme().unwrap();
        let stranger = Secret::new("a-strangers-secret").unwrap();
        let body = br#"{"event":"extract_completed","data":{"job_id":"forged"}}"#;
        for _ in 0..lasts.as_secs() {
            let now = self.clock.now();
            let signed = domain::signature::sign::sign(&scheme, &stranger, body, "id", now);
            let headers: Vec<_> =
                signed.unwrap().into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
            for turn in 0..RECEIVERS {
                assert_eq!(self.receive(turn, &headers, body).await, 401);
            }
            self.clock.sleep(Duration::from_secs(1)).await;
        }
    }

    async fn receive(&self, turn: usize, headers: &[(String, Vec<u8>)], body: &[u8]) -> u16 {
        let keyring = &self.receivers[turn % RECEIVERS];
        let (format, headers) = (EnvelopeFormat::default(), headers.to_vec());
        let ports = ReceivePorts { announcing: self.announcing(), keyring, format: &format };
        receive(ports, &headers, body).await.status()
    }

    fn count(&self, delivery: &Delivery, status: u16) {
        let body: serde_json::Value = serde_json::from_slice(&delivery.body).unwrap();
        let job = body["data"]["job_id"].as_str().unwrap().to_owned();
        let mut tally = self.tally.lock().unwrap();
        *tally.answers.entry(status).or_default() += 1;
        if status == 202 {
            tally.told.insert(job);
        } else {
            tally.refused.insert(job);
            tally.refused_at = Some(self.clock.now());
        }
    }

    fn announcing(&self) -> AnnouncePorts<'_> {
        self.steps().announcing()
    }

    fn steps(&self) -> Ports<'_> {
        Ports {
            ledger: &self.ledger,
            queue: &self.queue,
            jobs: &*self.platform,
            results: &self.results,
            clock: &*self.clock,
            random: &self.random,
            limits: &self.limits,
            pauses: &self.pauses,
            looks: &self.looks,
        }
    }

    pub(crate) fn rotating(&self) -> RotatePorts<'_> {
        RotatePorts {
            vault: &*self.vault,
            webhooks: &self.webhooks,
            control: &self.ledger,
            clock: &*self.clock,
            random: &self.random,
            limits: &self.limits,
        }
    }

    pub(crate) fn ticking(&self) -> TickPorts<'_> {
        TickPorts { steps: self.steps(), webhooks: &*self.platform }
    }

    /// The webhooks that the platform has.
    pub(crate) fn there_are(&self) -> Vec<Webhook> {
        let listing = Webhooks::list(&*self.platform, 1, 100, self.limits.call_timeout);
        self.clock.run(listing).unwrap().unwrap().webhooks
    }

    /// The jobs that the ledger knows.
    pub(crate) fn known(&self) -> BTreeSet<String> {
        let rows = self.ledger.entries();
        rows.iter().map(|row| row.key.job_id.as_str().to_owned()).collect()
    }

    /// The jobs that the platform finished.
    pub(crate) fn finished(&self) -> BTreeSet<String> {
        let books = self.platform.books_in(simulator::Detail::Jobs);
        let jobs = books["jobs"].as_array().expect("the books list jobs");
        let ended = jobs.iter().filter(|job| job["status"] != "processing");
        let ended = ended.filter(|job| job["status"] != "queued");
        ended.map(|job| job["job_id"].as_str().unwrap().to_owned()).collect()
    }
}

/// The platform, with its distance: what a call does is done after half of the time that it takes.
struct Distant {
    platform: Arc<PlatformJobs>,
    clock: Arc<EventClock>,
    latency: Duration,
}

impl Distant {
    async fn travel<T>(&self, call: impl Future<Output = T>) -> T {
        self.clock.sleep(self.latency).await;
        let answer = call.await;
        self.clock.sleep(self.latency).await;
        answer
    }
}

#[async_trait]
impl Webhooks for Distant {
    async fn create(
        &self,
        new: &NewWebhook,
        within: Duration,
    ) -> Result<CreatedWebhook, SubmitError> {
        self.travel(self.platform.create(new, within)).await
    }

    async fn list(
        &self,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<WebhookPage, ApiError> {
        self.travel(Webhooks::list(&*self.platform, page, page_size, within)).await
    }

    async fn get(&self, id: &WebhookId, within: Duration) -> Result<Webhook, ApiError> {
        self.travel(self.platform.get(id, within)).await
    }

    async fn update(
        &self,
        id: &WebhookId,
        change: &WebhookChange,
        within: Duration,
    ) -> Result<Webhook, ApiError> {
        self.travel(self.platform.update(id, change, within)).await
    }

    async fn delete(&self, id: &WebhookId, within: Duration) -> Result<(), ApiError> {
        self.travel(self.platform.delete(id, within)).await
    }

    async fn rotate_secret(&self, id: &WebhookId, within: Duration) -> Result<Secret, SubmitError> {
        self.travel(self.platform.rotate_secret(id, within)).await
    }

    async fn deliveries(
        &self,
        id: &WebhookId,
        page: u32,
        page_size: u32,
        within: Duration,
    ) -> Result<DeliveryPage, ApiError> {
        self.travel(self.platform.deliveries(id, page, page_size, within)).await
    }
}
