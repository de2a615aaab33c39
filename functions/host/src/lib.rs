//! What the functions share: how they start, and what surrounds an invocation.
//!
//! A function reads its settings, its secrets and its credentials while it starts, and opens its
//! connections, so that the first event pays for none of that. Settings that are missing or wrong
//! end the process with one line that names them all; trouble of a service does not: it may be over
//! when the first event comes.

#[cfg(feature = "platform")]
mod platform;
mod unconfigured;

use std::error::Error;
use std::fmt::Display;
use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

use aws_client::{Patience, SdkConfig};
use domain::ports::Clock as _;
use domain::time::Timestamp;
use settings::{Environment, Problems, Role};
use system::SystemClock;
use telemetry::{Chain, Counter, Emf, Form, Metrics, Sink};
use tokio::runtime::LocalOptions;
use tracing::Instrument as _;

#[cfg(feature = "platform")]
pub use platform::Platform;
use unconfigured::Unconfigured;

/// Why a function does not start. The text names what is missing, and shows no value.
pub type Refusal = Box<dyn Error + Send + Sync>;

/// One function in its process.
pub struct Host {
    metrics: Arc<Metrics>,
    emf: Emf,
}

impl Host {
    /// For a function of this role in this stack.
    pub fn new(role: Role, stack: &str) -> Self {
        let metrics = Arc::new(Metrics::for_flushes());
        metrics.count(Counter::Starts);
        Self { metrics, emf: Emf::new(role, stack) }
    }

    /// What is counted.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Runs one invocation: its lines have its id, and what it counted is written at its end.
    pub async fn invocation<T>(&self, request_id: &str, work: impl Future<Output = T>) -> T {
        let done = work.instrument(telemetry::invocation(request_id)).await;
        let now = SystemClock.now();
        if let Err(error) = self.emf.flush(&self.metrics, now, &mut std::io::stdout()) {
            tracing::warn!(%error, "metrics could not be written");
        }
        done
    }
}

/// Runs a function: starts the log, then gives it its variables, on a runtime of one thread, which
/// is all that one event at a time needs.
pub fn run<F, R>(role: Role, function: F) -> ExitCode
where
    F: FnOnce(Environment) -> R,
    R: Future<Output = Result<(), Refusal>> + 'static,
{
    let environment = Environment::of(std::env::vars_os());
    // It is the first in this process.
    let _ = telemetry::start(environment.log_level(), Form::Json, Sink::Stdout);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = match builder.enable_all().build_local(LocalOptions::default()) {
        Ok(runtime) => runtime,
        Err(error) => return refuse(role, &error),
    };
    // As a task: each time that the future of `block_on` itself is woken costs two system calls.
    let serving = runtime.spawn_local(function(environment));
    match runtime.block_on(serving) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(refusal)) => refuse(role, &*refusal),
        Err(panicked) => refuse(role, &panicked),
    }
}

fn refuse(role: Role, refusal: &(dyn Error + Send + Sync + 'static)) -> ExitCode {
    // All names of variables are to be seen, where a chain is cut.
    let error = match refusal.downcast_ref::<Unconfigured>() {
        Some(unconfigured) => unconfigured.to_string(),
        None => Chain(refusal).to_string(),
    };
    tracing::error!(function = role.as_str(), error, "the function cannot start");
    ExitCode::FAILURE
}

/// A function's settings and, from the variables that Lambda sets, the configuration of AWS.
///
/// # Errors
/// All that is missing or wrong in either, at once.
#[expect(clippy::disallowed_methods, reason = "this is where the process reads its environment")]
pub fn configured<S>(
    settings: Result<S, Problems>,
    patience: Patience,
) -> Result<(S, SdkConfig), Refusal> {
    let variable = |name: &str| std::env::var(name).ok();
    match (settings, aws_client::from_environment(&variable, patience)) {
        (Ok(settings), Ok(aws)) => Ok((settings, aws)),
        (settings, aws) => {
            Err(Unconfigured::of(settings.as_ref().err(), aws.as_ref().err()).into())
        }
    }
}

/// When Lambda ends an invocation, by its word in milliseconds of the epoch. A value beyond all
/// time, as local runtimes send, is the farthest there is.
pub fn deadline(epoch_ms: u64) -> Timestamp {
    let at = i64::try_from(epoch_ms).ok();
    at.and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or(Timestamp::MAX)
}

/// Notes trouble of something that was tried while the function starts, and that is tried again
/// when it is needed.
pub fn note<T, E: Error>(what: &impl Display, tried: Result<T, E>) {
    if let Err(error) = tried {
        tracing::warn!(%what, error = %Chain(&error), "not ready yet, tried again with the first event");
    }
}
