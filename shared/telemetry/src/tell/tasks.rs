//! Tasks.

use std::time::Duration;

use domain::job::JobKey;
use domain::ports::PortError;
use domain::work::{FollowedUp, PutOff, Skip, Worked};

use crate::catalogue::{Counter, Timing};
use crate::metrics::Metrics;
use crate::text::Chain;

/// Tells what became of a task.
pub fn task(metrics: &Metrics, key: &JobKey, worked: &Result<Worked, PortError>, took: Duration) {
    metrics.time(Timing::Task, took);
    if let Ok(worked) = worked {
        say_of_money(metrics, key, worked);
    }
    metrics.count(match worked {
        Ok(worked) => say(key, worked),
        Err(error) => {
            let error = Chain(error);
            tracing::warn!(job.id = %key.job_id, job.kind = %key.kind, %error, "task failed");
            Counter::TasksFailed
        }
    });
}

/// Tells of a task whose work panicked. Where it did is in a line of its own.
pub fn task_panicked(metrics: &Metrics, key: &JobKey) {
    metrics.count(Counter::TasksPanicked);
    tracing::error!(job.id = %key.job_id, job.kind = %key.kind, "task panicked");
}

fn say(key: &JobKey, worked: &Worked) -> Counter {
    let (id, kind) = (&key.job_id, key.kind);
    match worked {
        Worked::Stored { key: object, .. } => {
            tracing::info!(job.id = %id, job.kind = %kind, object, "stored");
            Counter::JobsStored
        }
        Worked::Superseded { by } => {
            tracing::info!(job.id = %id, job.kind = %kind, by = %by, "resubmitted");
            Counter::JobsSuperseded
        }
        Worked::Dead(reason) => {
            tracing::warn!(job.id = %id, job.kind = %kind, %reason, "given up");
            Counter::JobsDead
        }
        Worked::PutOff { wait, because } => {
            let wait_secs = wait.as_secs_f64();
            let because = reason(because);
            tracing::debug!(job.id = %id, job.kind = %kind, wait_secs, because, "put off");
            Counter::JobsPutOff
        }
        Worked::Skipped(Skip::Absent) => {
            tracing::warn!(job.id = %id, job.kind = %kind, "task for an unknown job");
            Counter::TasksUnknown
        }
        Worked::Skipped(_) => Counter::TasksSkipped,
    }
}

/// Tells where something is paid for once more, and where a cap kept that from being done.
fn say_of_money(metrics: &Metrics, key: &JobKey, worked: &Worked) {
    let (id, kind) = (&key.job_id, key.kind);
    match worked {
        Worked::Stored { follow_up: Some(FollowedUp::Asked { items, left }), .. } => {
            let asked = u64::try_from(*items).unwrap_or(u64::MAX);
            metrics.add(Counter::ItemsAskedAgain, asked);
            tracing::info!(job.id = %id, job.kind = %kind, items, left, "failed items are asked for again");
        }
        Worked::Stored { follow_up: Some(FollowedUp::Capped { items }), .. } => {
            metrics.count(Counter::RetriesCapped);
            tracing::warn!(job.id = %id, job.kind = %kind, items, "failed items are left");
        }
        Worked::PutOff { because: PutOff::Spent, .. } => {
            metrics.count(Counter::RetriesUnspent);
            tracing::info!(job.id = %id, job.kind = %kind, "the day's spend is used up");
        }
        _ => {}
    }
}

/// Why a task was put off.
fn reason(because: &PutOff) -> String {
    match because {
        PutOff::Unfinished(_) => "the job has not finished".to_owned(),
        PutOff::Settling => "its items are still settling".to_owned(),
        PutOff::Trouble(error) => Chain(error).to_string(),
        PutOff::Paused(why) => format!("the API is left alone: {why}"),
        PutOff::Unlinked => "whose job it is is not known yet".to_owned(),
        PutOff::Recovering => "whether a retry was accepted is being found out".to_owned(),
        PutOff::Inconsistent => "its result pages do not agree".to_owned(),
        PutOff::Spent => "the day's spend is used up".to_owned(),
        PutOff::OutOfTime => "no time was left for another call".to_owned(),
    }
}
