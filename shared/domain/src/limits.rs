//! Every bound of the system, with unit and source.
//!
//! Constants are facts of formats and neighbours; [`Limits`] holds what an operator may tune.

use std::time::Duration;

use crate::time::{Timestamp, before};

/// Longest job id, in bytes. UUIDs in practice; short enough for SQS, paths and log lines.
pub const JOB_ID_BYTES_MAX: usize = 128;
/// Transitions kept in an entry's history.
pub const HISTORY_MAX: usize = 32;
/// Longest note of an operator in a history, in bytes: a full history of them is a hundredth of a
/// row.
pub const NOTE_BYTES_MAX: usize = 200;
/// Tries of one conditional write against a row that others change meanwhile.
pub const WRITE_CONFLICTS_MAX: u32 = 8;
/// Longest delay of a queue message. Source: Amazon SQS, `DelaySeconds` at most 900.
pub const QUEUE_DELAY_MAX: Duration = Duration::from_mins(15);
/// Largest page of a job list. Source: docs/contract.md, "Paging".
pub const LIST_PAGE_MAX: u32 = 100;
/// Largest page of a batch's or crawl's results. Source: docs/contract.md, "Paging".
pub const RESULT_PAGE_MAX: u32 = 50;
/// Most list pages read in one walk: one million jobs.
pub const LIST_PAGES_MAX: u32 = 10_000;
/// Most result pages read in one run: 10,000 crawl pages asked for one by one.
pub const RESULT_PAGES_MAX: u32 = 10_000;
/// Most URLs in one batch. Source: docs/contract.md, "Batch".
pub const BATCH_URLS_MAX: usize = 1_000;
/// Most bytes of a batch's URLs as JSON: an intent holds them all, and a row of the ledger has at
/// most 400 kB.
pub const BATCH_BYTES_MAX: usize = 256 * 1024;
/// Most pages in one crawl. Source: docs/contract.md, "Crawl".
pub const CRAWL_PAGES_MAX: u32 = 10_000;
/// Deepest crawl. Source: docs/contract.md, "Crawl".
pub const CRAWL_DEPTH_MAX: u32 = 10;
/// Most webhooks of an account. Source: docs/contract.md, "Webhooks".
pub const WEBHOOKS_MAX: usize = 10;
/// Times that a dead entry is opened again because the platform speaks of its job.
pub const REOPENS_MAX: u32 = 3;
/// Searches for the job of an unanswered POST before it is reported as ambiguous: with the default
/// back-off they take a quarter of an hour and more.
pub const SEARCHES_MIN: u32 = 12;
/// Runs over a batch's or crawl's pages before it is given up as inconsistent.
pub const RUNS_MAX: u32 = 5;
/// Longest user reference and run name, in bytes.
pub const REF_BYTES_MAX: usize = 256;
/// Longest URL that is submitted, in bytes. Common limit of browsers and proxies.
pub const URL_BYTES_MAX: usize = 8_192;

