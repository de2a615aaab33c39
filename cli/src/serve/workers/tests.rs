use async_trait::async_trait;
use domain::entry::{Cause, StateName};
use domain::envelope::EnvelopeFormat;
use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::keyring::Keyring;
use domain::limits::Limits;
use domain::ports::{
    ApiError, Clock, ExtractJob, Jobs, ListPage, ListQuery, LoadedSecrets, PageRequest, ParentPage,
    PortError, Queue as _, Random, SecretSource, SubmitError, TaskSource,
};
use domain::request::JobRequest;
use domain::signature::preset::Preset;
use domain::task::Task;
use domain::testing::{
    ManualClock, MemoryLedger, MemoryQueue, MemoryResults, MemoryWebhooks, ScriptedJobs,
    SeededRandom, extract_answer,
};
use domain::tick::Rules;
use telemetry::Metrics;

use super::*;
use crate::pipeline::Pipeline;
use crate::serve::{Complaints, ReceiverBounds, ServerSettings, Waiting};

/// The platform, but for one job: a look at it panics, or its row cannot be read.
struct Cursed {
    jobs: ScriptedJobs,
    panics_at: Option<JobId>,
}

#[async_trait]
impl Jobs for Cursed {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        assert!(self.panics_at.as_ref() != Some(job_id), "a planted panic");
        self.jobs.extract(job_id, within).await
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.jobs.parent(key, page, within).await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        self.jobs.submit(request, within).await
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        self.jobs.list(kind, query, within).await
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.jobs.probe(within).await
    }
}

struct Source(Arc<MemoryQueue>);

#[async_trait]
impl TaskSource for Source {
    async fn receive(&self, limit: u32, hold: Duration) -> Result<Vec<HeldTask>, PortError> {
        self.0.receive(limit, hold).await
    }

    async fn acknowledge(&self, held: &HeldTask) -> Result<(), PortError> {
        self.0.acknowledge(held).await
    }
}

#[async_trait]
impl Waiting for Source {
    async fn wait(&self, _: Duration) {
        tokio::task::yield_now().await;
    }

    async fn remove_expired(&self) -> Result<u64, PortError> {
        Ok(0)
    }
}

struct NoSecrets;

#[async_trait]
impl SecretSource for NoSecrets {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        Ok(LoadedSecrets::default())
    }
}

struct Site {
    server: Arc<Server>,
    ledger: Arc<MemoryLedger>,
    queue: Arc<MemoryQueue>,
    keys: Vec<JobKey>,
}

impl Site {
    /// Three announced jobs, all completed at the platform; a look at the second may panic.
    async fn new(second_panics: bool) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let random: Arc<dyn Random> = Arc::new(SeededRandom::new(1));
        let ledger = Arc::new(MemoryLedger::new());
        let queue = Arc::new(MemoryQueue::new(Arc::clone(&clock)));
        let jobs = ScriptedJobs::new(Arc::clone(&clock));
        let keys: Vec<_> = ["j1", "j2", "j3"]
            .into_iter()
            .map(|id| JobKey::new(Kind::Extract, JobId::parse(id).unwrap()))
            .collect();
        for key in &keys {
            let answer = extract_answer(&key.job_id, JobStatus::Completed);
            jobs.answer_extract(&key.job_id, Ok(answer));
        }
        let panics_at = second_panics.then(|| keys[1].job_id.clone());
        let limits = Limits::default();
        let scheme = Preset::Geonode.scheme().unwrap();
        let pipeline = Pipeline {
            ledger: Arc::clone(&ledger) as _,
            queue: Arc::clone(&queue) as _,
            jobs: Arc::new(Cursed { jobs, panics_at }),
            results: Arc::new(MemoryResults::new()),
            clock,
            random,
            limits: limits.clone(),
            pauses: Arc::default(),
            looks: Arc::default(),
        };
        for key in &keys {
            let ports = pipeline.ports().announcing();
            domain::announce::announce(ports, key, Cause::Delivery, None).await.unwrap();
        }
        let server = Server {
            webhooks: Arc::new(MemoryWebhooks::new(Arc::clone(&pipeline.clock))),
            pipeline,
            source: Arc::new(Source(Arc::clone(&queue))),
            keyring: Arc::new(Keyring::new(Arc::new(NoSecrets), scheme, &limits)),
            format: EnvelopeFormat::default(),
            settings: ServerSettings {
                path: "/webhook".to_owned(),
                workers: 2,
                hold: Duration::from_secs(90),
                tick: Duration::from_secs(5),
                upkeep: Rules::default(),
                bounds: ReceiverBounds::default(),
            },
            metrics: Arc::new(Metrics::for_scrapes()),
            complaints: Complaints::untold(),
        };
        Self { server: Arc::new(server), ledger, queue, keys }
    }

    /// Runs the pool until so many tasks were worked, whatever came of them.
    async fn work(&self, tasks: u64) {
        let (stop, stopped) = watch::channel(false);
        let pool = tokio::spawn(run(Arc::clone(&self.server), stopped));
        let worked = || self.server.metrics.counts().values().sum::<u64>();
        while worked() < tasks {
            tokio::task::yield_now().await;
        }
        stop.send(true).unwrap();
        pool.await.unwrap();
    }

    fn states(&self) -> Vec<StateName> {
        self.keys.iter().map(|key| self.ledger.entry(key).unwrap().state.name()).collect()
    }

    fn counted(&self, counter: Counter) -> u64 {
        self.server.metrics.read(counter)
    }
}

const ONE_LEFT: [StateName; 3] = [StateName::Stored, StateName::Received, StateName::Stored];

/// WK-03: a panic in one task is its alone; the others are stored, and it comes again.
#[tokio::test]
async fn a_panic_costs_its_own_task_only() {
    let site = Site::new(true).await;
    site.work(3).await;
    assert_eq!(site.states(), ONE_LEFT);
    assert_eq!(site.counted(Counter::TasksPanicked), 1);
    assert_eq!(site.queue.tasks(), [Task { key: site.keys[1].clone() }]);
}

/// WK-02: an unexpected error leaves exactly its own task in the queue.
#[tokio::test]
async fn an_unexpected_error_leaves_its_own_task_in_the_queue() {
    let site = Site::new(false).await;
    assert!(site.ledger.corrupt(&site.keys[1]));
    site.work(3).await;
    assert_eq!(site.counted(Counter::TasksFailed), 1);
    assert_eq!(site.counted(Counter::JobsStored), 2);
    assert_eq!(site.queue.tasks(), [Task { key: site.keys[1].clone() }]);
}

/// A task for a job that the ledger does not know is done with, and counted.
#[tokio::test]
async fn a_task_for_an_unknown_job_is_done_with() {
    let site = Site::new(false).await;
    let key = JobKey::new(Kind::Extract, JobId::parse("stranger").unwrap());
    site.queue.send(&Task { key }, Duration::ZERO).await.unwrap();
    site.work(4).await;
    assert_eq!(site.counted(Counter::TasksUnknown), 1);
    assert_eq!(site.queue.depth(), 0);
}
