use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::entry::{Cause, Entry, Link};
use domain::envelope::{EnvelopeFormat, EventType};
use domain::intent::Intent;
use domain::job::{JobId, JobKey, Kind};
use domain::keyring::Keyring;
use domain::limits::{Limits, Policies};
use domain::looks::LookRate;
use domain::pause::Pauses;
use domain::ports::{
    Clock, EntryFilter, Expected, Ledger, NewWebhook, PortError, Queue, TaskSource, WebhookId,
    Webhooks as _, Written,
};
use domain::receive::{ReceivePorts, receive};
use domain::request::{FetchOptions, JobRequest};
use domain::signature::preset::Preset;
use domain::signature::secret::Secret;
use domain::signature::sign::sign;
use domain::steps::Ports;
use domain::sweep::sweep;
use domain::task::Task;
use domain::testing::{
    ManualClock, MemoryResults, MemorySecrets, MemoryWebhooks, ScriptedJobs, SeededRandom,
};
use domain::tick::{Part, Rules, Term, TickPorts, TickReport, tick};
use domain::time::{Timestamp, after};
use domain::work::work;

use super::end::{End, standing};
use super::process::{Brief, Ended, Process, Still};
use crate::faulty::{
    FaultPlan, FaultyJobs, FaultyLedger, FaultyQueue, FaultyResults, FaultyWebhooks,
};

/// The signing secret of every delivery.
pub const SECRET: &str = "test-secret-1";
/// Rounds of [`World::settle`] before something is called endless.
const ROUNDS_MAX: u32 = 200;
/// Rows read or swept at once.
const PAGE: u32 = 100;
/// Pages read at most.
const PAGES_MAX: usize = 100;
const MINUTE: Duration = Duration::from_mins(1);

/// A ledger and a queue that are tried, and the rest of the world in memory.
pub struct World<Q> {
    /// The time of all.
    pub clock: Arc<ManualClock>,
    /// The platform, as a script.
    pub jobs: Arc<ScriptedJobs>,
    /// What is stored.
    pub results: Arc<MemoryResults>,
    pub(super) ledger: Arc<dyn Ledger>,
    pub(crate) limits: Limits,
    queue: Arc<Q>,
    random: SeededRandom,
    /// Those of whoever heals; each faulty process has its own.
    pauses: Pauses,
    looks: LookRate,
    kept: Vec<Box<dyn Any>>,
}

impl<Q> World<Q> {
    /// A world over an empty ledger and an empty queue.
    pub fn new(clock: Arc<ManualClock>, ledger: Arc<dyn Ledger>, queue: Arc<Q>) -> Self {
        let policies = Policies { resubmit_failed_items: true, ..Policies::default() };
        Self {
            jobs: Arc::new(ScriptedJobs::new(clock.clone())),
            results: Arc::new(MemoryResults::new()),
            limits: Limits { spend_per_day: Some(10), policies, ..Limits::default() },
            random: SeededRandom::new(7),
            clock,
            ledger,
            queue,
            pauses: Pauses::default(),
            looks: LookRate::default(),
            kept: Vec::new(),
        }
    }

    /// Keeps something, such as a temporary folder, as long as the world stands.
    #[must_use]
    pub fn keeping(mut self, keep: impl Any) -> Self {
        self.kept.push(Box::new(keep));
        self
    }

    /// All rows.
    pub(crate) async fn entries(&self) -> Vec<Entry> {
        let mut rows = Vec::new();
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let filter = EntryFilter::default();
            let page = self.ledger.list_entries(&filter, after.as_ref(), PAGE).await.unwrap();
            assert_eq!(page.unreadable, [""; 0]);
            rows.extend(page.items);
            after = page.next;
            if after.is_none() {
                return rows;
            }
        }
        panic!("the pages never end");
    }

    /// The first intents; no case makes more.
    pub(crate) async fn intents(&self) -> Vec<Intent> {
        let page = self.ledger.list_intents(None, None, PAGE).await.unwrap();
        assert_eq!(page.unreadable, [""; 0]);
        page.items
    }

    /// The jobs that submissions made.
    pub(crate) fn made(&self) -> Vec<String> {
        let kinds = Kind::ALL.into_iter();
        kinds.flat_map(|kind| self.jobs.listed(kind)).map(|id| id.to_string()).collect()
    }

    /// Lays a row down where none is.
    pub(crate) async fn lay(&self, entry: &Entry) {
        let written = self.ledger.write(entry, Expected::Absent(self.clock.now())).await.unwrap();
        assert_eq!(written, Written::Done, "{}", entry.key);
    }

    /// A row for a job that was submitted from here.
    pub(crate) fn expected(&self, key: &JobKey) -> Entry {
        let request = JobRequest::extract("https://example.com/page", FetchOptions::default());
        let link = Link {
            submission: "s-1".to_owned(),
            lineage: key.job_id.clone(),
            attempt: 0,
            base: 0,
            request: request.ok().filter(|_| key.kind == Kind::Extract),
            reference: Some("my-ref".to_owned()),
        };
        Entry::expected(key.clone(), Some(link), Cause::Submit, self.clock.now(), &self.limits)
    }

    /// All objects as they lie there.
    pub(crate) fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        let keys = self.results.keys();
        keys.into_iter().filter_map(|key| Some((key.clone(), self.results.bytes(&key)?))).collect()
    }
}

