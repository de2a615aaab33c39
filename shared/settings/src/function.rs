//! The settings of the functions on AWS Lambda, from variables alone.

use domain::envelope::EnvelopeFormat;
use domain::limits::Limits;
use domain::rotate::Strategy;
use domain::signature::scheme::Scheme;
use domain::tick::Rules;

use crate::environment::Environment;
use crate::problem::Problems;
use crate::reader::{InForce, Reader};
use crate::relations;
use crate::resolve::{envelope, limits, scheme_in_force, strategy};
use crate::role::Role;
use crate::upkeep::{self, Unset};

/// What every function needs.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Name of the stack, for the metrics.
    pub stack: String,
    /// The table that is the ledger.
    pub table: String,
    /// The queue of tasks; empty for a function that has no use for it.
    pub queue_url: String,
    /// The bounds of the pipeline; those that the function does not read are the defaults.
    pub limits: Limits,
    /// Each setting with its value as it may be shown.
    pub in_force: Vec<InForce>,
}

/// How the platform's API is reached.
#[derive(Debug, Clone)]
pub struct Api {
    /// Base URL.
    pub url: String,
    /// The secret that holds the key.
    pub key_secret_id: String,
    /// Largest answer, in bytes.
    pub answer_bytes: usize,
    /// Longest wait for a connection.
    pub connect_timeout: std::time::Duration,
}

/// What the receiver function needs.
#[derive(Debug, Clone)]
pub struct ReceiverSettings {
    /// What every function needs.
    pub shared: Shared,
    /// The secrets that hold the signing secrets.
    pub webhook_secret_ids: Vec<String>,
    /// Path of the receiver.
    pub webhook_path: String,
    /// How deliveries are signed.
    pub scheme: Scheme,
    /// Where the ids are in a delivery.
    pub envelope: EnvelopeFormat,
}

/// What the worker function needs.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// What every function needs.
    pub shared: Shared,
    /// The platform's API.
    pub api: Api,
    /// The bucket of the results.
    pub bucket: String,
    /// What the keys of results begin with, before a `/`.
    pub results_prefix: Option<String>,
}

/// What the scheduler function needs.
#[derive(Debug, Clone)]
pub struct SchedulerSettings {
    /// What every function needs.
    pub shared: Shared,
    /// The platform's API.
    pub api: Api,
    /// What a run does.
    pub upkeep: Rules,
}

/// What the rotator function needs.
#[derive(Debug, Clone)]
pub struct RotatorSettings {
    /// What every function needs.
    pub shared: Shared,
    /// The platform's API.
    pub api: Api,
    /// The secrets that hold the signing secrets.
    pub webhook_secret_ids: Vec<String>,
    /// How a secret is replaced.
    pub strategy: Strategy,
}

impl ReceiverSettings {
    /// Reads and checks the variables.
    ///
    /// # Errors
    /// Everything that is missing, wrong or read by nobody, without any value.
    pub fn load(environment: &Environment) -> Result<Self, Problems> {
        let mut reader = Reader::of_function(Role::Receiver, environment);
        let read = &mut reader;
        let scheme = scheme_in_force(read)?;
        let loaded = Self {
            scheme,
            envelope: envelope(read).unwrap_or_default(),
            webhook_secret_ids: read
                .read("webhook_secret_ids", |_, raw| raw.secret_ids())
                .unwrap_or_default(),
            webhook_path: read.read("webhook_path", |_, raw| raw.http_path()).unwrap_or_default(),
            shared: shared(read),
        };
        let in_force = reader.finish()?;
        Ok(Self { shared: Shared { in_force, ..loaded.shared }, ..loaded })
    }
}

impl WorkerSettings {
    /// Reads and checks the variables.
    ///
    /// # Errors
    /// Everything that is missing, wrong or read by nobody, without any value.
    pub fn load(environment: &Environment) -> Result<Self, Problems> {
        let mut reader = Reader::of_function(Role::Worker, environment);
        let read = &mut reader;
        let loaded = Self {
            api: api(read),
            bucket: read.name("bucket").unwrap_or_default(),
            results_prefix: read.read("results_prefix", |_, raw| raw.key_prefix()),
            shared: shared(read),
        };
        relations::check_connect(read, loaded.api.connect_timeout, &loaded.shared.limits);
        let in_force = reader.finish()?;
        Ok(Self { shared: Shared { in_force, ..loaded.shared }, ..loaded })
    }
}

impl SchedulerSettings {
    /// Reads and checks the variables.
    ///
    /// # Errors
    /// Everything that is missing, wrong or read by nobody, without any value.
    pub fn load(environment: &Environment) -> Result<Self, Problems> {
        let mut reader = Reader::of_function(Role::Scheduler, environment);
        let read = &mut reader;
        let public_url = read.url("public_url");
        let loaded = Self {
            api: api(read),
            upkeep: upkeep::rules(read, public_url, Unset::EachRun),
            shared: shared(read),
        };
        relations::check_connect(read, loaded.api.connect_timeout, &loaded.shared.limits);
        let in_force = reader.finish()?;
        Ok(Self { shared: Shared { in_force, ..loaded.shared }, ..loaded })
    }
}

impl RotatorSettings {
    /// Reads and checks the variables.
    ///
    /// # Errors
    /// Everything that is missing, wrong or read by nobody, without any value.
    pub fn load(environment: &Environment) -> Result<Self, Problems> {
        let mut reader = Reader::of_function(Role::Rotator, environment);
        let read = &mut reader;
        let loaded = Self {
            api: api(read),
            webhook_secret_ids: read
                .read("webhook_secret_ids", |_, raw| raw.secret_ids())
                .unwrap_or_default(),
            strategy: strategy(read),
            shared: shared(read),
        };
        relations::check_connect(read, loaded.api.connect_timeout, &loaded.shared.limits);
        let in_force = reader.finish()?;
        Ok(Self { shared: Shared { in_force, ..loaded.shared }, ..loaded })
    }
}

/// Reads what every function needs, and checks the bounds against each other.
fn shared(read: &mut Reader) -> Shared {
    let shared = Shared {
        stack: read.name("stack").unwrap_or_default(),
        table: read.name("table").unwrap_or_default(),
        queue_url: read.read("queue_url", |_, raw| raw.queue_url()).unwrap_or_default(),
        limits: limits(read),
        in_force: Vec::new(),
    };
    relations::check_limits(read, &shared.limits);
    shared
}

fn api(read: &mut Reader) -> Api {
    Api {
        url: read.url("api_url").unwrap_or_default(),
        key_secret_id: read.read("api_key_secret_id", |_, raw| raw.secret_id()).unwrap_or_default(),
        answer_bytes: read.bytes("api_answer_bytes"),
        connect_timeout: read.duration("api_connect_timeout"),
    }
}

#[cfg(test)]
mod tests;
