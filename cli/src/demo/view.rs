//! The live view on standard error, and the latencies that it shows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use domain::entry::StateName;
use domain::job::{JobId, JobKey, Kind};
use domain::time::Timestamp;
use indicatif::{ProgressBar, ProgressStyle};
use telemetry::{Counter, Metrics};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::books::Job;
use super::platform::{Control, Detail};
use super::report::{calls_per_job, percentile};
use super::seconds_between;
use crate::error::CliError;
use crate::pipeline::Pipeline;

/// Pause between two drawings.
const DRAW_PAUSE: Duration = Duration::from_millis(250);
/// Drawings from one reading of the simulator's books to the next.
const PACE_EVERY: u32 = 8;
/// Most jobs of a demo whose books are read while it runs; of more they are read at the end.
const PACED_JOBS_MAX: usize = 5_000;

/// A view in the background; nothing if it is switched off.
pub(super) struct View {
    task: Option<JoinHandle<()>>,
}

impl View {
    /// Starts drawing until the signal says stop.
    pub(super) fn start(
        live: bool,
        pipeline: &Pipeline,
        metrics: &Arc<Metrics>,
        control: &Control,
        jobs: usize,
        kills: Option<Arc<AtomicU32>>,
        mut stopped: watch::Receiver<bool>,
    ) -> Self {
        if !live {
            return Self { task: None };
        }
        eprintln_line(&format!("simulator on {}", control.url()));
        let (pipeline, metrics) = (pipeline.clone(), Arc::clone(metrics));
        let control = control.clone();
        let task = tokio::spawn(async move {
            let bar = ProgressBar::new(u64::try_from(jobs).unwrap_or(u64::MAX));
            if let Ok(style) =
                ProgressStyle::with_template("{elapsed:>5} {bar:30} {pos}/{len}\n{msg}")
            {
                bar.set_style(style);
            }
            let mut drawings = 0_u32;
            let mut pace = String::new();
            while !*stopped.borrow() {
                if jobs <= PACED_JOBS_MAX && drawings.is_multiple_of(PACE_EVERY) {
                    // Without an answer the last one stays on the screen.
                    pace = read_pace(&pipeline, &control).await.unwrap_or(pace);
                }
                drawings = drawings.wrapping_add(1);
                let effort = match &kills {
                    Some(kills) => killed(&control, kills).await,
                    None => counted(&metrics),
                };
                draw(&bar, &pipeline, &effort, &pace).await;
                tokio::select! {
                    biased;
                    _ = stopped.changed() => {}
                    () = pipeline.clock.sleep(DRAW_PAUSE) => {}
                }
            }
            bar.finish_and_clear();
        });
        Self { task: Some(task) }
    }

    /// Waits until the last drawing is gone.
    pub(super) async fn finish(self) {
        if let Some(task) = self.task {
            drop(task.await);
        }
    }
}

#[expect(clippy::print_stderr, reason = "the live view is for a person at a terminal")]
fn eprintln_line(line: &str) {
    eprintln!("{line}");
}

/// The line about calls and latencies, from the simulator's books so far.
async fn read_pace(pipeline: &Pipeline, control: &Control) -> Result<String, CliError> {
    let books = control.books(Detail::Jobs).await?;
    let calls = calls_per_job(&control.counters().await?, &books);
    let latencies = latencies(pipeline, &books).await?;
    let (median, most) = (percentile(&latencies, 50), percentile(&latencies, 99));
    Ok(format!("{calls:.2} API calls a job   finish to stored: {median:.2} s, 99 % {most:.2} s"))
}

/// The line about what the server in this process counted.
fn counted(metrics: &Metrics) -> String {
    format!(
        "deliveries: {} accepted  {} repeated  {} rejected   looks: {} swept  {} by list",
        metrics.read(Counter::DeliveriesAccepted),
        metrics.read(Counter::DeliveriesRepeated),
        metrics.read(Counter::DeliveriesRejected),
        metrics.read(Counter::TasksSwept),
        metrics.read(Counter::JobsAnnounced),
    )
}

/// The same as the platform sees it, of a server that is killed with its counts.
async fn killed(control: &Control, kills: &AtomicU32) -> String {
    let webhooks = control.counters().await.map(|counters| counters.counters.webhooks);
    let webhooks = webhooks.unwrap_or_default();
    let of = |name: &str| webhooks.get(name).copied().unwrap_or_default();
    format!(
        "deliveries: {} accepted  {} refused  {} not answered   kills: {}",
        of("accepted"),
        of("refused"),
        of("unanswered"),
        kills.load(Ordering::Relaxed),
    )
}

async fn draw(bar: &ProgressBar, pipeline: &Pipeline, effort: &str, pace: &str) {
    let Ok(counts) = pipeline.ledger.count_entries().await else { return };
    let of = |state: StateName| counts.get(state.as_str()).copied().unwrap_or_default();
    bar.set_position(of(StateName::Stored) + of(StateName::Dead));
    bar.set_message(format!(
        "expected {}  received {}  resubmitting {}  stored {}  superseded {}  dead {}\n\
         {effort}\n{pace}",
        of(StateName::Expected),
        of(StateName::Received),
        of(StateName::Resubmitting),
        of(StateName::Stored),
        of(StateName::Superseded),
        of(StateName::Dead),
    ));
}

/// Seconds from the platform's finish of a job to the settled row, sorted; for stored jobs.
pub(super) async fn latencies(pipeline: &Pipeline, books: &[Job]) -> Result<Vec<f64>, CliError> {
    let finished: BTreeMap<JobKey, Timestamp> = books
        .iter()
        .filter_map(|job| {
            let kind = job.kind.parse::<Kind>().ok()?;
            Some((JobKey::new(kind, JobId::parse(&job.id).ok()?), job.finished_at?))
        })
        .collect();
    let filter =
        domain::ports::EntryFilter { state: Some(StateName::Stored), ..Default::default() };
    let mut latencies = Vec::new();
    let mut after = None;
    loop {
        let page = pipeline.ledger.list_entries(&filter, after.as_ref(), 500).await?;
        for entry in &page.items {
            let stored = entry.history.last().map(|transition| transition.at);
            if let (Some(finished), Some(stored)) = (finished.get(&entry.key), stored) {
                latencies.push(seconds_between(*finished, stored));
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    latencies.sort_by(f64::total_cmp);
    Ok(latencies)
}