impl<Q: Queue + TaskSource + 'static> World<Q> {
    /// A receiver gets one delivery, by this ledger and with these faults; its status.
    pub async fn deliver(
        &self,
        job: &JobKey,
        ledger: &Arc<dyn Ledger>,
        plan: &Arc<FaultPlan>,
    ) -> Ended<u16> {
        let process = Process::new(plan, &self.clock);
        let clock = Still(self.clock.clone());
        let ledger = FaultyLedger::new(ledger.clone(), process.surroundings());
        let queue = FaultyQueue::new(self.queue.clone(), process.surroundings());
        let ports = self.ports(&ledger, &queue, &clock);
        process.run_to_the_kill(Box::pin(self.receive(ports.announcing(), job))).await
    }

    /// A receiver without faults gets one delivery by this ledger itself; its status.
    pub async fn deliver_well(&self, job: &JobKey, ledger: &dyn Ledger) -> u16 {
        let clock = Still(self.clock.clone());
        let ports = self.ports(ledger, &*self.queue, &clock);
        self.receive(ports.announcing(), job).await
    }

    async fn receive(&self, announcing: domain::announce::AnnouncePorts<'_>, job: &JobKey) -> u16 {
        let scheme = Preset::Geonode.scheme().expect("a preset is valid");
        let secret = || Secret::new(SECRET).expect("a secret that is long enough");
        let source = Arc::new(MemorySecrets::new(vec![secret()]));
        let keyring = Keyring::new(source, scheme.clone(), &self.limits);
        let (kind, id) = (job.kind, &job.job_id);
        let body = format!(r#"{{"job_id":"{id}","event_type":"{kind}_completed","id":"d-1"}}"#);
        let signed = sign(&scheme, &secret(), body.as_bytes(), "id", self.clock.now());
        let headers: Vec<_> = signed
            .expect("signed")
            .into_iter()
            .map(|(name, text)| (name, text.into_bytes()))
            .collect();
        let format = EnvelopeFormat::default();
        let ports = ReceivePorts { announcing, keyring: &keyring, format: &format };
        receive(ports, &headers, body.as_bytes()).await.status()
    }

    /// A worker gets one task, with these faults.
    pub(crate) async fn work(&self, job: &JobKey, plan: &Arc<FaultPlan>) {
        let task = Task { key: job.clone() };
        // Whatever came of it: the task comes again, and others look as well.
        drop(self.process(plan, async |ports| work(ports, &task).await).await);
    }

    /// A process does this, with these faults among its calls.
    pub(crate) async fn process<T>(
        &self,
        plan: &Arc<FaultPlan>,
        act: impl AsyncFnOnce(Ports<'_>) -> T,
    ) -> Ended<T> {
        let none = Arc::new(MemoryWebhooks::new(self.clock.clone()));
        self.process_with(&none, plan, async |ports| act(ports.steps).await).await
    }

    /// The same, with these webhooks of the account.
    pub(crate) async fn process_with<T>(
        &self,
        webhooks: &Arc<MemoryWebhooks>,
        plan: &Arc<FaultPlan>,
        act: impl AsyncFnOnce(TickPorts<'_>) -> T,
    ) -> Ended<T> {
        let process = Process::new(plan, &self.clock);
        let clock = Brief(self.clock.clone());
        let ledger = FaultyLedger::new(self.ledger.clone(), process.surroundings());
        let queue = FaultyQueue::new(self.queue.clone(), process.surroundings());
        let jobs = FaultyJobs::new(self.jobs.clone(), process.surroundings());
        let results = FaultyResults::new(self.results.clone(), process.surroundings());
        let webhooks = FaultyWebhooks::new(webhooks.clone(), process.surroundings());
        let (pauses, looks) = (Pauses::default(), LookRate::default());
        let steps = Ports {
            jobs: &jobs,
            results: &results,
            pauses: &pauses,
            looks: &looks,
            ..self.ports(&ledger, &queue, &clock)
        };
        process.run_to_the_kill(Box::pin(act(TickPorts { steps, webhooks: &webhooks }))).await
    }

    /// The account's webhooks, one of them for the event of extract jobs, and its id.
    pub(crate) async fn subscribed(&self) -> (Arc<MemoryWebhooks>, WebhookId) {
        let webhooks = Arc::new(MemoryWebhooks::new(self.clock.clone()));
        let id = self.subscribe(&webhooks, None).await;
        (webhooks, id)
    }

    /// One more webhook for the event of extract jobs.
    pub(crate) async fn subscribe(
        &self,
        webhooks: &MemoryWebhooks,
        description: Option<String>,
    ) -> WebhookId {
        let new = NewWebhook {
            url: "https://example.com/webhook".to_owned(),
            event_type: EventType::ExtractCompleted,
            description,
        };
        webhooks.create(&new, Duration::from_secs(1)).await.unwrap().webhook.id
    }

    /// A scheduler runs once, with these faults.
    pub(crate) async fn tick(
        &self,
        webhooks: &Arc<MemoryWebhooks>,
        plan: &Arc<FaultPlan>,
    ) -> Ended<Result<TickReport, PortError>> {
        let until = after(self.clock.now(), MINUTE);
        let term = Term { until, claimed_until: Some(until) };
        let (rules, mut first) = (Rules::default(), Part::default());
        let ticked = async |ports: TickPorts<'_>| tick(ports, &rules, &mut first, term).await;
        self.process_with(webhooks, plan, ticked).await
    }

    /// Works, by this ledger itself, a task for a job.
    ///
    /// # Errors
    /// Those of the ports.
    pub async fn work_well(&self, job: &JobKey, ledger: &dyn Ledger) -> Result<(), PortError> {
        let clock = Still(self.clock.clone());
        let ports = self.ports(ledger, &*self.queue, &clock);
        work(ports, &Task { key: job.clone() }).await.map(drop)
    }

    /// Runs tasks, sweeps and the clock until every row is terminal and every intent is closed.
    pub async fn settle(&self) {
        let clock = Still(self.clock.clone());
        let ledger = self.ledger.clone();
        for _ in 0..ROUNDS_MAX {
            let ports = self.ports(&*ledger, &*self.queue, &clock);
            let worked = self.work_queue(ports).await;
            let rows = self.entries().await;
            let is_open = rows.iter().any(|entry| !entry.state.is_terminal());
            let intents = self.intents().await;
            if worked == 0 && !is_open && !intents.iter().any(|intent| intent.state.is_open()) {
                return;
            }
            let rows = rows.iter().filter_map(|entry| entry.not_before.max(entry.due_at));
            let next = rows.chain(intents.iter().filter_map(|intent| intent.due_at)).min();
            self.clock.advance(MINUTE);
            if let Some(next) = next {
                self.clock.advance_to(next);
            }
            sweep(ports, PAGE).await.unwrap();
        }
        let rows: Vec<_> = self.entries().await.iter().map(standing).collect();
        panic!("never quiet: {rows:?}");
    }

    /// Takes all tasks that are visible, and counts them.
    pub(crate) async fn tasks(&self) -> usize {
        self.queue.receive(PAGE, MINUTE).await.unwrap().len()
    }

    /// Works all tasks that are visible.
    pub(crate) async fn work_off(&self) {
        let clock = Still(self.clock.clone());
        let ledger = self.ledger.clone();
        for _ in 0..ROUNDS_MAX {
            if self.work_queue(self.ports(&*ledger, &*self.queue, &clock)).await == 0 {
                return;
            }
        }
        panic!("there is always one more task");
    }

    /// Takes all tasks that are visible away.
    pub(crate) async fn lose_tasks(&self) {
        for held in self.queue.receive(PAGE, MINUTE).await.unwrap() {
            self.queue.acknowledge(&held).await.unwrap();
        }
    }

    /// How the world stands now.
    pub async fn end(&self) -> End {
        End::of(self).await
    }

    async fn work_queue(&self, ports: Ports<'_>) -> usize {
        let held = self.queue.receive(10, MINUTE).await.unwrap();
        for held in &held {
            work(ports, &held.task).await.unwrap();
            self.queue.acknowledge(held).await.unwrap();
        }
        held.len()
    }

    fn ports<'a>(
        &'a self,
        ledger: &'a dyn Ledger,
        queue: &'a dyn Queue,
        clock: &'a dyn Clock,
    ) -> Ports<'a> {
        Ports {
            ledger,
            queue,
            jobs: &*self.jobs,
            results: &*self.results,
            clock,
            random: &self.random,
            limits: &self.limits,
            pauses: &self.pauses,
            looks: &self.looks,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn own_ledger(&self) -> Arc<dyn Ledger> {
        self.ledger.clone()
    }
}

pub(crate) fn key(kind: Kind, id: &str) -> JobKey {
    JobKey::new(kind, JobId::parse(id).unwrap())
}
