//! The demo: the platform's simulator as a process of its own, the pipeline in this one or, where it
//! is killed on the way, in another, jobs from submission to stored results, and an independent
//! judge at the end.

mod audited;
mod books;
mod elsewhere;
mod folder;
mod given_up;
mod healing;
mod judge;
mod kills;
mod limits;
mod plan;
mod platform;
mod process;
mod report;
mod rotation;
mod stage;
mod view;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use domain::intent::Submission;
use domain::ports::{Clock, PortError};
use domain::time::{Timestamp, after, between};
use scraper_api::{ApiKey, Config, ScraperApi};
use system::SystemClock;
use tokio::sync::watch as signal;

pub use audited::Audited;
pub use elsewhere::Remains;
pub use healing::Healing;
pub use judge::Judgement;
pub use report::Report;
pub use rotation::Rotated;

use self::platform::{Control, Detail, Simulator};
use self::stage::Stage;
use crate::error::CliError;
use crate::exit::Exit;
use crate::pipeline::Pipeline;
use crate::submitting::{Ended, Manner, WhenBlocked, submit_all};

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
    /// How often the serving process, which is then one of its own, is killed.
    pub kills: u32,
    /// Whether the signing secrets are replaced in the middle.
    pub rotate: bool,
    /// Whether `gleaner audit` is asked at the end.
    pub audit: bool,
}

#[cfg(test)]
impl DemoOptions {
    /// So many jobs of which nothing goes wrong.
    fn calm(jobs: u32) -> Self {
        Self {
            jobs,
            seed: 3,
            speed: 1.0,
            weather: Weather::None,
            corpus: None,
            dir: PathBuf::new(),
            program: PathBuf::new(),
            live: false,
            patience: Duration::ZERO,
            kills: 0,
            rotate: false,
            audit: false,
        }
    }
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
/// When something could not be started or read, or the serving process ended by itself; books that
/// do not balance are no error.
pub async fn run(options: &DemoOptions, tamper: &dyn Tamper) -> Result<Report, CliError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let started = clock.now();
    let simulator = Simulator::start(options).await?;
    let control = simulator.control();
    let api = control.client(Arc::clone(&clock))?;
    let stage = Stage::set(options, &api, control.url(), tamper).await?;
    let watcher = watch::Watcher::start(options.dir.join("results"), Arc::clone(&clock));
    let plan = plan::plan(options);
    let jobs = plan.len() + plan::foreign_urls(options).len();
    let (settled, is_settled) = signal::channel(false);
    let (pipeline, metrics) = (stage.pipeline.clone(), Arc::clone(&stage.metrics));
    let folder = Arc::clone(&stage.folder);
    let mut serving = stage.serve(options, &api).await?;
    let killed = Arc::new(AtomicU32::new(0));
    let counted = (options.kills > 0).then(|| Arc::clone(&killed));
    let view = view::View::start(
        options.live,
        &pipeline,
        &metrics,
        control,
        jobs,
        counted,
        is_settled.clone(),
    );
    let script = kills::Script::of(options, jobs);
    let driven_stage =
        kills::Stage { folder: Arc::clone(&folder), control, clock: &*clock, counted: &killed };
    let driving = kills::drive(&script, driven_stage, serving.process(), &is_settled);
    let working = async {
        let (submitted, foreign) =
            tokio::join!(submit(&pipeline, &plan, options), foreign_jobs(control, options));
        foreign?;
        let is_whole = wait_until_settled(&pipeline, control, options).await?;
        // Receivers of the signal end with the demo.
        let _ = settled.send(true);
        Ok::<_, CliError>((submitted, is_whole))
    };
    // The server's end ends the demo at once.
    let ((submitted, is_whole), driven) = tokio::try_join!(working, driving)?;
    let panicked = serving.end().await?;
    view.finish().await;
    let changed = watcher.finish().await;
    let books = control.books(Detail::Parts).await?;
    let counters = control.counters().await?;
    let mut judgement = judge::judge(&books, &options.dir.join("results"), changed);
    given_up::judge(&pipeline, &books, &mut judgement).await?;
    let audited = if options.audit {
        Some(audited::audit(&folder, started, pipeline.limits.adoption_margin).await?)
    } else {
        None
    };
    let facts = report::Facts {
        options,
        wall: between(started, clock.now()),
        books: &books,
        counters: &counters,
        submitted: submitted.into_counts(),
        counted: metrics.counts(),
        settled: is_whole,
        driven,
        panicked,
        audited,
    };
    let report = Report::new(&pipeline, facts, judgement).await?;
    simulator.stop().await;
    Ok(report)
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
