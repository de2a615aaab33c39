//! Gleaner's steps over memory, and the simulated platform, whose calls are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use domain::entry::StateName;
use domain::intent::Submission;
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::looks::LookRate;
use domain::pause::Pauses;
use domain::ports::{
    ApiError, Clock as _, ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage,
    SubmitError,
};
use domain::request::{FetchOptions, JobRequest};
use domain::steps::Ports;
use domain::submit::{Submitted, submit};
use domain::testing::{EventClock, MemoryLedger, MemoryQueue, MemoryResults, SeededRandom};
use domain::time::{Timestamp, between, parse_lenient};
use serde_json::Value;
use simulator::Config;
use testkit::platform::PlatformJobs;

use super::{JOBS, MEDIAN_SECS, Outcome, SIGMA};

pub(super) struct World {
    pub(super) clock: Arc<EventClock>,
    pub(super) jobs: Counted,
    pub(super) ledger: MemoryLedger,
    pub(super) queue: MemoryQueue,
    results: MemoryResults,
    random: SeededRandom,
    limits: Limits,
    pauses: Pauses,
    looks: LookRate,
}

impl World {
    pub(super) fn new(seed: u64) -> Result<Self> {
        let clock = Arc::new(EventClock::default());
        // Results are small: what is counted here is calls.
        let config = Config {
            seed,
            job_median_secs: MEDIAN_SECS,
            job_sigma: SIGMA,
            result_bytes: 256,
            ..Config::default()
        };
        let platform = PlatformJobs::new(config, clock.clone())?;
        Ok(Self {
            jobs: Counted { platform, gets: AtomicU32::new(0), list_pages: AtomicU32::new(0) },
            ledger: MemoryLedger::new(),
            queue: MemoryQueue::new(clock.clone()),
            results: MemoryResults::new(),
            random: SeededRandom::new(seed),
            limits: Limits::default(),
            pauses: Pauses::default(),
            looks: LookRate::default(),
            clock,
        })
    }

    pub(super) fn ports(&self) -> Ports<'_> {
        Ports {
            ledger: &self.ledger,
            queue: &self.queue,
            jobs: &self.jobs,
            results: &self.results,
            clock: self.clock.as_ref(),
            random: &self.random,
            limits: &self.limits,
            pauses: &self.pauses,
            looks: &self.looks,
        }
    }

    /// Submits all jobs at this instant.
    pub(super) async fn submit(&self) -> Result<Vec<JobKey>> {
        let mut keys = Vec::new();
        for position in 0..JOBS.into() {
            let url = format!("https://page.example/{position}");
            let submission = Submission {
                run: "benchmark".to_owned(),
                position,
                request: JobRequest::extract(&url, FetchOptions::default())?,
                reference: None,
            };
            match submit(self.ports(), &submission).await? {
                Submitted::Accepted { job_id, .. } => keys.push(JobKey::new(Kind::Extract, job_id)),
                other => bail!("the platform did not take a job: {other:?}"),
            }
        }
        Ok(keys)
    }

    /// When each job's result was stored, as the ledger has it.
    pub(super) fn stored(&self) -> Result<Vec<(JobId, Timestamp)>> {
        let stored = self.ledger.entries().into_iter().map(|entry| {
            let last = entry.history.last().context("a row without history")?;
            if entry.state.name() != StateName::Stored {
                bail!("a job was not stored: {:?}", entry.state);
            }
            Ok((entry.key.job_id, last.at))
        });
        stored.collect()
    }

    /// Compares with the platform's books.
    pub(super) fn outcome(
        &self,
        begun: Timestamp,
        stored: &[(JobId, Timestamp)],
    ) -> Result<Outcome> {
        let books = self.jobs.platform.books();
        let books = books.get("jobs").and_then(Value::as_array).context("no books")?;
        let lateness: Option<Vec<f64>> = books
            .iter()
            .map(|book| {
                let job_id = book.get("job_id").and_then(Value::as_str)?;
                let ended = parse_lenient(book.get("finished_at").and_then(Value::as_str)?)?;
                let (_, had) = stored.iter().find(|(stored, _)| stored.as_str() == job_id)?;
                Some(between(ended, *had).as_secs_f64())
            })
            .collect();
        let last = stored.iter().map(|(_, at)| *at).max().context("nothing was stored")?;
        Ok(Outcome {
            gets: self.jobs.gets.load(Ordering::Relaxed),
            list_pages: self.jobs.list_pages.load(Ordering::Relaxed),
            lateness: lateness.context("a job of the books was not stored")?,
            last: between(begun, last),
        })
    }

    /// Runs work that waits for the clock alone.
    pub(super) fn run<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        self.clock.run(work).context("the work waits for something other than the clock")
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// The platform, with a count of what polling asks it.
pub(super) struct Counted {
    platform: PlatformJobs,
    gets: AtomicU32,
    list_pages: AtomicU32,
}

#[async_trait]
impl Jobs for Counted {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        self.platform.extract(job_id, within).await
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        self.platform.parent(key, page, within).await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        self.platform.submit(request, within).await
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        self.list_pages.fetch_add(1, Ordering::Relaxed);
        self.platform.list(kind, query, within).await
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.platform.probe(within).await
    }
}
