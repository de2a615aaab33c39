//! The settings in force, as values.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use domain::envelope::EnvelopeFormat;
use domain::limits::Limits;
use domain::rotate::Strategy;
use domain::signature::scheme::Scheme;
use domain::tick::Rules;

use crate::reader::InForce;
use crate::secret_text::SecretText;

/// Everything that an operator may set. `Debug` shows no secret.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder of the ledger, the results and the secrets.
    pub data_dir: PathBuf,
    /// Base URL of the platform's API.
    pub api_url: String,
    /// The account's API key.
    pub api_key: Option<SecretText>,
    /// File with the account's API key; goes before `api_key`.
    pub api_key_file: Option<PathBuf>,
    /// Largest answer of the API, in bytes.
    pub api_answer_bytes: usize,
    /// Longest wait for a connection to the API.
    pub api_connect_timeout: Duration,
    /// How fast is submitted.
    pub pacing: Pacing,
    /// Where the receiver listens.
    pub listen: SocketAddr,
    /// Path of the receiver.
    pub webhook_path: String,
    /// The address that the platform delivers to.
    pub public_url: Option<String>,
    /// How a signing secret is replaced.
    pub rotation_strategy: Strategy,
    /// Where metrics are served; `None` if nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// Tasks worked at once.
    pub workers: u32,
    /// How long a task is hidden while it is worked.
    pub task_hold: Duration,
    /// Pause between two ticks.
    pub tick: Duration,
    /// What a tick does, and how often.
    pub upkeep: Rules,
    /// Bounds of the receiver.
    pub receiver: Receiver,
    /// How deliveries are signed.
    pub scheme: Scheme,
    /// Where the ids are in a delivery.
    pub envelope: EnvelopeFormat,
    /// The file of signing secrets, if one is named.
    pub secrets_file_given: Option<PathBuf>,
    /// Signing secrets given as values, with the setting that gives each.
    pub secret_values: Vec<(&'static str, SecretText)>,
    /// The bounds of the pipeline.
    pub limits: Limits,
    /// Where the ledger, the queue and the results are.
    pub backend: Backend,
    /// Each setting with its value as it may be shown, and where it came from.
    pub in_force: Vec<InForce>,
}

/// Where the ledger, the queue and the results are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one in a process")]
pub enum Backend {
    /// In the data folder.
    Embedded,
    /// On AWS.
    Aws(Aws),
}

/// What is used of AWS. What is `None` is among the stack's outputs, or not there at all; without a
/// stack at least `table`, `queue_url` and `bucket` are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aws {
    /// Name of the stack.
    pub stack: Option<String>,
    /// Its region.
    pub region: Option<String>,
    /// The table that is the ledger.
    pub table: Option<String>,
    /// The queue of tasks.
    pub queue_url: Option<String>,
    /// The queue where tasks end that no worker could take.
    pub dead_letter_queue_url: Option<String>,
    /// The bucket of the results.
    pub bucket: Option<String>,
    /// What the keys of results begin with, before a `/`.
    pub results_prefix: Option<String>,
    /// The secrets that hold the signing secrets.
    pub webhook_secret_ids: Option<Vec<String>>,
    /// The secret that holds the API key.
    pub api_key_secret_id: Option<String>,
}

/// Bounds of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receiver {
    /// Connections served at once.
    pub connections: usize,
    /// Largest body, in bytes.
    pub body_bytes: usize,
    /// Bytes of bodies held at once.
    pub bodies_bytes: usize,
    /// Longest time in which a request's head must arrive.
    pub head_timeout: Duration,
    /// Longest time in which a request's body must arrive.
    pub body_timeout: Duration,
}

/// How fast is submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pacing {
    /// Submissions in flight to begin with.
    pub start: u32,
    /// Most submissions in flight while the account's concurrency is not known.
    pub ceiling: u32,
    /// Pause between two submissions when one may be in flight.
    pub spacing: Duration,
}

impl Settings {
    /// The ledger's file.
    pub fn ledger_file(&self) -> PathBuf {
        self.data_dir.join("ledger.db")
    }

    /// The folder of the results.
    pub fn results_dir(&self) -> PathBuf {
        self.data_dir.join("results")
    }

    /// The file of the signing secrets: the one that is named, or the data folder's.
    pub fn secrets_file(&self) -> PathBuf {
        self.secrets_file_given.clone().unwrap_or_else(|| self.data_dir.join("secrets.json"))
    }
}
