//! The demo: the platform's simulator as a process of its own, the pipeline in this one, jobs from
//! submission to stored results, and an independent judge at the end.

mod books;
mod elsewhere;
mod given_up;
mod judge;
mod limits;
mod plan;
mod platform;
mod report;
mod view;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use domain::envelope::EventType;
use domain::intent::Submission;
use domain::job::Kind;
use domain::keyring::Keyring;
use domain::ports::{Clock, NewWebhook, PortError, SecretSource, Webhooks};
use domain::signature::preset::Preset;
use domain::signature::secret::Secret;
use domain::time::{Timestamp, after, between};
use embedded::SqliteStore;
use results::ObjectResults;
use scraper_api::{ApiKey, Config, ScraperApi};
use telemetry::Metrics;
use tokio::net::TcpListener;
use tokio::sync::watch as signal;

pub use elsewhere::Remains;
pub use judge::Judgement;
pub use report::Report;

use self::platform::{Control, Detail, Simulator};
use crate::error::CliError;
use crate::exit::Exit;
use crate::pipeline::Pipeline;
use crate::serve::{Complaints, ReceiverBounds, Server, ServerSettings, Waiting};
use crate::submitting::{Ended, Manner, WhenBlocked, submit_all};
use crate::subscribing::subscribe;
use system::{SystemClock, SystemRandom};

/// How bad the weather is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Weather {
    /// Nothing goes wrong.
    None,
    /// A quarter of harsh.
    Gentle,
    /// Deliveries lost, repeated, late and mis-signed; API errors, hangs and lost answers; jobs
    /// that fail, are cancelled or never end.
    Harsh,
}

/// What the demo shall do.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// Jobs to submit.
    pub jobs: u32,
    /// Decides durations and faults.
    pub seed: u64,
    /// Divides the simulated platform's durations.
    pub speed: f64,
    /// What goes wrong.
    pub weather: Weather,
    /// Folder with real documents that are served as results.
    pub corpus: Option<PathBuf>,
    /// Folder that the ledger and the results are kept in.
    pub dir: PathBuf,
    /// The program that is run as the simulator.
    pub program: PathBuf,
    /// Whether to draw the live view on standard error.
    pub live: bool,
    /// When to give up waiting for the last jobs.
    pub patience: Duration,
}

/// Lets a test put something between the pipeline and its adapters.
pub trait Tamper: Sync {
    /// Changes the pipeline before it runs.
    fn tamper(&self, pipeline: Pipeline) -> Pipeline {
        pipeline
    }
}

/// Changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Untampered;

impl Tamper for Untampered {}

/// Pause between two looks at the ledger's counts.
const LOOK_PAUSE: Duration = Duration::from_millis(250);
/// Name of the run under which the demo submits.
const RUN: &str = "demo";

/// Runs the demo and judges it.
///
/// # Errors
/// When something could not be started or read; books that do not balance are no error.
pub async fn run(options: &DemoOptions, tamper: &dyn Tamper) -> Result<Report, CliError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let started = clock.now();
    let simulator = Simulator::start(options).await?;
    let control = simulator.control();
    let api = control.client(Arc::clone(&clock))?;
    let stage = Stage::set(options, &api, Arc::clone(&clock), tamper).await?;
    let watcher = watch::Watcher::start(options.dir.join("results"), Arc::clone(&clock));
    let plan = plan::plan(options);
    let (stop, stopped) = signal::channel(false);
    let Stage { server, listener, pipeline, metrics } = stage;
    let until = wait_for(stopped.clone());
    let serving = tokio::spawn(server.serve(listener, until));
    let view = view::View::start(
        options.live,
        &pipeline,
        &metrics,
        control,
        plan.len() + plan::foreign_urls(options).len(),
        stopped,
    );
    let (submitted, foreign) =
        tokio::join!(submit(&pipeline, &plan, options), foreign_jobs(control, options));
    foreign?;
    let settled = wait_until_settled(&pipeline, control, options).await?;
    // Receivers of the signal end with the server.
    let _ = stop.send(true);
    drop(serving.await);
    view.finish().await;
    let changed = watcher.finish().await;
    let books = control.books(Detail::Parts).await?;
    let counters = control.counters().await?;
    let mut judgement = judge::judge(&books, &options.dir.join("results"), changed);
    given_up::judge(&pipeline, &books, &mut judgement).await?;
    let facts = report::Facts {
        options,
        wall: between(started, clock.now()),
        books: &books,
        counters: &counters,
        submitted: submitted.into_counts(),
        counted: metrics.counts(),
        settled,
    };
    let report = Report::new(&pipeline, facts, judgement).await?;
    simulator.stop().await;
    Ok(report)
}

