//! One start of one function, and what follows it.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::future::join;
use serde_json::Value;
use testkit::lambda::{Outcome, RuntimeApi};
use tokio::time::timeout;

use super::aws::Aws;
use super::events::{Event, Events};
use super::functions::Function;
use super::proof;
use crate::process::Process;

/// Longest wait for one answer.
const WITHIN: Duration = Duration::from_secs(30);

/// What was measured of it; times in milliseconds.
#[derive(Debug)]
pub(super) struct Start {
    /// From starting the process until it asks for an event.
    pub(super) init: f64,
    /// From starting the process until it answered the first delivery.
    pub(super) first: f64,
    /// From handing over a delivery to its answer, of each further one.
    pub(super) warm: Vec<f64>,
    /// Its largest resident memory, in MiB.
    pub(super) peak_mib: f64,
}

impl Start {
    /// Starts the process, lets it answer deliveries, and ends it.
    pub(super) async fn measure(
        mut command: Command,
        function: Function,
        aws: &Aws,
        events: &mut Events,
        warm: usize,
    ) -> Result<Self> {
        let api = RuntimeApi::start().await?;
        command.envs(api.variables());
        let genuine: Vec<Event> = (0..=warm).map(|_| events.genuine()).collect::<Result<_>>()?;
        let forged = events.forged()?;
        let (first, rest) = genuine.split_first().context("one delivery at least")?;
        aws.take_seen();

        let begun = now();
        let process = Process::start(&mut command)?;
        let polled = async {
            api.polled().await;
            begun.elapsed()
        };
        let answered = async {
            let outcome = api.invoke(first.text.clone()).await;
            (outcome, begun.elapsed())
        };
        let (init, (outcome, first)) =
            timeout(WITHIN, join(polled, answered)).await.context("it does not start")?;
        accepted(&outcome)?;
        let mut took = Vec::with_capacity(warm);
        for event in rest {
            let text = event.text.clone();
            let begun = now();
            let outcome = timeout(WITHIN, api.invoke(text)).await.context("it does not answer")?;
            took.push(millis(begun.elapsed()));
            accepted(&outcome)?;
        }
        let peak_mib = process.peak_mib()?;
        if function.receives() {
            let outcome = timeout(WITHIN, api.invoke(forged.text)).await?;
            ensure!(status(&outcome)? == 401, "a forged delivery is not refused");
        }
        let jobs: Vec<_> = genuine.into_iter().map(|event| event.job).collect();
        proof::check(&aws.take_seen(), if function.receives() { &jobs } else { &[] })?;
        Ok(Self { init: millis(init), first: millis(first), warm: took, peak_mib })
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn accepted(outcome: &Outcome) -> Result<()> {
    let status = status(outcome)?;
    ensure!(status == 202, "a delivery is answered with {status}");
    Ok(())
}

fn status(outcome: &Outcome) -> Result<u64> {
    match outcome {
        Outcome::Answered(answer) => {
            let answer: Value = serde_json::from_slice(answer)?;
            answer.get("statusCode").and_then(Value::as_u64).context("an answer has a status")
        }
        Outcome::Failed(why) => bail!("an invocation failed: {}", String::from_utf8_lossy(why)),
    }
}