/// The tunable bounds. [`Default`] gives the documented defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long a sent task may take to reach a worker before the sweep sends it again.
    pub enqueue_grace: Duration,
    /// First pause between two sweeps of one entry; doubles each time.
    pub sweep_spacing: Duration,
    /// Longest pause between two sweeps of one entry.
    pub sweep_spacing_cap: Duration,
    /// Sweeps without a look at the job before an entry is given up as poison.
    pub sweeps_max: u32,
    /// How long a submitted job may stay unannounced before somebody looks at it.
    pub announce_grace: Duration,
    /// Answers of 404 before a job counts as gone.
    pub missing_looks_max: u32,
    /// Pause between two looks at a job that answers 404.
    pub missing_pause: Duration,
    /// How long a finished batch or crawl may keep tokens reserved.
    pub settle_grace: Duration,
    /// How old an unfinished job may become.
    pub max_age: Duration,
    /// Resubmissions per lineage.
    pub resubmits_max: u32,
    /// Base of the full-jitter back-off.
    pub backoff_base: Duration,
    /// Cap of the full-jitter back-off.
    pub backoff_cap: Duration,
    /// Longest `Retry-After` that is believed.
    pub retry_after_clamp: Duration,
    /// Longest time from writing an intent to beginning its POST.
    pub post_begin: Duration,
    /// Time-out of a POST.
    pub post_timeout: Duration,
    /// Time-out of any other call of the API.
    pub call_timeout: Duration,
    /// Time-out of a call that reads a page of results.
    pub page_timeout: Duration,
    /// How long job lists may lag behind accepted jobs.
    pub adoption_margin: Duration,
    /// How long an unanswered POST is looked for before it is reported as ambiguous.
    pub ambiguous_after: Duration,
    /// Paid POSTs made for one decision after the earlier ones were proved not accepted.
    pub posts_max: u32,
    /// How long an account pause lasts when the platform names no time.
    pub account_pause: Duration,
    /// How long a run over result pages is held by one worker without progress.
    pub run_claim: Duration,
    /// How long a terminal entry is kept.
    pub retention: Duration,
    /// Time the receiver gives itself for one delivery.
    pub receive_deadline: Duration,
    /// Pause between two refreshes of the signing secrets.
    pub secret_cooldown: Duration,
    /// Age at which loaded signing secrets are loaded again.
    pub secret_max_age: Duration,
    /// How long a signing secret is accepted after another one took its place: deliveries that were
    /// under way arrive within seconds, repeated ones within minutes.
    pub previous_grace: Duration,
    /// Most tokens spent on submissions a day; `None` is without limit.
    pub spend_per_day: Option<u64>,
    /// What is paid for only where somebody wants it.
    pub policies: Policies,
}

/// What is paid for only where somebody wants it: off by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policies {
    /// Whether jobs that failed retryably are submitted again although no submission of ours is
    /// known for them, as long as they are fresh: created no longer ago than `max_age`.
    pub resubmit_unlinked: bool,
    /// Whether the items of a completed batch or crawl that failed retryably are asked for once
    /// more, in a new batch.
    pub resubmit_failed_items: bool,
}

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

impl Limits {
    /// How long after a POST was intended the job list can prove that it was not accepted.
    pub const fn recovery(&self) -> Duration {
        self.post_begin.saturating_add(self.post_timeout).saturating_add(self.adoption_margin)
    }

    /// The earliest `created_at` of a job whose row cannot have been forgotten yet: a row is kept for
    /// the retention after its job ended, of which a tenth is left for clocks and delays.
    pub fn remembered_from(&self, now: Timestamp) -> Timestamp {
        before(now, self.retention / 10 * 9)
    }

    /// How long a probe of the account may take, a paid one included, before another is admitted.
    pub fn probe_hold(&self) -> Duration {
        let post = self.post_begin.saturating_add(self.post_timeout);
        post.max(self.call_timeout).max(self.account_pause)
    }

    /// How far the platform's clock and ours may be apart.
    pub fn clock_slack(&self) -> Duration {
        self.adoption_margin.max(Duration::from_secs(1))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            enqueue_grace: MINUTE,
            sweep_spacing: 5 * MINUTE,
            sweep_spacing_cap: 2 * HOUR,
            sweeps_max: 12,
            announce_grace: 10 * MINUTE,
            missing_looks_max: 5,
            missing_pause: 3 * MINUTE,
            settle_grace: 30 * MINUTE,
            max_age: 48 * HOUR,
            resubmits_max: 3,
            backoff_base: Duration::from_secs(1),
            backoff_cap: 15 * MINUTE,
            retry_after_clamp: HOUR,
            post_begin: MINUTE,
            post_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(30),
            page_timeout: MINUTE,
            adoption_margin: 2 * MINUTE,
            ambiguous_after: 6 * HOUR,
            posts_max: 5,
            account_pause: MINUTE,
            run_claim: 5 * MINUTE,
            retention: 90 * 24 * HOUR,
            receive_deadline: Duration::from_millis(2_500),
            secret_cooldown: Duration::from_secs(10),
            secret_max_age: 5 * MINUTE,
            previous_grace: 15 * MINUTE,
            spend_per_day: None,
            policies: Policies::default(),
        }
    }
}
