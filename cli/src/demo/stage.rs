//! What a demo works with: adapters over its folder, webhooks registered, a port, and the server,
//! in this process or in one of its own.

use std::sync::Arc;
use std::time::Duration;

use domain::envelope::EventType;
use domain::job::Kind;
use domain::keyring::Keyring;
use domain::limits::Limits;
use domain::ports::{Clock, NewWebhook, Webhooks};
use domain::signature::preset::Preset;
use embedded::SqliteStore;
use embedded::secrets::{LocalSecrets, SecretPlace, SecretsFile, StoredSecret};
use results::ObjectResults;
use scraper_api::ScraperApi;
use system::{SystemClock, SystemRandom};
use telemetry::Metrics;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::folder::{Folder, Settings};
use super::process::{Process, listen};
use super::{DemoOptions, Tamper, limits, platform};
use crate::error::CliError;
use crate::exit::Exit;
use crate::pipeline::Pipeline;
use crate::serve::{Complaints, Ended, ReceiverBounds, Server, ServerSettings, Waiting};
use crate::subscribing::subscribe;

/// Path of the receiver, as `serve` has it by default.
const PATH: &str = "/webhook";
/// Tasks that the server works at once.
const WORKERS: u32 = 32;
/// Pause between two ticks of the server.
const TICK: Duration = Duration::from_millis(500);

/// The demo before its server runs.
pub(super) struct Stage {
    pub(super) pipeline: Pipeline,
    pub(super) metrics: Arc<Metrics>,
    pub(super) folder: Arc<Folder>,
    store: SqliteStore,
    listener: TcpListener,
}

/// The server while it runs.
pub(super) enum Serving {
    /// In this process.
    Here { stop: watch::Sender<bool>, task: JoinHandle<Ended> },
    /// As a process of its own, which can be killed.
    Process(Process),
}

impl Stage {
    /// Opens the folder, and registers the webhooks.
    pub(super) async fn set(
        options: &DemoOptions,
        api: &Arc<ScraperApi>,
        api_url: &str,
        tamper: &dyn Tamper,
    ) -> Result<Self, CliError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = SqliteStore::open(
            &options.dir.join("ledger.db"),
            Arc::clone(&clock),
            embedded::Settings::default(),
        )
        .map_err(|error| CliError::new(Exit::System, "cannot open the ledger").because(error))?;
        let results =
            ObjectResults::on_disk(&options.dir.join("results"), clock.now()).map_err(|error| {
                CliError::new(Exit::System, "cannot open the results").because(error)
            })?;
        let limits = limits::shortened(options);
        let (listener, port) = listen().await?;
        register(api, &format!("http://127.0.0.1:{port}{PATH}"), &secrets(options)).await?;
        let settings = Settings {
            limits: &limits,
            upkeep: &limits::upkeep(&limits),
            api_url,
            port,
            workers: WORKERS,
            hold: hold(&limits),
            tick: TICK,
        };
        let folder = Arc::new(Folder::new(options, &settings)?);
        let pipeline = Pipeline {
            ledger: Arc::new(store.clone()),
            queue: Arc::new(store.clone()),
            jobs: Arc::clone(api) as Arc<dyn domain::ports::Jobs>,
            results: Arc::new(results),
            clock,
            random: Arc::new(SystemRandom),
            limits,
            pauses: Arc::default(),
            looks: Arc::default(),
        };
        let pipeline = tamper.tamper(pipeline);
        let metrics = Arc::new(Metrics::for_scrapes());
        Ok(Self { pipeline, metrics, folder, store, listener })
    }

    /// Starts the server: as a process of its own if it is to be killed.
    pub(super) async fn serve(
        self,
        options: &DemoOptions,
        api: &Arc<ScraperApi>,
    ) -> Result<Serving, CliError> {
        let Self { pipeline, metrics, folder, store, listener } = self;
        if options.kills > 0 {
            drop(listener);
            return Process::start(folder).await.map(Serving::Process);
        }
        let scheme = Preset::Geonode.scheme().map_err(|error| {
            CliError::new(Exit::Bug, "the default signature scheme").because(error)
        })?;
        let limits = pipeline.limits.clone();
        let place = SecretPlace::File(options.dir.join(SECRETS));
        let source = LocalSecrets::new(vec![place], Arc::clone(&pipeline.clock));
        let keyring = Keyring::new(Arc::new(source), scheme, &limits);
        let server = Server {
            pipeline,
            webhooks: Arc::clone(api) as Arc<dyn Webhooks>,
            source: Arc::new(store) as Arc<dyn Waiting>,
            keyring: Arc::new(keyring),
            format: domain::envelope::EnvelopeFormat::default(),
            settings: ServerSettings {
                path: PATH.to_owned(),
                workers: WORKERS,
                hold: hold(&limits),
                tick: TICK,
                upkeep: limits::upkeep(&limits),
                bounds: ReceiverBounds::default(),
            },
            metrics,
            complaints: Complaints::untold(),
        };
        let (stop, mut stopped) = watch::channel(false);
        let until = async move {
            // An error means that the sender is gone, which ends the wait as well.
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        let task = tokio::spawn(server.serve(listener, until));
        Ok(Serving::Here { stop, task })
    }
}

impl Serving {
    /// The process, if it is one.
    pub(super) fn process(&mut self) -> Option<&mut Process> {
        match self {
            Self::Here { .. } => None,
            Self::Process(process) => Some(process),
        }
    }

    /// Ends it; whether something in its process panicked.
    pub(super) async fn end(self) -> Result<bool, CliError> {
        match self {
            Self::Here { stop, task } => {
                // Receivers of the signal end with the server.
                let _ = stop.send(true);
                drop(task.await);
                Ok(false)
            }
            Self::Process(mut process) => {
                // All is settled: nothing waits for its end.
                process.kill().await?;
                Ok(process.has_panicked())
            }
        }
    }
}

/// The secrets file of a data folder.
const SECRETS: &str = "secrets.json";

fn secrets(options: &DemoOptions) -> SecretsFile {
    SecretsFile::new(&options.dir.join(SECRETS))
}

/// How long a task is hidden while it is worked: longer than any of its calls.
fn hold(limits: &Limits) -> Duration {
    limits.call_timeout * 3
}

/// Registers one webhook per event at the receiver's address, and keeps its secret.
async fn register(api: &ScraperApi, url: &str, file: &SecretsFile) -> Result<(), CliError> {
    for kind in Kind::ALL {
        let webhook = NewWebhook {
            url: url.to_owned(),
            event_type: EventType::completed(kind),
            description: Some("gleaner demo".to_owned()),
        };
        let within = platform::CALL_TIMEOUT;
        let created = subscribe(api, &SystemClock, &SystemRandom, &webhook, within).await?;
        let secret = created
            .secret
            .with_webhook_id(created.webhook.id.as_str())
            .map_err(|error| CliError::new(Exit::Data, "unusable signing secret").because(error))?;
        let stored = StoredSecret {
            url: Some(webhook.url),
            event_type: Some(webhook.event_type.as_str().to_owned()),
            ..StoredSecret::new(secret)
        };
        file.add(stored).map_err(|error| {
            CliError::new(Exit::System, "the secret cannot be kept").because(error)
        })?;
    }
    Ok(())
}
