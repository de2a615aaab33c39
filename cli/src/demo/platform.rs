//! The simulator as a process of its own, and its control plane.

use std::io::Write as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use domain::ports::Clock;
use scraper_api::ScraperApi;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use simulator::{Config, Faults};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::books::{Counters, Job, Page, VERSION};
use super::{DemoOptions, Weather, client};
use crate::error::CliError;
use crate::exit::Exit;

/// Time-out of the demo's own calls.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the simulator may take to say where it listens.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The demo's API key. It opens nothing but the demo's own simulator on this machine.
pub(super) const KEY: &str = "demo-key";
/// Tries of a foreign submission, since the weather hits it as well.
const FOREIGN_TRIES_MAX: u32 = 20;

/// A running simulator.
pub(super) struct Simulator {
    child: Child,
    control: Control,
    _config: tempfile::NamedTempFile,
}

/// What can be asked of a running simulator.
#[derive(Clone)]
pub(super) struct Control {
    url: String,
    http: reqwest::Client,
}

/// How much the books tell of each job.
#[derive(Debug, Clone, Copy)]
pub(super) enum Detail {
    /// What became of it.
    Jobs,
    /// The digests of what was served as well.
    Parts,
}

/// The line with which the simulator says where it listens.
#[derive(Deserialize)]
struct Hello {
    url: String,
}

impl Simulator {
    /// Starts the program as a simulator that ends with this process.
    pub(super) async fn start(options: &DemoOptions) -> Result<Self, CliError> {
        let config = write_config(options)?;
        let mut child = Command::new(&options.program)
            .arg("simulate")
            .args(["--listen", "127.0.0.1:0", "--json", "--end-with-stdin", "--config"])
            .arg(config.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                CliError::new(Exit::System, "cannot start the simulator").because(error)
            })?;
        let url = hello(&mut child).await?;
        let http = tls::client()
            .timeout(CALL_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| {
                CliError::new(Exit::System, "cannot set up the client").because(error)
            })?;
        Ok(Self { child, control: Control { url, http }, _config: config })
    }

    /// What can be asked of it.
    pub(super) const fn control(&self) -> &Control {
        &self.control
    }

    /// Ends the simulator.
    pub(super) async fn stop(mut self) {
        // Closing its standard input asks it to stop.
        drop(self.child.stdin.take());
        if tokio::time::timeout(Duration::from_secs(5), self.child.wait()).await.is_err() {
            drop(self.child.kill().await);
        }
    }
}

impl Control {
    /// Where it listens.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// A client of the simulated API.
    pub(super) fn client(&self, clock: Arc<dyn Clock>) -> Result<Arc<ScraperApi>, CliError> {
        client(&self.url, KEY, clock)
    }

    /// The whole books.
    pub(super) async fn books(&self, detail: Detail) -> Result<Vec<Job>, CliError> {
        let detail = match detail {
            Detail::Jobs => "jobs",
            Detail::Parts => "parts",
        };
        let mut jobs = Vec::new();
        let mut after = 0;
        loop {
            let path = format!("/sim/books?detail={detail}&after={after}");
            let page: Page = self.get(&path).await?;
            if page.version != VERSION {
                return Err(CliError::new(Exit::Bug, "the simulator's books have another version"));
            }
            jobs.extend(page.jobs);
            match page.next {
                Some(next) => after = next,
                None => return Ok(jobs),
            }
        }
    }

    /// The simulator's counters.
    pub(super) async fn counters(&self) -> Result<Counters, CliError> {
        self.get("/sim/counters").await
    }

    /// How many jobs it has finished.
    pub(super) async fn finished(&self) -> Result<u64, CliError> {
        let counters = self.counters().await?;
        Ok(counters.jobs.saturating_sub(counters.unfinished_jobs))
    }

    /// Deliveries that the simulator still means to attempt.
    pub(super) async fn pending_attempts(&self) -> Result<u64, CliError> {
        Ok(self.counters().await?.pending_attempts)
    }

    /// Submits jobs past Gleaner; a lost answer is nobody's loss here.
    pub(super) async fn submit_foreign(&self, urls: Vec<String>) -> Result<(), CliError> {
        for url in urls {
            let body = serde_json::json!({
                "url": url, "formats": ["html", "markdown"], "processing_mode": "async",
            });
            for _ in 0..FOREIGN_TRIES_MAX {
                let call = self
                    .http
                    .post(format!("{}/v1/extract", self.url))
                    .header("x-api-key", KEY)
                    .timeout(Duration::from_secs(2))
                    .json(&body);
                match call.send().await {
                    Ok(answer) if answer.status().is_success() => break,
                    Ok(_) => {}
                    // The job may exist: another POST would make a second one.
                    Err(_) => break,
                }
            }
        }
        Ok(())
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CliError> {
        let failed = |error: reqwest::Error| {
            CliError::new(Exit::Unavailable, "the simulator does not answer").because(error)
        };
        let call = self.http.get(format!("{}{path}", self.url)).header("x-api-key", KEY);
        let answer = call.send().await.and_then(reqwest::Response::error_for_status);
        answer.map_err(failed)?.json().await.map_err(failed)
    }
}

async fn hello(child: &mut Child) -> Result<String, CliError> {
    let silent = || CliError::new(Exit::System, "the simulator did not start");
    let output = child.stdout.take().ok_or_else(silent)?;
    let mut lines = BufReader::new(output).lines();
    let line = tokio::time::timeout(START_TIMEOUT, lines.next_line())
        .await
        .map_err(|_| silent())?
        .map_err(|error| silent().because(error))?
        .ok_or_else(silent)?;
    let hello: Hello = serde_json::from_str(&line).map_err(|error| silent().because(error))?;
    Ok(hello.url)
}

/// Writes the simulator's settings to a file that only this user can read.
fn write_config(options: &DemoOptions) -> Result<tempfile::NamedTempFile, CliError> {
    let config = Config {
        seed: options.seed,
        api_key: KEY.to_owned(),
        speed: options.speed,
        corpus: options.corpus.clone(),
        hang_max_secs: 8.0,
        // Where nothing goes wrong, a finished parent has settled.
        settle_secs: if options.weather == Weather::None {
            0.0
        } else {
            Config::default().settle_secs
        },
        faults: match options.weather {
            Weather::None => Faults::none(),
            Weather::Gentle => Faults::gentle(),
            Weather::Harsh => Faults::harsh(),
        },
        ..Config::default()
    };
    let failed = || CliError::new(Exit::System, "cannot write the simulator's settings");
    let json = serde_json::to_vec(&config).map_err(|error| failed().because(error))?;
    let mut file = tempfile::Builder::new()
        .prefix("gleaner-simulator-")
        .suffix(".json")
        .tempfile()
        .map_err(|error| failed().because(error))?;
    file.write_all(&json).map_err(|error| failed().because(error))?;
    Ok(file)
}