async fn wait_for(mut stopped: signal::Receiver<bool>) {
    // An error means that the sender is gone, which ends the wait as well.
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// The demo's server before it runs.
struct Stage {
    server: Server,
    listener: TcpListener,
    pipeline: Pipeline,
    metrics: Arc<Metrics>,
}

impl Stage {
    async fn set(
        options: &DemoOptions,
        api: &Arc<ScraperApi>,
        clock: Arc<dyn Clock>,
        tamper: &dyn Tamper,
    ) -> Result<Self, CliError> {
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
        let pipeline = Pipeline {
            ledger: Arc::new(store.clone()),
            queue: Arc::new(store.clone()),
            jobs: Arc::clone(api) as Arc<dyn domain::ports::Jobs>,
            results: Arc::new(results),
            clock: Arc::clone(&clock),
            random: Arc::new(SystemRandom),
            limits: limits.clone(),
            pauses: Arc::default(),
            looks: Arc::default(),
        };
        let pipeline = tamper.tamper(pipeline);
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .map_err(|error| CliError::new(Exit::System, "cannot open a port").because(error))?;
        let port = listener
            .local_addr()
            .map_err(|error| CliError::new(Exit::System, "cannot open a port").because(error))?
            .port();
        let secrets = register(api, &format!("http://127.0.0.1:{port}/webhook")).await?;
        let scheme = Preset::Geonode.scheme().map_err(|error| {
            CliError::new(Exit::Bug, "the default signature scheme").because(error)
        })?;
        let keyring = Keyring::new(Arc::new(Fixed(secrets)), scheme, &limits);
        let metrics = Arc::new(Metrics::for_scrapes());
        let server = Server {
            pipeline: pipeline.clone(),
            webhooks: Arc::clone(api) as Arc<dyn Webhooks>,
            source: Arc::new(store) as Arc<dyn Waiting>,
            keyring: Arc::new(keyring),
            format: domain::envelope::EnvelopeFormat::default(),
            settings: ServerSettings {
                path: "/webhook".to_owned(),
                workers: 32,
                hold: limits.call_timeout * 3,
                tick: Duration::from_millis(500),
                upkeep: limits::upkeep(&limits),
                bounds: ReceiverBounds::default(),
            },
            metrics: Arc::clone(&metrics),
            complaints: Complaints::untold(),
        };
        Ok(Self { server, listener, pipeline, metrics })
    }
}

/// The signing secrets of the demo's webhooks, which live as long as the demo.
struct Fixed(Vec<Secret>);

#[async_trait::async_trait]
impl SecretSource for Fixed {
    async fn load(&self) -> Result<Vec<Secret>, PortError> {
        Ok(self.0.clone())
    }
}

/// Registers one webhook per event at the receiver's address.
async fn register(api: &ScraperApi, url: &str) -> Result<Vec<Secret>, CliError> {
    let mut secrets = Vec::new();
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
        secrets.push(secret);
    }
    Ok(secrets)
}

/// How submitting went.
#[derive(Debug, Default)]
struct SubmitCounts {
    accepted: AtomicU64,
    refused: AtomicU64,
    ambiguous: AtomicU64,
    unfinished: AtomicU64,
}

