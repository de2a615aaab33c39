//! The embedded server: receiver, worker pool and sweep in one process.

mod account;
mod complaints;
pub(crate) mod connections;
mod receiver;
mod scrapes;
mod ticker;
mod workers;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use domain::envelope::EnvelopeFormat;
use domain::keyring::Keyring;
use domain::ports::{Clock as _, PortError, TaskSource, Webhooks};
use domain::task::Task;
use domain::tick::Rules;
use domain::time::Timestamp;
use telemetry::{Counter, Metrics};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use account::{KeyPlace, watch as watch_account};
pub use complaints::Complaints;
pub use receiver::ReceiverBounds;

use crate::pipeline::Pipeline;
use system::SystemClock;

/// Longest time that open deliveries and tasks get to finish when the server stops.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// What a server is made of.
pub struct Server {
    /// The adapters.
    pub pipeline: Pipeline,
    /// The platform's webhooks and their delivery logs.
    pub webhooks: Arc<dyn Webhooks>,
    /// Where the workers take tasks from.
    pub source: Arc<dyn Waiting>,
    /// The signing secrets.
    pub keyring: Arc<Keyring>,
    /// Where the ids are in a body.
    pub format: EnvelopeFormat,
    /// How much it does at once.
    pub settings: ServerSettings,
    /// What it counts.
    pub metrics: Arc<Metrics>,
    /// What an operator is told of deliveries that are not accepted.
    pub complaints: Complaints,
}

/// How much a server does at once.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Path of the receiver.
    pub path: String,
    /// Tasks worked at once.
    pub workers: u32,
    /// How long a task is hidden while it is worked.
    pub hold: Duration,
    /// Pause between two ticks.
    pub tick: Duration,
    /// What a tick does, and how often.
    pub upkeep: Rules,
    /// Bounds of the receiver.
    pub bounds: ReceiverBounds,
}

/// A task source that can be waited for.
#[async_trait::async_trait]
pub trait Waiting: TaskSource {
    /// Returns when a task may be visible, or after `at_most`.
    async fn wait(&self, at_most: Duration);

    /// How many tasks are visible and wait for a worker, counted within a bound; `None` if that is
    /// not known.
    async fn count_waiting(&self) -> Result<Option<u64>, PortError> {
        Ok(None)
    }

    /// When the task that waits longest became visible, or will be; `None` while there is none.
    async fn first_visible_at(&self) -> Result<Option<Timestamp>, PortError> {
        Ok(None)
    }

    /// Removes rows whose time has passed, and says how many.
    async fn remove_expired(&self) -> Result<u64, PortError>;

    /// Tasks that a former server held when it ended.
    async fn held_tasks(&self) -> Result<Vec<Task>, PortError> {
        Ok(Vec::new())
    }

    /// Ends the holds of these tasks.
    async fn release_held(&self) -> Result<u64, PortError> {
        Ok(0)
    }
}

#[async_trait::async_trait]
impl Waiting for embedded::SqliteStore {
    async fn wait(&self, at_most: Duration) {
        if self.wait_for_task(at_most).await.is_err() {
            // The store is in trouble; asking again at once would only add to it.
            SystemClock.sleep(at_most).await;
        }
    }

    async fn count_waiting(&self) -> Result<Option<u64>, PortError> {
        Self::count_waiting(self).await.map(Some)
    }

    async fn first_visible_at(&self) -> Result<Option<Timestamp>, PortError> {
        self.next_visible_at().await
    }

    async fn remove_expired(&self) -> Result<u64, PortError> {
        Self::remove_expired(self).await
    }

    async fn held_tasks(&self) -> Result<Vec<Task>, PortError> {
        Self::held_tasks(self).await
    }

    async fn release_held(&self) -> Result<u64, PortError> {
        Self::release_held(self).await
    }
}

/// Where a server listens.
#[derive(Debug, Default)]
pub struct Listeners {
    /// For deliveries; without it nothing is received, and polling finds the jobs.
    pub receiver: Option<TcpListener>,
    /// For scrapes of the metrics.
    pub metrics: Option<TcpListener>,
}

impl From<TcpListener> for Listeners {
    /// For deliveries alone.
    fn from(receiver: TcpListener) -> Self {
        Self { receiver: Some(receiver), metrics: None }
    }
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// As it was asked to.
    Asked,
    /// A part of the server ended by itself, which is a bug.
    Broken,
}

impl Server {
    /// Serves until `until` is ready, then lets what is open finish for a while.
    pub async fn serve(
        self,
        listeners: impl Into<Listeners>,
        until: impl Future<Output = ()>,
    ) -> Ended {
        let server = Arc::new(self);
        let listeners = listeners.into();
        server.metrics.count(Counter::Starts);
        let (stop, stopped) = watch::channel(false);
        let mut parts = JoinSet::new();
        if let Some(listener) = listeners.receiver {
            parts.spawn(receiver::run(Arc::clone(&server), listener, stopped.clone()));
        }
        if let Some(listener) = listeners.metrics {
            parts.spawn(scrapes::run(Arc::clone(&server), listener, stopped.clone()));
        }
        parts.spawn(workers::run(Arc::clone(&server), stopped.clone()));
        parts.spawn(ticker::run(Arc::clone(&server), stopped));
        let ended = tokio::select! {
            biased;
            () = until => Ended::Asked,
            _ = parts.join_next() => {
                tracing::error!("a part of the server ended by itself");
                Ended::Broken
            }
        };
        tracing::info!("stopping; open deliveries and tasks may finish");
        // Receivers of the signal may be gone already.
        let _ = stop.send(true);
        let finished = async {
            while let Some(part) = parts.join_next().await {
                if let Err(error) = part {
                    tracing::error!(%error, "a part of the server ended badly");
                }
            }
        };
        if tokio::time::timeout(STOP_GRACE, finished).await.is_err() {
            tracing::warn!("stopped before everything open had finished; the sweep takes it up");
        }
        server.complaints.tell_rest(server.pipeline.clock.now());
        ended
    }
}

/// Resolves when the signal says stop, or when nobody can say so any more.
async fn stopped(signal: &mut watch::Receiver<bool>) {
    // An error means that the server is gone, which is a stop as well.
    let _ = signal.wait_for(|stop| *stop).await;
}
