//! A receiver in this process: the real server over a real ledger, with nobody to work the tasks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::entry::Entry;
use domain::envelope::EnvelopeFormat;
use domain::job::{JobId, JobKey, Kind};
use domain::keyring::Keyring;
use domain::limits::Limits;
use domain::ports::{
    Clock, Entries as _, HeldTask, Inspection as _, LoadedSecrets, PortError, SecretSource,
    TaskSource,
};
use domain::signature::preset::Preset;
use domain::signature::scheme::Scheme;
use domain::signature::secret::Secret;
use domain::testing::{MemoryWebhooks, ScriptedJobs};
use domain::tick::Rules;
use domain::time::Timestamp;
use embedded::SqliteStore;
use gleaner::pipeline::Pipeline;
use gleaner::serve::{
    Complaints, Ended, Listeners, ReceiverBounds, Server, ServerSettings, Waiting,
};
use results::ObjectResults;
use system::{SystemClock, SystemRandom};
use telemetry::Metrics;
use tempfile::TempDir;
use testkit::faulty::{Fault, FaultPlan, FaultyLedger, FaultyQueue, Surroundings};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::http::SECRET;

/// What a receiver is made of, where tests differ.
pub(crate) struct Plan {
    pub(crate) path: &'static str,
    pub(crate) scheme: Scheme,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) bounds: ReceiverBounds,
    pub(crate) deadline: Duration,
    /// Which call of a port fails, counted from the server's start.
    pub(crate) fault: Option<(usize, Fault)>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A clock that stands still, while sleeps take their time.
pub(crate) struct Frozen(pub(crate) Timestamp);

#[async_trait]
impl Clock for Frozen {
    fn now(&self) -> Timestamp {
        self.0
    }

    async fn sleep(&self, duration: Duration) {
        SystemClock.sleep(duration).await;
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            path: "/webhook",
            scheme: Preset::Geonode.scheme().unwrap(),
            secrets: vec![Secret::new(SECRET).unwrap()],
            bounds: ReceiverBounds::default(),
            deadline: Duration::from_secs(5),
            fault: None,
            clock: Arc::new(SystemClock),
        }
    }
}

/// A running receiver.
pub(crate) struct Site {
    pub(crate) addr: SocketAddr,
    /// Where its metrics are read.
    pub(crate) metrics_addr: SocketAddr,
    pub(crate) store: SqliteStore,
    /// What fails, and the calls of ledger and queue.
    pub(crate) faults: Arc<FaultPlan>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Ended>,
    _dir: TempDir,
}

struct Fixed(Vec<Secret>);

#[async_trait]
impl SecretSource for Fixed {
    async fn load(&self) -> Result<LoadedSecrets, PortError> {
        Ok(self.0.clone().into())
    }
}

/// Gives no tasks, and says when a tick has ended.
struct Idle {
    store: SqliteStore,
    ticked: Arc<Notify>,
}

#[async_trait]
impl TaskSource for Idle {
    async fn receive(&self, limit: u32, hold: Duration) -> Result<Vec<HeldTask>, PortError> {
        self.store.receive(limit, hold).await
    }

    async fn acknowledge(&self, held: &HeldTask) -> Result<(), PortError> {
        self.store.acknowledge(held).await
    }
}

#[async_trait]
impl Waiting for Idle {
    async fn wait(&self, at_most: Duration) {
        SystemClock.sleep(at_most).await;
    }

    async fn count_waiting(&self) -> Result<Option<u64>, PortError> {
        self.store.count_waiting().await.map(Some)
    }

    async fn remove_expired(&self) -> Result<u64, PortError> {
        self.ticked.notify_one();
        Ok(0)
    }
}

impl Site {
    /// A receiver with the defaults.
    pub(crate) async fn new() -> Self {
        Self::with(Plan::default()).await
    }

    /// A receiver whose first tick has ended, so that each further call of the ports is a
    /// delivery's.
    pub(crate) async fn with(plan: Plan) -> Self {
        let dir = TempDir::new().unwrap();
        let clock = plan.clock;
        let file = dir.path().join("ledger.db");
        let store =
            SqliteStore::open(&file, Arc::clone(&clock), embedded::Settings::default()).unwrap();
        let faults = FaultPlan::of(plan.fault);
        let around = Surroundings::new(Arc::clone(&faults), Arc::clone(&clock));
        let limits = Limits { receive_deadline: plan.deadline, ..Limits::default() };
        let ticked = Arc::new(Notify::new());
        let server = Server {
            webhooks: Arc::new(MemoryWebhooks::new(Arc::clone(&clock))),
            pipeline: Pipeline {
                ledger: Arc::new(FaultyLedger::new(Arc::new(store.clone()), around.clone())),
                queue: Arc::new(FaultyQueue::new(Arc::new(store.clone()), around)),
                jobs: Arc::new(ScriptedJobs::new(Arc::clone(&clock))),
                results: Arc::new(ObjectResults::in_memory()),
                clock,
                random: Arc::new(SystemRandom),
                limits: limits.clone(),
                pauses: Arc::default(),
                looks: Arc::default(),
            },
            source: Arc::new(Idle { store: store.clone(), ticked: Arc::clone(&ticked) }),
            keyring: Arc::new(Keyring::new(Arc::new(Fixed(plan.secrets)), plan.scheme, &limits)),
            format: EnvelopeFormat::default(),
            settings: ServerSettings {
                path: plan.path.to_owned(),
                workers: 0,
                hold: Duration::from_mins(1),
                tick: Duration::from_hours(1),
                upkeep: Rules::default(),
                bounds: plan.bounds,
            },
            metrics: Arc::new(Metrics::for_scrapes()),
            complaints: Complaints::untold(),
        };
        let receiver = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let metrics = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = receiver.local_addr().unwrap();
        let metrics_addr = metrics.local_addr().unwrap();
        let listeners = Listeners { receiver: Some(receiver), metrics: Some(metrics) };
        let (stop, stopped) = oneshot::channel();
        let until = async move { drop(stopped.await) };
        let serving = tokio::spawn(server.serve(listeners, until));
        ticked.notified().await;
        Self { addr, metrics_addr, store, faults, stop, serving, _dir: dir }
    }

    /// The row of an extract job.
    pub(crate) async fn row(&self, job_id: &str) -> Option<Entry> {
        let key = JobKey { kind: Kind::Extract, job_id: JobId::parse(job_id).unwrap() };
        self.store.load(&key).await.unwrap()
    }

    /// Rows of the ledger, whatever their state.
    pub(crate) async fn rows(&self) -> u64 {
        self.store.count_entries().await.unwrap().values().sum()
    }

    /// Calls of one port's method since the start.
    pub(crate) fn calls(&self, name: &str) -> usize {
        self.faults.calls().iter().filter(|call| **call == name).count()
    }

    /// Stops it; it must have served until asked.
    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        assert_eq!(self.serving.await.unwrap(), Ended::Asked);
    }
}