impl SubmitCounts {
    fn into_counts(self) -> report::Submitted {
        report::Submitted {
            accepted: self.accepted.into_inner(),
            refused: self.refused.into_inner(),
            ambiguous: self.ambiguous.into_inner(),
            unfinished: self.unfinished.into_inner(),
        }
    }
}

async fn submit(pipeline: &Pipeline, plan: &[Submission], options: &DemoOptions) -> SubmitCounts {
    let counts = SubmitCounts::default();
    let manner = Manner {
        at_once: 32,
        deadline: after(pipeline.clock.now(), options.patience),
        when_blocked: WhenBlocked::Wait,
    };
    let told = |_: &Submission, ended: &Ended| {
        let count = match ended {
            Ended::Known(domain::submit::Submitted::Accepted { .. }) => &counts.accepted,
            Ended::Known(domain::submit::Submitted::Refused(_)) => &counts.refused,
            Ended::Known(domain::submit::Submitted::Ambiguous) => &counts.ambiguous,
            _ => &counts.unfinished,
        };
        count.fetch_add(1, Ordering::Relaxed);
    };
    submit_all(pipeline, plan, manner, &told).await;
    counts
}

/// Submits a few jobs past Gleaner, as another tool on the same account would: it is told of
/// them by webhooks alone.
async fn foreign_jobs(control: &Control, options: &DemoOptions) -> Result<(), CliError> {
    control.submit_foreign(plan::foreign_urls(options)).await
}

/// Waits until the platform has nothing unfinished and the ledger owes nothing; `false` when the
/// patience ended first.
async fn wait_until_settled(
    pipeline: &Pipeline,
    control: &Control,
    options: &DemoOptions,
) -> Result<bool, CliError> {
    let deadline = after(pipeline.clock.now(), options.patience);
    let mut quiet = 0;
    while pipeline.clock.now() < deadline {
        pipeline.clock.sleep(LOOK_PAUSE).await;
        let open = open_entries(pipeline).await?;
        let pending = control.pending_attempts().await.unwrap_or(1);
        quiet = if open == 0 && pending == 0 { quiet + 1 } else { 0 };
        // Twice, since a task may have been between two states during the first look.
        if quiet >= 2 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Rows that somebody is still owed.
pub(crate) async fn open_entries(pipeline: &Pipeline) -> Result<u64, PortError> {
    let counts = pipeline.ledger.count_entries().await?;
    Ok(["expected", "received", "resubmitting"].iter().filter_map(|state| counts.get(*state)).sum())
}

/// The demo's folder, made if it is not there; refused if it holds anything.
///
/// # Errors
/// When it cannot be made or is not empty.
pub fn prepare_dir(dir: &Path) -> Result<(), CliError> {
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::read_dir(dir))
        .map_err(|error| {
            CliError::new(Exit::System, format!("cannot use the folder `{}`", dir.display()))
                .because(error)
        })
        .and_then(|mut entries| match entries.next() {
            None => Ok(()),
            Some(_) => Err(CliError::new(
                Exit::Usage,
                format!("the folder `{}` is not empty", dir.display()),
            )
            .hint("name a new folder; a demo never mixes with other results")),
        })
}

/// The client that the demo's own key opens.
fn client(url: &str, key: &str, clock: Arc<dyn Clock>) -> Result<Arc<ScraperApi>, CliError> {
    let key = ApiKey::parse(key)
        .map_err(|error| CliError::new(Exit::Bug, "the demo's API key").because(error))?;
    let config = Config::new(url, key)
        .map_err(|error| CliError::new(Exit::Bug, "the simulator's address").because(error))?;
    let api = ScraperApi::new(config, clock)
        .map_err(|error| CliError::new(Exit::System, "cannot set up the client").because(error))?;
    Ok(Arc::new(api))
}

/// When something happened, for latencies.
fn seconds_between(earlier: Timestamp, later: Timestamp) -> f64 {
    between(earlier, later).as_secs_f64()
}
