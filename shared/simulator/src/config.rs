//! Settings of a simulated platform, with defaults that suit a demo.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::SimulatorError;
use crate::faults::Faults;

/// Settings of one simulated account. Every key has a default; unknown keys are refused.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Source of all randomness. Default 1.
    pub seed: u64,
    /// The account's API key, expected in `X-Api-Key`. Default `simulated-key`.
    pub api_key: String,
    /// Divides every duration of the platform: jobs, retries, list lag, delays. Default 1.
    pub speed: f64,
    /// Median duration of one extraction, in seconds before the speed. Default 20.
    pub job_median_secs: f64,
    /// Sigma of the log-normal distribution of durations. Default 0.8.
    pub job_sigma: f64,
    /// Jobs that may be unsettled at once; more are refused with 429. Default 1,000.
    pub work_concurrency_limit: u32,
    /// When a job that never settles gives its slot back, in seconds before the speed.
    /// Default 600.
    pub work_lease_secs: f64,
    /// Average size of a generated result, in bytes. Default 8,192.
    pub result_bytes: u32,
    /// Folder with real UTF-8 `.html` and `.md` files that are served as results, byte for byte.
    /// Default none: results are generated.
    pub corpus: Option<PathBuf>,
    /// How long an accepted job is missing from the job lists, in seconds before the speed.
    /// Default 1.
    pub list_lag_secs: f64,
    /// How long a GET of an accepted job answers 404, in seconds before the speed. Default 0.
    pub read_lag_secs: f64,
    /// How long the tokens of a finished child stay reserved, in seconds before the speed.
    /// Default 2.
    pub settle_secs: f64,
    /// Longest hang, in seconds: the connection is closed without an answer after it. Default 60.
    pub hang_max_secs: f64,
    /// Wait that a throttled call asks for, in seconds before the speed; `Retry-After` says it in
    /// whole seconds, one at least. Default 2.
    pub retry_after_secs: f64,
    /// How webhooks are signed, logged and sent.
    pub webhooks: WebhookConfig,
    /// What goes wrong. Default nothing.
    pub faults: Faults,
}

/// How webhooks are signed, logged and sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebhookConfig {
    /// Encoding of the signature header. Default `sha256_hex`.
    pub signature: SignatureEncoding,
    /// What a row of the delivery log stands for. Default `row_per_attempt`.
    pub log: LogRows,
    /// Which terminal statuses send an event. Default `all_terminal`.
    pub events: EventScope,
    /// Attempts under way at once. Default 32.
    pub concurrency: usize,
    /// Longest wait for a receiver's answer, in seconds before the speed, though never less than
    /// two real seconds. Default 10.
    pub timeout_secs: f64,
}

/// Encoding of the HMAC-SHA256 in `X-Webhook-Signature`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignatureEncoding {
    /// `sha256=` and lower-case hex.
    #[default]
    Sha256Hex,
    /// Lower-case hex alone.
    Hex,
    /// Standard base64 with padding.
    Base64,
}

/// What a row of the delivery log stands for; the contract allows both readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogRows {
    /// Each attempt has a row and an id of its own.
    #[default]
    RowPerAttempt,
    /// A delivery has one row and one id, updated by each attempt.
    RowPerDelivery,
}

/// Which terminal statuses send an event; the contract leaves it open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventScope {
    /// `completed`, `failed` and `cancelled`.
    #[default]
    AllTerminal,
    /// `completed` alone.
    CompletedOnly,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            api_key: "simulated-key".to_owned(),
            speed: 1.0,
            job_median_secs: 20.0,
            job_sigma: 0.8,
            work_concurrency_limit: 1_000,
            work_lease_secs: 600.0,
            result_bytes: 8_192,
            corpus: None,
            list_lag_secs: 1.0,
            read_lag_secs: 0.0,
            settle_secs: 2.0,
            hang_max_secs: 60.0,
            retry_after_secs: 2.0,
            webhooks: WebhookConfig::default(),
            faults: Faults::none(),
        }
    }
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self {
            signature: SignatureEncoding::default(),
            log: LogRows::default(),
            events: EventScope::default(),
            concurrency: 32,
            timeout_secs: 10.0,
        }
    }
}

impl std::fmt::Debug for Config {
    /// Prints the settings that matter for a report, never the API key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("seed", &self.seed)
            .field("speed", &self.speed)
            .field("job_median_secs", &self.job_median_secs)
            .field("job_sigma", &self.job_sigma)
            .field("corpus", &self.corpus)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Checks that every setting can be used.
    ///
    /// # Errors
    ///
    /// Names the first setting that cannot, and what is allowed.
    pub fn check(&self) -> Result<(), SimulatorError> {
        let fail = |name, expected| Err(SimulatorError::Setting { name, expected });
        if self.api_key.is_empty() {
            return fail("api_key", "given");
        }
        if !(SPEED_MIN..=SPEED_MAX).contains(&self.speed) {
            return fail("speed", "a number from 0.001 to 1000000");
        }
        if !(0.0..=SIGMA_MAX).contains(&self.job_sigma) {
            return fail("job_sigma", "a number from 0 to 5");
        }
        if self.result_bytes > RESULT_BYTES_MAX {
            return fail("result_bytes", "at most 16777216");
        }
        for (name, secs) in [
            ("job_median_secs", self.job_median_secs),
            ("work_lease_secs", self.work_lease_secs),
            ("list_lag_secs", self.list_lag_secs),
            ("read_lag_secs", self.read_lag_secs),
            ("settle_secs", self.settle_secs),
            ("hang_max_secs", self.hang_max_secs),
            ("retry_after_secs", self.retry_after_secs),
            ("webhooks.timeout_secs", self.webhooks.timeout_secs),
        ] {
            if !(0.0..=DURATION_MAX_SECS).contains(&secs) {
                return fail(name, "a number of seconds, at most ten years");
            }
        }
        if !(1..=SENDS_MAX).contains(&self.webhooks.concurrency) {
            return fail("webhooks.concurrency", "a number from 1 to 1024");
        }
        self.faults.check()
    }

    /// Whole seconds that a throttled call is asked to wait, as the header can say them.
    pub(crate) fn retry_after(&self) -> u64 {
        let wait = self.scaled(self.retry_after_secs);
        (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
    }

    /// Turns configured seconds into a duration of the simulated platform.
    pub(crate) fn scaled(&self, secs: f64) -> Duration {
        duration(secs / self.speed.max(SPEED_MIN))
    }
}

/// Slowest and fastest speed, so that no division can fail.
const SPEED_MIN: f64 = 0.001;
const SPEED_MAX: f64 = 1_000_000.0;

/// Widest spread of durations; the cut of the distribution hides any wider one.
const SIGMA_MAX: f64 = 5.0;

/// Largest average result, in bytes.
const RESULT_BYTES_MAX: u32 = 16 * 1024 * 1024;

/// Most webhook attempts under way at once.
const SENDS_MAX: usize = 1_024;

/// Longest duration that settings may ask for, in seconds: ten years.
const DURATION_MAX_SECS: f64 = 315_360_000.0;

/// Turns seconds into a duration; nonsense becomes zero.
pub(crate) fn duration(secs: f64) -> Duration {
    Duration::try_from_secs_f64(secs.clamp(0.0, DURATION_MAX_SECS)).unwrap_or_default()
}
